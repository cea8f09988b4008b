package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"

	"mneme/internal/embed"
	"mneme/internal/otlp"
	"mneme/internal/otlp/otlptest"
	"mneme/internal/spans"
	"mneme/memory"
)

// traced gives a node an exporter to a collector. flush sends what waits; the exporter has
// ended then. At the end of the test, behind the node's, all spans that began must be whole.
func traced(t *testing.T, cfg *Config, endpoint string, share float64) (flush func()) {
	t.Helper()
	id := ""
	if cfg.Cluster != nil {
		id = cfg.Cluster.NodeID
	}
	e, err := otlp.Open(otlp.Options{Endpoint: endpoint, Share: share, Node: id, Logger: cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Traces = e
	whole(t, e)
	flush = func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(flush)
	return flush
}

// asTraced sends a request with a traceparent and returns the answer.
func asTraced(t *testing.T, n *Node, path, trace string, body any) string {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.HTTPURL()+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", traceparent(trace))
	r.Header.Set("Tracestate", "vendor="+secretWords[7])
	r.Header.Set("Baggage", "of="+secretWords[7])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s: %d %s %v", path, resp.StatusCode, answer, err)
	}
	return string(answer)
}

const (
	firstTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	secondTrace = "5bf92f3577b34da6a3ce929d0e0e4736"
)

func traceparent(trace string) string { return "00-" + trace + "-00f067aa0ba902b7-01" }

// tree draws the spans of a trace, each below its parent, with the attributes that are named.
func tree(all []otlptest.Span, trace string, show ...string) string {
	var of []otlptest.Span
	for _, s := range all {
		if fmt.Sprintf("%x", s.TraceId) == trace {
			of = append(of, s)
		}
	}
	return forest(of, []byte{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}, show...)
}

// forest draws the spans below a parent in the order in which they began.
func forest(all []otlptest.Span, parent []byte, show ...string) string {
	slices.SortStableFunc(all, func(a, b otlptest.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	var out strings.Builder
	var below func(parent []byte, indent string)
	below = func(parent []byte, indent string) {
		for _, s := range all {
			if !bytes.Equal(s.ParentSpanId, parent) {
				continue
			}
			out.WriteString(indent + s.Name)
			if s.Node != "" {
				out.WriteString(" @" + s.Node)
			}
			for _, key := range show {
				if v := s.Attribute(key); v != "" {
					out.WriteString(" " + key + "=" + v)
				}
			}
			out.WriteString("\n")
			below(s.SpanId, indent+"  ")
		}
	}
	below(parent, "")
	return out.String()
}

// described checks that each span is in spans.All with its attributes, and that all tell of
// nothing else.
func described(t *testing.T, all []otlptest.Span) {
	t.Helper()
	for _, s := range all {
		kind, ok := spans.KindOf(s.Name)
		if !ok {
			t.Errorf("span %q is not described", s.Name)
		}
		for _, a := range s.Attributes {
			if a.Key != string(spans.ErrorType) && !slices.ContainsFunc(kind.Has, func(k attribute.Key) bool { return string(k) == a.Key }) {
				t.Errorf("span %q has %s, which is not described", s.Name, a.Key)
			}
		}
		if len(s.Events) > 0 || s.TraceState != "" || s.Status.GetMessage() != "" {
			t.Errorf("span %q has more than attributes: %v", s.Name, s)
		}
	}
}

// holdsNone checks that nothing a collector got holds a word.
func holdsNone(t *testing.T, c *otlptest.Collector, words ...string) {
	t.Helper()
	got := bytes.ToLower(c.Bytes())
	for _, word := range words {
		if bytes.Contains(got, []byte(word)) {
			t.Errorf("the collector got %q", word)
		}
	}
}

func TestTracesFromCaptureToSearch(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	w := secretWords
	answer := asTraced(t, n, "/v1/namespaces/default/events?wait=applied", firstTrace, map[string]any{"agent": "tester", "text": "the " + w[0] + " met " + w[1],
		"uri": "mem://default/" + w[2], "tags": []string{w[3]}, "conversation": w[4], "subject": w[5], "metadata": map[string]any{"k": w[6]}, "id": w[7]})
	var captured struct{ Position string }
	if err := json.Unmarshal([]byte(answer), &captured); err != nil || captured.Position == "" {
		t.Fatalf("%v: %s", err, answer)
	}
	asTraced(t, n, "/v1/namespaces/default/search", secondTrace, map[string]any{"query": w[0]})
	postOK(t, n, "/v1/namespaces/default/search", map[string]any{"query": w[0]}) // nobody asks for this one
	// What fails names what it should not.
	post(t, n, "/v1/namespaces/"+w[0]+"/search", `{"query":"`+w[1]+`"}`)
	shut(t, n)
	flush()
	want := `POST /v1/namespaces/{ns}/events http.response.status_code=200
  create_memory gen_ai.memory.store.id=default gen_ai.memory.record.count=1 mneme.position=` + captured.Position + ` mneme.wait=applied
    queue mneme.shard=0
    append mneme.shard=0
    agree mneme.shard=0
    apply mneme.shard=0
`
	show := []string{"http.response.status_code", "gen_ai.memory.store.id", "gen_ai.memory.record.count", "mneme.position", "mneme.wait", "mneme.shard"}
	if got := tree(c.Spans(), firstTrace, show...); got != want {
		t.Errorf("the capture:\n%swant\n%s", got, want)
	}
	want = `POST /v1/namespaces/{ns}/search
  search_memory gen_ai.memory.store.id=default
    open view
    prepare
      embed query
    find
      find words
      gather
    score
    read hits
`
	if got := tree(c.Spans(), secondTrace, "gen_ai.memory.store.id"); got != want {
		t.Errorf("the search:\n%swant\n%s", got, want)
	}
	described(t, c.Spans())
	holdsNone(t, c, append(w, "tester")...)
	if total := len(c.Spans()); total != strings.Count(tree(c.Spans(), firstTrace)+tree(c.Spans(), secondTrace), "\n") {
		t.Errorf("%d spans, some of requests that nobody asked for", total)
	}
}

func TestTraceOfACaptureOverNATS(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	nc, err := nats.Connect(n.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ask := func(subject, trace, body string) string {
		m := &nats.Msg{Subject: subject, Data: []byte(body), Header: nats.Header{"traceparent": {traceparent(trace)}}}
		answer, err := nc.RequestMsg(m, patience)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer.Data)
	}
	if answer := ask("mem.in.default.tester.capture", firstTrace, secretWords[0]+" said "+secretWords[1]); !strings.Contains(answer, "seq") {
		t.Fatal(answer)
	}
	if answer := ask("mem.api.default.search", secondTrace, `{"query":"`+secretWords[1]+`"}`); !strings.Contains(answer, secretWords[0]) {
		t.Fatal(answer)
	}
	shut(t, n)
	flush()
	if got, want := tree(c.Spans(), firstTrace), "process mem.in\n  create_memory\n    queue\n    append\n    agree\n    apply\n"; got != want {
		t.Errorf("the capture:\n%swant\n%s", got, want)
	}
	if got := tree(c.Spans(), secondTrace); !strings.HasPrefix(got, "process mem.api\n  search_memory\n    open view\n") {
		t.Errorf("the search:\n%s", got)
	}
	described(t, c.Spans())
	holdsNone(t, c, append(secretWords, "tester")...)
}

// TestOneTraceShowsBothNodes: a write that another node carries out. One node of the three
// traces nothing, and their states are the same.
func TestOneTraceShowsBothNodes(t *testing.T) {
	c := otlptest.Start(t)
	var flush []func()
	tr := trioOf(t, func(i int, cfg *Config) {
		if i < 2 {
			flush = append(flush, traced(t, cfg, c.URL, 0))
		}
	})
	tr.openAll()
	tr.writes(0, "first", "the namespace is there") // whoever leads
	if at := tr.leader(); at != 0 {
		if _, err := tr.nodes[at].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(0)}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the first node leads", func() bool { return tr.nodes[0].served[0].replica.Leads() })
	asTraced(t, tr.nodes[1], "/v1/namespaces/default/events?wait=applied", firstTrace, map[string]any{"agent": "tester", "text": secretWords[0]})
	tr.same()
	for i, f := range flush {
		shut(t, tr.nodes[i])
		f()
	}
	want := `POST /v1/namespaces/{ns}/events @n2
  forward @n2 mneme.call=capture
    forwarded @n1 mneme.call=capture
      create_memory @n1
        queue @n1
        append @n1
        agree @n1
        apply @n1
`
	if got := tree(c.Spans(), firstTrace, "mneme.call"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	described(t, c.Spans())
	holdsNone(t, c, append(secretWords, "tester")...)
}

// TestStrangersCannotHaveRequestsRecorded: without a token nothing is, whatever they send.
func TestStrangersCannotHaveRequestsRecorded(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	cfg.Auth = "token"
	flush := traced(t, &cfg, c.URL, 1)
	n := open(t, cfg)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.HTTPURL()+"/v1/namespaces", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(spans.Header, traceparent(firstTrace))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Fatal(resp.Status)
	}
	shut(t, n)
	flush()
	if got := c.Spans(); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// TestReloadChangesTheShare of the requests that are recorded.
func TestReloadChangesTheShare(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 0)
	cfg.Process.Reread = func() (Live, memory.ReloadReport, error) { return Live{TraceShare: 1}, memory.ReloadReport{}, nil }
	n := open(t, cfg)
	postOK(t, n, "/v1/namespaces/default/search", map[string]any{"query": "before"})
	if _, err := n.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	postOK(t, n, "/v1/namespaces/default/search", map[string]any{"query": "after"})
	shut(t, n)
	flush()
	requests := 0
	for _, s := range c.Spans() {
		if s.Attribute(string(spans.Route)) != "" {
			requests++
		}
	}
	if requests != 1 {
		t.Errorf("%d of two requests were recorded", requests)
	}
}

// TestCollectorThatIsAwayHoldsNobodyUp: the node works and ends, and says what was lost.
func TestCollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"slow":    func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		"failing": func(w http.ResponseWriter, _ *http.Request) bool { http.Error(w, "no", 500); return true },
	} {
		t.Run(name, func(t *testing.T) {
			c := otlptest.Start(t)
			c.Answer(answer)
			cfg := quiet(t.TempDir())
			flush := traced(t, &cfg, c.URL, 1)
			n := open(t, cfg)
			postOK(t, n, "/v1/namespaces/default/events?wait=applied", map[string]any{"agent": "tester", "text": "deploys happen on Tuesdays"})
			if got := find(t, n, "deploys"); len(got) != 1 {
				t.Errorf("found %v", got)
			}
			flush()
			text, err := fetch(t, n.HTTPURL()+"/metrics", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Traces.Counts(); got.NotTaken < 5 || !strings.Contains(text, fmt.Sprintf("mneme_trace_spans_dropped_total{why=\"collector\"} %d\n", got.NotTaken)) {
				t.Errorf("%+v, and\n%s", got, grep(text, "trace"))
			}
		})
	}
}

// TestExemplarsAreOfRecordedRequests: only OpenMetrics shows them, and only with traces.
func TestExemplarsAreOfRecordedRequests(t *testing.T) {
	metrics := func(n *Node) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.HTTPURL()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	work := func(n *Node) {
		asTraced(t, n, "/v1/namespaces/default/events?wait=applied", firstTrace, map[string]any{"agent": "tester", "text": "deploys happen on Tuesdays"})
		asTraced(t, n, "/v1/namespaces/default/search", secondTrace, map[string]any{"query": "deploys"})
		postOK(t, n, "/v1/namespaces/default/search", map[string]any{"query": "deploys"})
	}
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	work(n)
	var text string
	await(t, "the request is measured", func() bool { // behind its answer
		text = metrics(n)
		return strings.Contains(grep(text, "mneme_http_request_duration_seconds_bucket"), secondTrace)
	})
	for name, trace := range map[string]string{"capture": firstTrace, "log_append": firstTrace, "apply": firstTrace, "search": secondTrace, "http_request": secondTrace} {
		if lines := grep(text, "mneme_"+name+"_duration_seconds_bucket"); !strings.Contains(lines, `# {trace_id="`+trace+`"}`) {
			t.Errorf("%s has no example:\n%s", name, lines)
		}
	}
	if strings.Count(text, `# {trace_id="`) != strings.Count(text, firstTrace)+strings.Count(text, secondTrace) {
		t.Error("a request is an example that nobody recorded")
	}
	off := open(t, quiet(t.TempDir()))
	work(off)
	if text := metrics(off); strings.Contains(text, "trace_id") || strings.Contains(text, "# EOF") {
		t.Error("without traces the metrics are others than before")
	}
}

// TestProviderGetsNoTrace: the request to it is in the trace, and it does not hear of that.
func TestProviderGetsNoTrace(t *testing.T) {
	c := otlptest.Start(t)
	provider := newOllama(t)
	cfg := withOllama(t.TempDir(), provider)
	cfg.Embedder = embed.Config{Provider: embed.ProviderOllama, Model: "m", BaseURL: provider.URL}
	flush := traced(t, &cfg, c.URL, 0)
	n := open(t, cfg)
	asTraced(t, n, "/v1/namespaces/default/search", firstTrace, map[string]any{"query": secretWords[0]})
	shut(t, n)
	flush()
	got := tree(c.Spans(), firstTrace, "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "mneme.texts")
	if want := "      embed query\n        embeddings gen_ai.operation.name=embeddings gen_ai.provider.name=ollama gen_ai.request.model=m mneme.texts=1\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%swant in it\n%s", got, want)
	}
	if asked, traced := provider.asked.Load(), provider.traced.Load(); asked == 0 || traced > 0 {
		t.Errorf("of %d requests to the provider %d had a trace", asked, traced)
	}
	described(t, c.Spans())
	holdsNone(t, c, secretWords...)
}

// TestSpansAreDocumented holds docs/operate/traces.md against what the code says.
func TestSpansAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("| span | what | attributes |\n|---|---|---|\n")
	for _, k := range spans.All() {
		var has []string
		for _, key := range k.Has {
			has = append(has, "`"+string(key)+"`")
		}
		if has == nil {
			has = []string{"–"}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.About, strings.Join(has, ", "))
	}
	generated(t, "docs/operate/traces.md", b.String())
}

// TestNamesThatNobodyHadCheckedWereSent: a request that failed before anybody looked whether there
// is such a namespace, and one that only tries, brought a caller's words to the collector.
func TestNamesThatNobodyHadCheckedWereSent(t *testing.T) {
	c := otlptest.Start(t)
	cfg := quiet(t.TempDir())
	flush := traced(t, &cfg, c.URL, 1)
	n := open(t, cfg)
	post(t, n, "/v1/namespaces", `{"name":"orchid of memory","settings":{"embedder.provider":"openai"}}`)
	post(t, n, "/v1/namespaces", `{"name":"peony","dry_run":true}`)
	post(t, n, "/v1/namespaces/Maria%20Tulip/search", `{"query":"x","at_least":"p0.0.99999.0"}`)
	post(t, n, "/v1/namespaces/rose/events", `{"agent":"a","text":"x"}`)
	shut(t, n)
	flush()
	holdsNone(t, c, "orchid", "peony", "tulip", "rose")
	if !strings.Contains(string(c.Bytes()), spans.SearchMemory) {
		t.Error("nothing was recorded")
	}
}
