package node

import (
	"net/http"

	"mneme/client"
	"mneme/internal/api/mcp"
)

// newMCP serves the Model Context Protocol through the node's own API.
func newMCP(n *Node, inner http.RoundTripper) (http.Handler, error) {
	c, err := client.New("http://"+n.HTTPAddr(), client.Options{UserAgent: "mneme-mcp", HTTPClient: &http.Client{Transport: inner}})
	if err != nil {
		return nil, err
	}
	return mcp.NewHandler(func(h http.Header) (mcp.Caller, error) {
		return mcp.Caller{Client: c, Namespace: h.Get(mcp.HeaderNamespace), Agent: h.Get(mcp.HeaderAgent)}, nil
	}, n.cfg.Version, n.cfg.Logger)
}
