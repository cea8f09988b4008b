package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/client"
	"mneme/memory"
)

// model is a server on loopback that embeds as Ollama does: words fall into
// dimensions by their hash.
type model struct {
	*httptest.Server
	texts atomic.Int64
	hold  atomic.Int64  // requests wait once so many texts were embedded; 0 = never
	held  chan struct{} // gets a value when one begins to wait
}

func newModel(t *testing.T) *model {
	m := &model{held: make(chan struct{}, 1000)}
	m.Server = httptest.NewServer(http.HandlerFunc(m.embed))
	t.Cleanup(m.Close)
	return m
}

func (m *model) embed(w http.ResponseWriter, r *http.Request) {
	var req struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/api/embed" {
		http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
		return
	}
	if n := m.hold.Load(); n > 0 && m.texts.Load() >= n && len(req.Input) > 1 {
		m.held <- struct{}{}
		<-r.Context().Done()
		return
	}
	m.texts.Add(int64(len(req.Input)))
	out := make([][]float64, len(req.Input))
	for i, s := range req.Input {
		out[i] = hashed(s)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": out})
}

func hashed(s string) []float64 {
	v := make([]float64, 32)
	v[0] = 0.01 // never zero
	for _, word := range strings.Fields(s) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(word))
		v[h.Sum64()%uint64(len(v))]++
	}
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= math.Sqrt(sum)
	}
	return v
}

// traffic is what goes on while an embedder changes.
type traffic struct {
	t    *testing.T
	d    *daemon
	stop chan struct{}
	wg   sync.WaitGroup
	seed uint64

	mu       sync.Mutex
	known    []string // texts that were acknowledged
	searches atomic.Int64
	writes   atomic.Int64
}

func note(writer string, n int) string {
	return fmt.Sprintf("note %s%d says that the deploy went well", writer, n)
}

func newTraffic(t *testing.T, d *daemon, count int) *traffic {
	x := &traffic{t: t, d: d, stop: make(chan struct{}), seed: uint64(time.Now().UnixNano())}
	t.Logf("seed %d", x.seed)
	for n := 0; n < count; n += 500 {
		var items []memory.Capture
		for i := range min(500, count-n) {
			items = append(items, memory.Capture{Agent: "tester", Text: note("seed", n+i)})
			x.known = append(x.known, items[i].Text)
		}
		if _, err := d.client.CaptureBatch(t.Context(), "default", items, client.CaptureOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x *traffic) running() bool {
	select {
	case <-x.stop:
		return false
	default:
		return true
	}
}

func (x *traffic) start() {
	for w := range 2 {
		x.wg.Go(func() { x.write(fmt.Sprintf("w%d", w)) })
	}
	for s := range 3 {
		x.wg.Go(func() { x.search(rand.New(rand.NewPCG(x.seed, uint64(s)))) })
	}
}

func (x *traffic) end() {
	close(x.stop)
	x.wg.Wait()
}

func (x *traffic) write(name string) {
	for n := 0; x.running(); n++ {
		text := note(name, n)
		_, err := x.d.client.Capture(x.t.Context(), "default", memory.Capture{Agent: "tester", Text: text}, client.CaptureOptions{})
		if err != nil {
			x.t.Errorf("capture: %v", err)
			return
		}
		x.writes.Add(1)
		x.mu.Lock()
		x.known = append(x.known, text)
		x.mu.Unlock()
	}
}

// search looks for what is known in every mode: none may fail, fall back to
// another mode, or give fewer results than there are.
func (x *traffic) search(rnd *rand.Rand) {
	const limit = 10
	for x.running() {
		x.mu.Lock()
		text := x.known[rnd.IntN(len(x.known))]
		x.mu.Unlock()
		mode := []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector}[rnd.IntN(3)]
		n := limit
		r, err := x.d.client.Search(x.t.Context(), "default", memory.SearchRequest{Query: text, Mode: mode, All: true, Limit: &n})
		x.searches.Add(1)
		switch {
		case err != nil:
			x.t.Errorf("search: %v", err)
			return
		case r.Mode != mode || len(r.Results) != limit:
			x.t.Errorf("a %s search answered as %s with %d results", mode, r.Mode, len(r.Results))
			return
		case mode != memory.ModeVector && !slices.Contains(texts(r.Results), text):
			x.t.Errorf("a %s search does not find %q among %q", mode, text, texts(r.Results))
			return
		}
	}
}

// embedder is the namespace's status.
func (d *daemon) embedder() memory.EmbedderStatus {
	d.t.Helper()
	st, err := d.client.Embedder(d.t.Context(), "default")
	if err != nil {
		d.t.Fatal(err)
	}
	return st
}

// awaitEmbedder asks until cond holds.
func (d *daemon) awaitEmbedder(what string, cond func(memory.EmbedderStatus) bool) memory.EmbedderStatus {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		st := d.embedder()
		if cond(st) {
			return st
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			d.t.Fatalf("waited in vain: %s; %s", what, toJSON(d.t, st))
		}
	}
}

