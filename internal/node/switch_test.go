package node

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/spans"
	"mneme/memory"
)

// ollama is a server that embeds as Ollama does: words fall into dimensions by
// their hash.
type ollama struct {
	*httptest.Server
	down   atomic.Bool
	texts  atomic.Int64 // embedded so far
	limit  atomic.Int64 // goes down after that many texts; 0 = never
	asked  atomic.Int64 // requests
	traced atomic.Int64 // those with a traceparent
}

const ollamaDims = 16

func newOllama(t *testing.T) *ollama {
	o := &ollama{}
	o.Server = httptest.NewServer(http.HandlerFunc(o.embed))
	t.Cleanup(o.Close)
	return o
}

func (o *ollama) embed(w http.ResponseWriter, r *http.Request) {
	o.asked.Add(1)
	if r.Header.Get(spans.Header) != "" {
		o.traced.Add(1)
	}
	var req struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/api/embed" {
		http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
		return
	}
	if n := o.limit.Load(); n > 0 && o.texts.Load() >= n {
		o.down.Store(true)
	}
	if o.down.Load() {
		http.Error(w, `{"error":"model is gone"}`, http.StatusNotFound)
		return
	}
	o.texts.Add(int64(len(req.Input)))
	out := make([][]float64, len(req.Input))
	for i, s := range req.Input {
		out[i] = wordVector(s)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": out})
}

func wordVector(s string) []float64 {
	v := make([]float64, ollamaDims)
	v[0] = 0.01 // never zero
	word := fnv.New64a()
	add := func() { v[word.Sum64()%ollamaDims]++; word.Reset() }
	for _, c := range []byte(s) {
		if c == ' ' {
			add()
			continue
		}
		_, _ = word.Write([]byte{c})
	}
	add()
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v
}

// withOllama is quiet with an Ollama where its variable says.
func withOllama(dir string, o *ollama) Config {
	cfg := quiet(dir)
	cfg.Environment = func(name string) (string, bool) {
		if name == "OLLAMA_HOST" {
			return o.URL, true
		}
		return "", false
	}
	return cfg
}

func embedderOf(t *testing.T, n *Node) memory.EmbedderStatus {
	t.Helper()
	st, err := n.reads.Embedder(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// awaitEmbedder waits until the status satisfies cond; each applied event is a
// reason to look again, and so is a little time.
func awaitEmbedder(t *testing.T, n *Node, what string, cond func(st memory.EmbedderStatus) bool) memory.EmbedderStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		moved := n.served[0].state.Moved()
		st := embedderOf(t, n)
		if cond(st) {
			return st
		}
		look := time.NewTimer(20 * time.Millisecond)
		select {
		case <-moved:
			look.Stop()
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s; %+v %+v", what, st, st.Building)
		}
	}
}

func fill(t *testing.T, n *Node, count int) {
	t.Helper()
	items := make([]memory.Capture, count)
	for i := range items {
		items[i] = memory.Capture{Agent: "tester", Text: fmt.Sprintf("note %d about deploy %d and review %d", i, i%7, i%11)}
		if i%10 == 0 {
			items[i].Scope = memory.ScopeAgent
		}
	}
	if _, err := n.writes.Capture(t.Context(), "default", items, api.CaptureOptions{}, memory.WaitApplied); err != nil {
		t.Fatal(err)
	}
}

func switchTo(t *testing.T, n *Node, req memory.SwitchEmbedder) bool {
	t.Helper()
	_, began, err := n.writes.SwitchEmbedder(t.Context(), "default", req)
	if err != nil {
		t.Fatal(err)
	}
	return began
}

func isReady(provider string) func(memory.EmbedderStatus) bool {
	return func(st memory.EmbedderStatus) bool {
		return st.State == memory.EmbedderReady && st.Embedder.Provider == provider && st.Pending == 0
	}
}

