package mcp

import (
	"bytes"
	"context"
	"encoding/json"
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

// maxBody bounds one message: a text of the greatest length, escaped, with room to spare.
const maxBody = 4 << 20

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
			http.Error(w, e.Message+": "+e.Hint, http.StatusBadRequest)
			return
		}
		r.Header.Set(headerProfile, string(p))
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody+1)) // of one that is too long the transport says so
		if err == nil && isBatch(body) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(refusal(nil, jsonrpc.CodeInvalidRequest, noBatches))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		transport.ServeHTTP(w, r)
	}), nil
}

// A batch is as much work as its sender likes, in one request. No revision after 2025-03-26 has
// them, and none is taken.
const noBatches = "this server takes no batches: send each message by itself"

func isBatch(message []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(message, " \t\r\n"), []byte("["))
}

// refusal is the response to what is no request. Its id is nil where none can be read.
func refusal(id any, code int64, message string) []byte {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}})
	return b
}
