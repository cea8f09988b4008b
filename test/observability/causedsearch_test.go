package observability

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/embed"
	"mneme/internal/node"
)

// provider is a server of embeddings that a test slows and breaks.
type provider struct {
	*httptest.Server
	fails atomic.Bool
	slow  atomic.Int64 // how long an answer takes
	embed func(text string) []float64
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	m := &provider{embed: func(string) []float64 { return []float64{0.6, 0.8, 0} }}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Input []string }
		err := json.NewDecoder(r.Body).Decode(&req)
		select {
		case <-time.After(time.Duration(m.slow.Load())):
		case <-r.Context().Done():
		}
		if err != nil || m.fails.Load() {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		var out struct {
			Data []any `json:"data"`
		}
		for i, text := range req.Input {
			out.Data = append(out.Data, map[string]any{"index": i, "embedding": m.embed(text)})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *provider) config(t *testing.T) node.Config {
	cfg := alone(t)
	cfg.Embedder = embed.Config{Provider: embed.ProviderOpenAI, Model: "m", BaseURL: m.URL + "/v1", MaxRetries: -1}
	return cfg
}

func TestEmbedderThatFailsIsAlerted(t *testing.T) {
	m, p := newProvider(t), watch(t)
	cfg := m.config(t)
	n := p.opens(cfg)
	p.captured(n, "before")
	p.healthy()
	m.fails.Store(true)
	p.captured(n, "after")
	p.fired("MnemeEmbedderFails")
	p.says(p.follow("MnemeEmbedderFails", at(n, cfg)), "memories are found by text meanwhile", "waiting for theirs")
	m.fails.Store(false)
	p.healthy()
}

// TestSlowEmbedderIsAlerted has searches wait for a provider longer than a second.
func TestSlowEmbedderIsAlerted(t *testing.T) {
	m, p := newProvider(t), watch(t)
	cfg := m.config(t)
	n := p.opens(cfg)
	p.captured(n, "a memory of the harbour")
	p.healthy()
	m.slow.Store(int64(1500 * time.Millisecond))
	if got := beside(20, func(i int) int {
		status, _ := p.search(n, fields{"query": fmt.Sprintf("harbour %d", i)})
		return status
	}); got[http.StatusOK] != 20 {
		t.Fatalf("searches: %v", got)
	}
	p.fired("MnemeSearchesSlow")
	p.follow("MnemeSearchesSlow", at(n, cfg))
	m.slow.Store(0)
	p.speedsUp("MnemeSearchesSlow", func() { p.search(n, nil) })
	p.healthy()
}

// TestTooManySearchesAreAlerted has more searches come than a node works on side by side, since
// each waits for a provider.
func TestTooManySearchesAreAlerted(t *testing.T) {
	m, p := newProvider(t), watch(t)
	cfg := m.config(t)
	n := p.opens(cfg)
	p.captured(n, "a memory of the harbour")
	p.healthy()
	m.slow.Store(int64(time.Minute)) // a search waits for three seconds
	got := beside(150, func(i int) int {
		status, _ := p.search(n, fields{"query": fmt.Sprintf("harbour %d", i)})
		return status
	})
	if got[http.StatusTooManyRequests] < 40 {
		t.Fatalf("searches: %v", got)
	}
	p.fired("MnemeSearchesFail")
	p.follow("MnemeSearchesFail", at(n, cfg))
	m.slow.Store(0)
	p.recovers()
	if status, answer := p.search(n, nil); status != http.StatusOK {
		t.Errorf("%d %s", status, answer)
	}
	p.healthy()
}

// TestRecallThatIsTooLowIsAlerted gives the engine coder vectors that lie in clusters, as those
// of texts do, and starts the node again with the default engine.
func TestRecallThatIsTooLowIsAlerted(t *testing.T) {
	m, p := newProvider(t), watch(t)
	const dims, clusters = 32, 30
	near := func(text string) []float64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		own := rand.New(rand.NewPCG(h.Sum64(), 1))
		centre := rand.New(rand.NewPCG(own.Uint64N(clusters), 2))
		v := make([]float64, dims)
		for i := range v {
			v[i] = centre.NormFloat64() + 0.8*own.NormFloat64()
		}
		return v
	}
	m.embed = near
	cfg := m.config(t)
	cfg.VectorEngine = "coder"
	n := p.opens(cfg)
	p.healthy()
	const batches = 5 // a set of 4096 has a graph
	for b := range batches {
		batch := make([]fields, 1000)
		for i := range batch {
			batch[i] = fields{"agent": "a", "text": fmt.Sprintf("memory %d of batch %d", i, b)}
		}
		if status, answer := p.ask(n, captures, batch); status != http.StatusOK {
			t.Fatalf("%d %.300s", status, answer)
		}
	}
	p.fired("MnemeRecallTooLow")
	p.says(p.follow("MnemeRecallTooLow", at(n, cfg)), "--vector-engine mneme")
	shut(t, n)
	cfg.VectorEngine = "mneme"
	n = p.opens(cfg)
	p.await("the other engine to be measured", func() bool { recall, _ := p.value(n.HTTPURL(), "mneme_vector_recall_ratio"); return recall > 0 })
	p.healthy()
}