func TestSwitchEmbedderAndBack(t *testing.T) {
	o := newOllama(t)
	n := open(t, withOllama(t.TempDir(), o))
	fill(t, n, 300)
	if switchTo(t, n, memory.SwitchEmbedder{Provider: "builtin"}) {
		t.Error("a switch to the same space began")
	}
	if !switchTo(t, n, memory.SwitchEmbedder{Provider: "ollama", Model: "m:v1"}) {
		t.Error("a switch did not begin")
	}
	st := awaitEmbedder(t, n, "the switch", isReady("ollama"))
	if st.Vectors != 300 || st.Records != 300 || st.Embedder.Model != "m:v1" || st.Embedder.Dimensions != ollamaDims {
		t.Errorf("%+v", st)
	}
	c := st.LastSwitch
	if c == nil || c.From.Provider != "builtin" || c.To.Provider != "ollama" || c.OldVectors != 300 || c.NewVectors != 300 || c.Sample < 20 || c.Recall < 0.99 || c.Agreement <= 0 || c.Agreement > 1 {
		t.Errorf("%+v", c)
	}
	if len(st.Kept) != 1 || st.Kept[0].Embedder.Provider != "builtin" || st.Kept[0].Records != 300 || !st.Kept[0].Until.After(time.Now().Add(23*time.Hour)) {
		t.Errorf("%+v", st.Kept)
	}
	must(t, n, "note written while ollama embeds")
	awaitEmbedder(t, n, "the vector", isReady("ollama"))
	texts := o.texts.Load()
	if !switchTo(t, n, memory.SwitchEmbedder{Provider: "builtin"}) {
		t.Error("the switch back did not begin")
	}
	st = awaitEmbedder(t, n, "the switch back", isReady("builtin"))
	if st.Vectors != 301 || len(st.Kept) != 1 || st.Kept[0].Embedder.Provider != "ollama" || st.LastSwitch.NewVectors != 301 {
		t.Errorf("%+v", st)
	}
	if o.texts.Load() != texts {
		t.Error("the switch to the built-in model asked Ollama")
	}
	if got := find(t, n, "note written while ollama embeds"); len(got) == 0 || got[0] != "note written while ollama embeds" {
		t.Errorf("%q", got)
	}
	before := shardOf(t, n).StateHash
	report, err := n.operator.Rebuild(t.Context(), nil)
	if err != nil || report.Shards[0].StateHash != before {
		t.Errorf("%+v, %v; before it was %s", report, err, before)
	}
}

// TestSwitchSurvivesRestarts: what was built is kept, what is missing follows,
// also where the node did not come down in order.
func TestSwitchSurvivesRestarts(t *testing.T) {
	t.Parallel()
	o := newOllama(t)
	dir := t.TempDir()
	n := open(t, withOllama(dir, o))
	fill(t, n, 400)
	o.limit.Store(150)
	if !switchTo(t, n, memory.SwitchEmbedder{Provider: "ollama", Model: "m"}) {
		t.Fatal("it did not begin")
	}
	st := awaitEmbedder(t, n, "the provider's end to be noticed", func(st memory.EmbedderStatus) bool {
		return st.Building != nil && st.Building.Error != ""
	})
	b := st.Building
	if b.Phase != memory.PhaseWaiting || b.ErrorAt == nil || b.RetryAt == nil || b.Done == 0 || b.Done >= b.Total || st.Embedder.Provider != "builtin" {
		t.Errorf("%+v", b)
	}
	must(t, n, "written while the provider is away")
	report, err := n.operator.Doctor(t.Context())
	if i := slices.IndexFunc(report.Checks, func(c memory.Check) bool { return c.Name == "embedder change of default" }); err != nil || i < 0 ||
		report.Checks[i].State != "warn" || !strings.Contains(report.Checks[i].Detail, "of 401 records; ") || !strings.Contains(report.Checks[i].Hint, "cancel -n default") {
		t.Errorf("%+v, %v", report.Checks, err)
	}
	shut(t, n)
	n = open(t, withOllama(dir, o)) // it is still away
	st = awaitEmbedder(t, n, "a try after the restart", func(st memory.EmbedderStatus) bool { return st.Building.Error != "" })
	if st.Building.Done != b.Done || st.Building.Total != 401 {
		t.Errorf("%+v, before the restart %+v", st.Building, b)
	}
	shut(t, n)
	// A node that nobody told where that provider is.
	n = open(t, quiet(dir))
	st = awaitEmbedder(t, n, "a try without the provider", func(st memory.EmbedderStatus) bool { return st.Building.Error != "" })
	if got := find(t, n, "written while the provider is away"); len(got) == 0 {
		t.Error("nothing is found")
	}
	shut(t, n)
	o.limit.Store(0)
	o.down.Store(false)
	before := o.texts.Load()
	n = open(t, withOllama(dir, o))
	st = awaitEmbedder(t, n, "the switch", isReady("ollama"))
	if st.Vectors != 401 || o.texts.Load()-before > 401-int64(b.Done)+64 {
		t.Errorf("%d records have vectors, %d were embedded for it, %d had them before", st.Vectors, o.texts.Load()-before, b.Done)
	}
}

