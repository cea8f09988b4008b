package node

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/memory"
)

// ollama is a server that embeds as Ollama does: words fall into dimensions by
// their hash.
type ollama struct {
	*httptest.Server
	down  atomic.Bool
	texts atomic.Int64 // embedded so far
	limit atomic.Int64 // goes down after that many texts; 0 = never
}

const ollamaDims = 16

func newOllama(t *testing.T) *ollama {
	o := &ollama{}
	o.Server = httptest.NewServer(http.HandlerFunc(o.embed))
	t.Cleanup(o.Close)
	return o
}

func (o *ollama) embed(w http.ResponseWriter, r *http.Request) {
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
	st, err := n.Embedder(t.Context(), "default")
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
		moved := n.state.Moved()
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
	if _, err := n.Capture(t.Context(), "default", items, api.CaptureOptions{}, memory.WaitApplied); err != nil {
		t.Fatal(err)
	}
}

func switchTo(t *testing.T, n *Node, req memory.SwitchEmbedder) bool {
	t.Helper()
	_, began, err := n.SwitchEmbedder(t.Context(), "default", req)
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
	report, err := n.Rebuild(t.Context(), nil)
	if err != nil || report.Shards[0].StateHash != before {
		t.Errorf("%+v, %v; before it was %s", report, err, before)
	}
}
