package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mneme/memory"
)

// Headers by which a client of the HTTP transport says where it works and as whom. The
// parameters namespace, agent and profile of the address say the same, and win: most clients
// can be given an address only.
const (
	HeaderNamespace = "Mneme-Namespace"
	HeaderAgent     = "Mneme-Agent"
	headerProfile   = "Mneme-Profile"
)

// NewHandler serves the streamable HTTP transport, without sessions: each request is served by
// itself, by any node. connect gives the client for the caller of a request; its namespace and
// agent are those that the headers name. Who may call is decided before it.
func NewHandler(connect func(h http.Header) (Caller, error), version string, logger *slog.Logger) (http.Handler, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	servers := map[Profile]*mcp.Server{}
	for _, p := range Profiles {
		var err error
		if servers[p], err = New(Options{Connect: func(_ context.Context, h http.Header, _ []string) (Caller, error) { return connect(h) }, Profile: p, Version: version, Logger: logger}); err != nil {
			return nil, err
		}
	}
	transport := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return servers[Profile(r.Header.Get(headerProfile))]
	}, &mcp.StreamableHTTPOptions{Stateless: true, Logger: warnings(logger), MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true}) // the API in front of it checks the host
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		for name, header := range map[string]string{"namespace": HeaderNamespace, "agent": HeaderAgent, "profile": headerProfile} {
			if v := r.URL.Query().Get(name); v != "" {
				r.Header.Set(header, v)
			}
		}
		p, err := ParseProfile(r.Header.Get(headerProfile))
		if err != nil {
			e := memory.AsError(err)
			refuse(w, http.StatusBadRequest, refusal(nil, jsonrpc.CodeInvalidRequest, e.Message+": "+e.Hint))
			return
		}
		r.Header.Set(headerProfile, string(p))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			refuse(w, http.StatusRequestEntityTooLarge, refusal(nil, jsonrpc.CodeInvalidRequest, "the message has more than 4 MiB"))
			return
		}
		m, refused := parse(body)
		if refused != nil {
			refuse(w, http.StatusBadRequest, refused)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		transport.ServeHTTP(&spoken{ResponseWriter: w, to: m}, r)
	}), nil
}