func TestSwitchRefusals(t *testing.T) {
	o := newOllama(t)
	n := open(t, withOllama(t.TempDir(), o))
	fill(t, n, 5)
	before := shardOf(t, n).StateHash
	try := func(what string, code memory.Code, req memory.SwitchEmbedder) {
		t.Helper()
		_, _, err := n.writes.SwitchEmbedder(t.Context(), "default", req)
		if memory.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	o.down.Store(true)
	try("away", memory.CodeUnavailable, memory.SwitchEmbedder{Provider: "ollama", Model: "m", Dimensions: ollamaDims})
	try("unknown", memory.CodeInvalid, memory.SwitchEmbedder{Provider: "skynet"})
	try("none", memory.CodeInvalid, memory.SwitchEmbedder{Provider: "none"})
	try("no key", memory.CodeInvalid, memory.SwitchEmbedder{Provider: "gemini"})
	try("model that is not built in", memory.CodeInvalid, memory.SwitchEmbedder{Provider: "builtin", Model: "nonsense"})
	try("dimensions", memory.CodeInvalid, memory.SwitchEmbedder{Provider: "ollama", Dimensions: -1})
	if _, _, err := n.writes.SwitchEmbedder(t.Context(), "nobody", memory.SwitchEmbedder{Provider: "builtin"}); memory.CodeOf(err) != memory.CodeNotFound {
		t.Error(err)
	}
	if _, err := n.writes.CancelSwitch(t.Context(), "default"); memory.CodeOf(err) != memory.CodeConflict {
		t.Error(err)
	}
	if st := embedderOf(t, n); st.Building != nil || shardOf(t, n).StateHash != before {
		t.Errorf("something changed: %+v", st)
	}
	// One under way, another one asked for, cancelled, begun anew.
	o.down.Store(false)
	o.limit.Store(o.texts.Load() + 2) // it shows its size, and that it works
	if !switchTo(t, n, memory.SwitchEmbedder{Provider: "ollama", Model: "m"}) || switchTo(t, n, memory.SwitchEmbedder{Provider: "ollama", Model: "m", Dimensions: ollamaDims}) {
		t.Error("it begins once")
	}
	try("the current one meanwhile", memory.CodeConflict, memory.SwitchEmbedder{Provider: "builtin"})
	st, err := n.writes.CancelSwitch(t.Context(), "default")
	if err != nil || st.Building != nil || st.Embedder.Provider != "builtin" {
		t.Errorf("%+v %v", st, err)
	}
	o.limit.Store(0)
	o.down.Store(false)
	switchTo(t, n, memory.SwitchEmbedder{Provider: "ollama", Model: "m"})
	awaitEmbedder(t, n, "the switch", isReady("ollama"))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n.draining.Store(true)
	try("shutting down", memory.CodeUnavailable, memory.SwitchEmbedder{Provider: "builtin"})
	if _, err := n.writes.CancelSwitch(ctx, "default"); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Error(err)
	}
	n.draining.Store(false)
}

// TestDeletedMidway: nothing of the namespace is left behind.
func TestDeletedMidway(t *testing.T) {
	o := newOllama(t)
	n := open(t, withOllama(t.TempDir(), o))
	fill(t, n, 200)
	o.limit.Store(70)
	switchTo(t, n, memory.SwitchEmbedder{Provider: "ollama", Model: "m"})
	awaitEmbedder(t, n, "an error", func(st memory.EmbedderStatus) bool { return st.Building.Error != "" })
	if _, err := n.writes.DeleteNamespace(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.writes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "default"}); err != nil {
		t.Fatal(err)
	}
	if st := embedderOf(t, n); st.Building != nil || st.Records != 0 || len(st.Kept) != 0 {
		t.Errorf("%+v", st)
	}
	must(t, n, "a new beginning")
}
