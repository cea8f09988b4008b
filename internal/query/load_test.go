package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/memory"
)

// graphs makes graphs of small sets.
func graphs(s *Service) { s.vectorOpt.ExactBelow, s.vectorOpt.GuardSample = 16, 8 }

func (w *world) waitGraphs() {
	w.t.Helper()
	for _, set := range w.svc.vectors.Load().all() {
		w.ok(set.set.Wait(context.Background()))
	}
}

func (w *world) fill(ns string, n int) {
	g := rand.New(rand.NewPCG(1, 2))
	var batch []memory.Capture
	for i := range n {
		batch = append(batch, memory.Capture{Agent: "ann", Text: fmt.Sprintf("%s %s %d", vocabulary[g.IntN(len(vocabulary))], vocabulary[g.IntN(len(vocabulary))], i)})
	}
	w.capture(ns, batch...)
}

func TestGraphsAreSavedAndTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vectors")
	with := func(o *Options) { o.GraphDir = dir }
	w := newWorld(t, with)
	graphs(w.svc)
	w.namespace("team", withBuiltin())
	w.namespace("small", withBuiltin())
	w.fill("team", 60)
	w.fill("small", 3)
	w.waitGraphs()
	if st := w.svc.VectorStatus(); st.Engine != "mneme" || st.RecallGuard.State != "ok" || st.RecallGuard.Recall < 0.95 {
		t.Errorf("status %+v", st)
	}
	want := w.search("team", "", memory.SearchRequest{Query: "river cache", Mode: memory.ModeVector})
	w.ok(w.svc.Close())
	w.ok(w.svc.Close())
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 || !strings.HasSuffix(files[0], graphSuffix) {
		t.Fatalf("files %v", files)
	}
	raw, err := os.ReadFile(files[0])
	w.ok(err)
	if strings.Contains(string(raw), "river") {
		t.Error("a graph file holds text")
	}
	w.ok(os.WriteFile(filepath.Join(dir, "ffffffff-00.graph"), nil, 0o600)) // of a set that is no more

	check := func() {
		t.Helper()
		w.waitGraphs()
		got := w.search("team", "", memory.SearchRequest{Query: "river cache", Mode: memory.ModeVector})
		if !slices.Equal(texts(got.Results), texts(want.Results)) {
			t.Errorf("got %v, want %v", texts(got.Results), texts(want.Results))
		}
	}
	w.restart(with)
	graphs(w.svc)
	w.ok(w.svc.Load(context.Background()))
	check()
	w.ok(w.svc.Close())
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("files %v", files)
	}
	w.ok(os.WriteFile(files[0], raw[:len(raw)/2], 0o600)) // damage
	w.restart(with)
	graphs(w.svc)
	w.ok(w.svc.Load(context.Background()))
	check()
	w.svc.opt.GraphDir = filepath.Join(files[0], "not a folder")
	if err := w.svc.Close(); err == nil {
		t.Error("graphs cannot have been saved")
	}
}

func TestExactEngineHasNoGraph(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Engine = vector.EngineExact; o.GraphDir = t.TempDir() })
	graphs(w.svc)
	w.namespace("team", withBuiltin())
	w.fill("team", 40)
	w.waitGraphs()
	if st := w.svc.VectorStatus(); st.Engine != "exact" || st.RecallGuard.State != "none" {
		t.Errorf("%+v", st)
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "river", Mode: memory.ModeVector, Limit: ptr(40)}); len(res.Results) != 40 {
		t.Errorf("%d results", len(res.Results))
	}
}

func TestDroppedNamespaceLeavesNoVectors(t *testing.T) {
	w := newWorld(t)
	graphs(w.svc)
	w.namespace("team", withBuiltin())
	w.namespace("other", withBuiltin())
	w.fill("team", 40)
	w.fill("other", 40)
	w.drop("team")
	if n := len(w.svc.vectors.Load().all()); n != 1 {
		t.Errorf("%d sets", n)
	}
	w.namespace("team", withBuiltin())
	if res := w.search("team", "", memory.SearchRequest{Query: "river"}); len(res.Results) != 0 {
		t.Errorf("a reused name does not start empty: %v", texts(res.Results))
	}
	w.fill("team", 2)
	if res := w.search("team", "", memory.SearchRequest{Query: "river"}); len(res.Results) != 2 {
		t.Errorf("%v", texts(res.Results))
	}
}