func settled(provider string) func(memory.EmbedderStatus) bool {
	return func(st memory.EmbedderStatus) bool {
		return st.State == memory.EmbedderReady && st.Embedder.Provider == provider && st.Pending == 0
	}
}

// TestSwitchUnderLoad changes the embedder there and back while agents write
// and search.
func TestSwitchUnderLoad(t *testing.T) {
	m := newModel(t)
	d := launch{env: []string{"OLLAMA_HOST=" + m.URL}}.start(t, t.TempDir())
	x := newTraffic(t, d, 1500)
	x.start()
	for _, to := range []string{"ollama:fake", "builtin"} {
		searches, writes := x.searches.Load(), x.writes.Load()
		out := d.must("embedder", "switch", "-n", "default", to, "--wait")
		if !strings.Contains(out, "switched") || !strings.Contains(out, "memctl embedder switch -n default") {
			t.Errorf("%s", out)
		}
		t.Logf("to %s beside %d searches and %d captures", to, x.searches.Load()-searches, x.writes.Load()-writes)
		if x.searches.Load() == searches || x.writes.Load() == writes {
			t.Error("nothing went on beside it")
		}
		provider, _, _ := strings.Cut(to, ":")
		if st := d.embedder(); st.Embedder.Provider != provider || st.LastSwitch == nil || st.LastSwitch.Recall < 0.9 || len(st.Kept) != 1 {
			t.Errorf("%s", toJSON(t, st))
		}
	}
	x.end()
	st := d.awaitEmbedder("the last vectors", settled("builtin"))
	if st.Vectors != st.Records || st.Records != uint64(len(x.known)) {
		t.Errorf("%d of %d records have vectors, %d were acknowledged", st.Vectors, st.Records, len(x.known))
	}
	if out := d.must("embedder", "switch", "-n", "default", "builtin"); !strings.Contains(out, "already") {
		t.Errorf("%s", out)
	}
	before := d.shard().StateHash
	d.must("rebuild")
	if after := d.shard().StateHash; after != before {
		t.Errorf("rebuilt to %s, was %s", after, before)
	}
	noStack(t, d.stderr.String())
	d.term()
}

// TestKillDuringSwitch: kill -9 while the next space is filled. The next start
// goes on with it, and what was made is not made again.
func TestKillDuringSwitch(t *testing.T) {
	m := newModel(t)
	how := launch{env: []string{"OLLAMA_HOST=" + m.URL}}
	dir := t.TempDir()
	d := how.start(t, dir)
	x := newTraffic(t, d, 1000)
	m.hold.Store(m.texts.Load() + 300)
	d.must("embedder", "switch", "-n", "default", "ollama:fake")
	for i := range 3 {
		select {
		case <-m.held:
		case <-time.After(patience):
			t.Fatalf("round %d: the model was not asked: %s", i, toJSON(t, d.embedder()))
		}
		st := d.embedder()
		if st.Building == nil || st.Building.Done == 0 || st.Building.Done >= 1000 || st.Embedder.Provider != "builtin" {
			t.Errorf("round %d: %s", i, toJSON(t, st))
		}
		if got := d.find("default", x.known[i]); len(got) == 0 || got[0] != x.known[i] {
			t.Errorf("round %d: found %q", i, got)
		}
		d.kill()
		for len(m.held) > 0 {
			<-m.held
		}
		m.hold.Add(200)
		if i == 2 {
			m.hold.Store(0)
		}
		d = how.start(t, dir)
		if after := d.embedder(); after.Building != nil && after.Building.Done < st.Building.Done {
			t.Errorf("round %d: %d records had vectors, after the kill %d", i, st.Building.Done, after.Building.Done)
		}
	}
	st := d.awaitEmbedder("the switch", settled("ollama"))
	if st.Vectors != 1000 || st.Records != 1000 {
		t.Errorf("%s", toJSON(t, st))
	}
	// A batch that was under way at each kill, a probe, and queries are on top.
	if n := m.texts.Load(); n > 1000+4*64+100 {
		t.Errorf("%d texts were embedded for 1000", n)
	}
	if got := d.find("default", x.known[999]); len(got) == 0 || got[0] != x.known[999] {
		t.Errorf("found %q", got)
	}
	if e := d.memctl("embedder", "cancel", "-n", "default"); e.code != memory.CodeConflict.ExitCode() {
		t.Errorf("cancel of nothing: %d %s", e.code, e.err)
	}
	if _, err := d.client.SwitchEmbedder(t.Context(), "nobody", memory.SwitchEmbedder{Provider: "builtin"}); !isCode(err, memory.CodeNotFound) {
		t.Error(err)
	}
	d.term()
}

func isCode(err error, code memory.Code) bool {
	var e *memory.Error
	return errors.As(err, &e) && e.Code == code
}
