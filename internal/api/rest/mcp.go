package rest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"sync"

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

// serveMCP has a call made and then sends its answer. The body is there before the call counts
// as under way, and how long the client takes to read the answer holds up no others.
func serveMCP(s *server, w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	made := &call{}
	if !auth.IsLocal(r.Context()) {
		made.budget = &s.answers
	}
	defer made.release()
	answer, err := makeCall(s, r, body, made)
	if err != nil {
		return err
	}
	maps.Copy(w.Header(), answer.header)
	w.WriteHeader(answer.code)
	_, _ = w.Write(answer.body.Bytes())
	return nil
}

func makeCall(s *server, r *http.Request, body []byte, made *call) (*held, error) {
	leave, err := s.bulkheads.calls.enter(r.Context())
	if err != nil {
		return nil, err
	}
	defer leave()
	id, err := identify(s, r, s.routes[r.Pattern])
	if err != nil {
		return nil, err
	}
	r = r.WithContext(context.WithValue(auth.Admitted(r.Context(), id), callKey{}, made))
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := newHeld()
	s.mcp.ServeHTTP(answer, r)
	made.settle(answer.body.Len())
	return answer, nil
}

// call counts what a call of /mcp holds among the long answers: while it is made, several times
// what the API answered, and then its own answer until the client has it. It is safe for
// concurrent use.
type call struct {
	budget *budget // nil: not counted

	mu      sync.Mutex
	held    int64
	settled bool // nothing more is made
}

type callKey struct{}

// madeOf is how many times an answer of the API is in memory while that of a tool is made of it:
// as bytes, as records, as text, as structured content, in the message and in the event.
const madeOf = 6

// callOf is the call that a request to the API is part of; nil: none.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// count counts an answer of the API of n bytes, if there is room; what one call holds alone always
// fits. What a write did has to be told: it is counted without.
func (c *call) count(n int, write bool) bool {
	if c == nil || c.budget == nil || n <= freeAnswer {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled { // nobody waits for it
		return false
	}
	more := int64(n) * madeOf
	if all := c.budget.used.Add(more); !write && all > max(c.budget.max.Load(), c.held+more) {
		c.budget.give(more)
		return false
	}
	c.held += more
	return true
}

// settle counts an answer of n bytes in the place of what it was made of.
func (c *call) settle(n int) {
	if c.budget == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled = true
	counted := int64(0)
	if n > freeAnswer {
		counted = int64(n)
	}
	c.budget.used.Add(counted - c.held)
	c.held = counted
}

func (c *call) release() { c.settle(0) }

// inner sends requests to this API without a network, for callers that were admitted. Answers
// are held in memory until they are complete, so it is not for streams.
type inner struct{ s *server }

func (t inner) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	w := newHeld()
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
	if n := w.body.Len(); !callOf(req.Context()).count(n, t.writes(r)) {
		w = newHeld()
		t.s.writeError(w, r, noRoom(int64(n), t.s.answers.max.Load()))
	}
	return &http.Response{StatusCode: w.code, Status: http.StatusText(w.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req}, nil
}

// writes reports whether a request is for a route that changes something.
func (t inner) writes(r *http.Request) bool {
	_, pattern := t.s.mux.Handler(r)
	rt := t.s.routes[pattern]
	return rt != nil && rt.write
}

// held is an answer that is kept.
type held struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func newHeld() *held { return &held{header: http.Header{}, code: http.StatusOK} }

func (w *held) Header() http.Header         { return w.header }
func (w *held) WriteHeader(code int)        { w.code = code }
func (w *held) Write(b []byte) (int, error) { return w.body.Write(b) }
