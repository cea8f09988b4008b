package rest

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"mneme/internal/auth"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a handler with its fake parts and its log.
type bench struct {
	t       *testing.T
	f       *fake
	s       *server
	log     *strings.Builder
	logged  *sync.Mutex // guards log
	metrics *prometheus.Registry
	remote  bool // do asks over TCP, not through the admin socket
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	gate, err := auth.NewGate(auth.ModeOff, "")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, f: &fake{fail: map[string]error{}, ready: true}, log: &strings.Builder{}, logged: &sync.Mutex{}, metrics: prometheus.NewRegistry()}
	opt := Options{Writer: b.f, Reader: b.f, Admin: b.f, Health: b.f, Rejecter: b.f, Auth: gate,
		Registerer: b.metrics, Logger: slog.New(slog.NewTextHandler(&lockedWriter{w: b.log, mu: b.logged}, nil)),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics\n") }),
		Web:     http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!doctype html>") }),
		MCP: func(http.RoundTripper) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }), nil
		}}
	if opt.OAuth, err = auth.NewIssuer(auth.OAuth{Issuer: "https://issuer.example", Resource: "https://mneme.example/mcp"}, nil); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&opt)
	}
	h, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	b.s = h.s
	return b
}

type lockedWriter struct {
	w  io.Writer
	mu *sync.Mutex
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// written is what stands in the log.
func (b *bench) written() string {
	b.logged.Lock()
	defer b.logged.Unlock()
	return b.log.String()
}

// do sends a request; headers come as name, value pairs. Every answer is
// checked against the OpenAPI document.
func (b *bench) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, in)
	r.Host = "127.0.0.1:8787"
	if !b.remote {
		r = r.WithContext(auth.Local(r.Context()))
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	b.s.ServeHTTP(rec, r)
	b.conforms(r, rec)
	return rec
}

// conforms validates an answer against the schema that the document gives for
// its route and status.
func (b *bench) conforms(r *http.Request, rec *httptest.ResponseRecorder) {
	b.t.Helper()
	kind, _, _ := strings.Cut(rec.Header().Get("Content-Type"), ";")
	if kind == mediaProblem {
		b.validate(typedSchema(b.t, typed[memory.Problem]()), rec.Body.String())
		return
	}
	_, pattern := b.s.mux.Handler(r)
	rt := b.s.routes[pattern]
	if rt == nil {
		return
	}
	a, documented := rt.answers[rec.Code]
	if !documented && rec.Code != http.StatusNoContent && !(rt.path == "/readyz" && rec.Code == 503) {
		b.t.Errorf("%s %s: status %d is not documented", r.Method, r.URL, rec.Code)
	}
	if a.body == nil {
		return
	}
	want := a.media
	if want == "" {
		want = "application/json"
	}
	if kind != want {
		b.t.Errorf("%s %s: Content-Type %q, documented is %q", r.Method, r.URL, kind, want)
	}
	schema := typedSchema(b.t, a.body)
	for _, doc := range documents(want, rec.Body.String()) {
		b.validate(schema, doc)
	}
}

// documents are the JSON documents of an answer: one a line, or one an event, of which
// those named error are problems.
func documents(media, body string) []string {
	var docs []string
	switch media {
	case mediaNDJSON:
		docs = slices.Collect(strings.Lines(body))
	case mediaEvents:
		for event := range strings.SplitSeq(body, "\n\n") {
			_, data, found := strings.Cut(event, "data: ")
			if found && !strings.Contains(event, "event: error") {
				docs = append(docs, data)
			}
		}
	default:
		docs = []string{body}
	}
	return docs
}

func (b *bench) validate(schema *jsonschema.Resolved, doc string) {
	b.t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		b.t.Errorf("not JSON: %v\n%s", err, doc)
		return
	}
	if err := schema.Validate(v); err != nil {
		b.t.Errorf("the answer does not fit its schema: %v\n%s", err, doc)
	}
}

// lastCall is the newest call of a port, "" if there was none.
func (b *bench) lastCall() string {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	if len(b.f.calls) == 0 {
		return ""
	}
	return b.f.calls[len(b.f.calls)-1]
}

func problemOf(t *testing.T, rec *httptest.ResponseRecorder) memory.Problem {
	t.Helper()
	var p memory.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("not a problem: %v\n%s", err, rec.Body)
	}
	if p.Status != rec.Code || rec.Header().Get("Content-Type") != mediaProblem {
		t.Errorf("problem %+v came with status %d and %q", p, rec.Code, rec.Header().Get("Content-Type"))
	}
	return p
}
