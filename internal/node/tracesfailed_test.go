package node

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/embed"
	"mneme/internal/otlp"
	"mneme/internal/otlp/otlptest"
	"mneme/internal/spans"
	"mneme/memory"
)

// began keeps every span that begins. It is an sdk.SpanProcessor.
type began struct {
	mu  sync.Mutex
	all []sdk.ReadOnlySpan
}

func (b *began) OnStart(_ context.Context, s sdk.ReadWriteSpan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, s)
}

func (b *began) OnEnd(sdk.ReadOnlySpan)           {}
func (b *began) ForceFlush(context.Context) error { return nil }
func (b *began) Shutdown(context.Context) error   { return nil }

// whole checks, when the node has ended, that every span took some time, ended, and lies within
// its parent.
func whole(t *testing.T, e *otlp.Exporter) {
	t.Helper()
	b := &began{}
	e.RegisterSpanProcessor(b)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		byID := map[trace.SpanID]sdk.ReadOnlySpan{}
		for _, s := range b.all {
			byID[s.SpanContext().SpanID()] = s
		}
		for _, s := range b.all {
			if s.EndTime().IsZero() {
				t.Errorf("span %q has not ended", s.Name())
				continue
			}
			if !s.EndTime().After(s.StartTime()) {
				t.Errorf("span %q took no time", s.Name())
			}
			parent := byID[s.Parent().SpanID()]
			if parent != nil && (s.StartTime().Before(parent.StartTime()) || s.EndTime().After(parent.EndTime())) {
				t.Errorf("span %q, %v to %v, is not within %q, %v to %v", s.Name(), s.StartTime(), s.EndTime(), parent.Name(), parent.StartTime(), parent.EndTime())
			}
		}
	})
}

// TestFailedRequestsTellTheirCodeOnly: what failed is told in routes, templates and codes, and
// nothing of what the caller sent.
func TestFailedRequestsTellTheirCodeOnly(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 1)
	n := open(t, cfg)
	w := secretWords
	answers := func(want, status int, body string) {
		t.Helper()
		if status != want {
			t.Fatalf("%d %s, want %d", status, body, want)
		}
	}
	ask := func(want int, path, body string) {
		t.Helper()
		status, answer := post(t, n, path, body)
		answers(want, status, answer)
	}
	ask(404, "/v1/namespaces/"+w[0]+"/search", `{"query":"`+w[1]+`"}`)
	record := must(t, n, w[2]).RecordID
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.HTTPURL()+"/v1/namespaces/default/records/"+record, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	ask(400, "/v1/namespaces/default/events", `{"agent":"tester","`+w[3])
	ask(200, "/v1/search", `{"namespaces":["default"],"as":"`+w[4]+`","query":"`+w[5]+`"}`)
	shut(t, n)
	flush()
	want := `POST /v1/namespaces/{ns}/search http.route=/v1/namespaces/{ns}/search http.response.status_code=404
  search_memory error.type=not_found
    open view error.type=not_found
GET /v1/namespaces/{ns}/records/{id} http.route=/v1/namespaces/{ns}/records/{id} http.response.status_code=200
  open view
POST /v1/namespaces/{ns}/events http.route=/v1/namespaces/{ns}/events http.response.status_code=400
POST /v1/search http.route=/v1/search http.response.status_code=200
  search_memory
    open view
`
	if got := forest(c.Spans(), nil, "http.route", "http.response.status_code", "error.type", "gen_ai.memory.store.id"); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%swant first\n%s", got, want)
	}
	described(t, c.Spans())
	holdsNone(t, c, append(w, "tester", strings.ToLower(record))...)
}

