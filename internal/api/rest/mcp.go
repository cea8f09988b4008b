package rest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptrace"

	"mneme/internal/api"
	"mneme/internal/auth"
)

const mcpPath = "/mcp"

// mcpRoutes are those of the Model Context Protocol, which is served by another handler that
// works through this API, for whoever was admitted here.
func mcpRoutes(s *server) []route {
	if s.MCP == nil {
		return nil
	}
	var all []route
	if s.OAuth != nil {
		for _, path := range []string{auth.WellKnownResource, auth.WellKnownResource + "/mcp"} {
			all = append(all, route{method: "GET", path: path, summary: "Whose access tokens /mcp takes (RFC 9728).",
				handle: func(w http.ResponseWriter, r *http.Request) error {
					return answerWith(s, w, r, func() (auth.ResourceMetadata, error) { return s.OAuth.Metadata(), nil })
				},
				answers: ok[auth.ResourceMetadata]("The metadata.")})
		}
	}
	return append(all, route{method: "POST", path: mcpPath, handle: func(w http.ResponseWriter, r *http.Request) error { return serveMCP(s, w, r) }, stream: true, oauth: true, limit: 4 << 20, body: typed[map[string]any](),
		params: []param{
			{name: "namespace", in: "query", about: "Where to work; or the header Mneme-Namespace.", length: 63},
			{name: "agent", in: "query", about: "Who acts; or the header Mneme-Agent, or as the client calls itself.", length: 63},
			{name: "profile", in: "query", about: "How many tools are offered.", enum: []any{"micro", "lite", "full", "graph"}},
		},
		summary: "The Model Context Protocol, over streamable HTTP without sessions.",
		answers: map[int]answer{200: {about: "A message of JSON-RPC, as an event.", media: mediaEvents}, 202: {about: "A notification was taken."}}})
}

func serveMCP(s *server, w http.ResponseWriter, r *http.Request) error {
	leave, err := s.bulkheads.calls.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	id, err := identify(s, r, s.routes[r.Pattern])
	if err != nil {
		return err
	}
	s.mcp.ServeHTTP(w, r.WithContext(auth.Admitted(r.Context(), id)))
	return nil
}

// inner sends requests to this API without a network, for callers that were admitted. Answers
// are held in memory until they are complete, so it is not for streams.
type inner struct{ s *server }

func (t inner) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	w := &held{header: http.Header{}, code: http.StatusOK}
	r := req.Clone(req.Context())
	r.RequestURI = req.URL.RequestURI()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if id := api.TraceOf(req.Context()).Request; id != "" {
		r.Header.Set("X-Request-Id", id) // the log speaks of one request
	}
	t.s.ServeHTTP(w, r)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: w.code, Status: http.StatusText(w.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req}, nil
}

// held is an answer that is kept.
type held struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *held) Header() http.Header         { return w.header }
func (w *held) WriteHeader(code int)        { w.code = code }
func (w *held) Write(b []byte) (int, error) { return w.body.Write(b) }