// TestLoadAmidWritesAndSearches loads again and again while records come, go
// and are looked for: what was acknowledged before a search is in its answer.
func TestLoadAmidWritesAndSearches(t *testing.T) {
	w := newWorld(t)
	graphs(w.svc)
	w.namespace("team", withBuiltin())
	w.fill("team", 100)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	fail := make(chan error, 8)
	loop := func(f func() error) {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := f(); err != nil {
					fail <- err
					return
				}
			}
		})
	}
	loop(func() error { return w.svc.Load(context.Background()) })
	for range 2 {
		loop(func() error {
			r, err := w.svc.Authorize(context.Background(), "team", "ann", Freshness{})
			if err != nil {
				return err
			}
			res, err := r.Search(context.Background(), memory.SearchRequest{Query: "river cache", Mode: memory.ModeVector, Limit: ptr(100)})
			if err == nil && len(res.Results) != 100 {
				err = fmt.Errorf("%d results, 100 exist", len(res.Results))
			}
			w.svc.VectorStatus()
			if cerr := r.Close(); err == nil {
				err = cerr
			}
			return err
		})
	}
	for i := range 60 {
		id := w.one("team", "ann", fmt.Sprintf("newest word%d", i))
		for _, mode := range []memory.Mode{memory.ModeVector, memory.ModeText} {
			res := w.search("team", "", memory.SearchRequest{Query: fmt.Sprintf("word%d", i), Mode: mode, Limit: ptr(1)})
			if len(res.Results) != 1 || res.Results[0].ID != id {
				t.Errorf("%s does not find what was just acknowledged: %v", mode, texts(res.Results))
			}
		}
		w.forget("team", id, "ann", events.ScopeTeam)
	}
	cancel()
	wg.Wait()
	close(fail)
	for err := range fail {
		t.Error(err)
	}
}

// TestSwappedState: a rebuild beside gives a state with other rows' addresses
// and the same answers.
func TestSwappedState(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", withBuiltin())
	w.fill("team", 30)
	want := w.search("team", "", memory.SearchRequest{Query: "river cache"})
	sibling, err := w.state.Sibling()
	w.ok(err)
	v := w.state.View()
	for seq := uint64(1); seq <= w.state.Cursor().Seq; seq++ {
		raw, err := v.Frame(seq)
		w.ok(err)
		f, err := events.DecodeFrame(raw)
		w.ok(err)
		contributions, err := w.der.Frame(&f, nil)
		w.ok(err)
		c := sibling.Cursor()
		_, err = sibling.ApplyLocal(&projections.Range{Pipeline: projections.PipelineVersion, Previous: c.Seq, Chain: c.Chain, Frames: []projections.RangeFrame{{Bytes: raw, Contributions: contributions}}})
		w.ok(err)
	}
	w.ok(v.Close())
	w.ok(w.state.Swap(sibling))
	during := w.search("team", "", memory.SearchRequest{Query: "river cache"})
	w.ok(w.svc.Load(context.Background()))
	after := w.search("team", "", memory.SearchRequest{Query: "river cache"})
	for _, got := range []memory.SearchResponse{during, after} {
		if !slices.Equal(texts(got.Results), texts(want.Results)) || got.Position != want.Position {
			t.Errorf("got %v, want %v", texts(got.Results), texts(want.Results))
		}
	}
}

// TestLoadFails leaves the old view in its place.
func TestLoadFails(t *testing.T) {
	w := newWorld(t)
	w.namespace("team", withBuiltin())
	w.fill("team", 5)
	old := w.svc.vectors.Load()
	good := w.svc.vectorOpt
	w.svc.vectorOpt.Params.M = 1 // refused
	if err := w.svc.Load(context.Background()); err == nil {
		t.Error("options out of range")
	}
	w.svc.vectorOpt = good
	if w.svc.vectors.Load() != old {
		t.Error("the view was replaced")
	}
	if res := w.search("team", "", memory.SearchRequest{Query: "river", Mode: memory.ModeVector}); len(res.Results) != 5 {
		t.Errorf("%v", texts(res.Results))
	}
}