// TestRefusedCapturesOverNATSTellTheirCodeOnly, wherever on their way they are refused.
func TestRefusedCapturesOverNATSTellTheirCodeOnly(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 1)
	n := open(t, cfg)
	nc, err := nats.Connect(n.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, refused := range []struct{ subject, body string }{
		{"mem.in.default." + secretWords[0] + ".capture", `{"text":"x","` + secretWords[1] + `":1}`},                  // as it is read
		{"mem.in." + secretWords[2] + ".tester.capture", secretWords[3]},                                              // of a namespace that is not there
		{"mem.in.default.tester.capture", `{"text":"x","uri":"mem://` + secretWords[4] + `/elsewhere"}`},              // as it is looked at
		{"mem.api." + secretWords[5] + ".search", `{"query":"` + secretWords[6] + `","as":"` + secretWords[7] + `"}`}, // a search
	} {
		answer, err := nc.Request(refused.subject, []byte(refused.body), patience)
		if err != nil || !strings.Contains(string(answer.Data), "code") {
			t.Fatalf("%s: %v %s", refused.subject, err, answer.Data)
		}
	}
	shut(t, n)
	flush()
	want := `process mem.in messaging.destination.template=mem.in.{ns}.{agent}.capture error.type=invalid
process mem.in messaging.destination.template=mem.in.{ns}.{agent}.capture error.type=not_found
  create_memory error.type=not_found
process mem.in messaging.destination.template=mem.in.{ns}.{agent}.capture error.type=invalid
  create_memory gen_ai.memory.store.id=default
process mem.api messaging.destination.template=mem.api.*.search error.type=not_found
  search_memory error.type=not_found
    open view error.type=not_found
`
	if got := forest(c.Spans(), nil, "messaging.destination.template", "error.type", "gen_ai.memory.store.id"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	described(t, c.Spans())
	holdsNone(t, c, append(secretWords, "tester")...)
}

// TestWordsOfAProviderAreNotSent: it may say again what it was sent.
func TestWordsOfAProviderAreNotSent(t *testing.T) {
	c := otlptest.Start(t)
	var failing atomic.Bool
	provider := &ollama{}
	provider.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "nobody may see " + secretWords[1]})
			return
		}
		provider.embed(w, r)
	}))
	t.Cleanup(provider.Close)
	cfg := withOllama(t.TempDir(), provider)
	cfg.Embedder = embed.Config{Provider: embed.ProviderOllama, Model: "m", BaseURL: provider.URL}
	flush := traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	failing.Store(true)
	asTraced(t, n, "/v1/namespaces/default/search", firstTrace, map[string]any{"query": secretWords[0]})
	shut(t, n)
	flush()
	if got, want := tree(c.Spans(), firstTrace, "error.type"), "      embed query\n        embeddings error.type=auth\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%swant in it\n%s", got, want)
	}
	described(t, c.Spans())
	holdsNone(t, c, secretWords...)
}

// TestTraceOfACaptureThatWaitsForItsVectors: the wait has a span of its own.
func TestTraceOfACaptureThatWaitsForItsVectors(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	asTraced(t, n, "/v1/namespaces/default/events?wait="+string(memory.WaitSearchable), firstTrace, map[string]any{"agent": "tester", "text": secretWords[0]})
	shut(t, n)
	flush()
	if got := c.Spans(); !slices.ContainsFunc(got, func(s otlptest.Span) bool { return s.Name == spans.Await }) {
		t.Errorf("nothing waited:\n%s", tree(got, firstTrace))
	}
	described(t, c.Spans())
	holdsNone(t, c, append(secretWords, "tester")...)
}

// TestReaderOfSeveralShardsIsNotSent: who searches is in no span, however many shards answer.
func TestReaderOfSeveralShardsIsNotSent(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	cfg.Shards = 2
	flush := traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	asTraced(t, n, "/v1/search", firstTrace, map[string]any{"namespaces": []string{"default"}, "as": secretWords[0], "query": secretWords[1]})
	shut(t, n)
	flush()
	if got, want := tree(c.Spans(), firstTrace, "gen_ai.memory.store.id"), "POST /v1/search\n  search_memory\n    open view\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%swant first\n%s", got, want)
	}
	described(t, c.Spans())
	holdsNone(t, c, secretWords...)
}
