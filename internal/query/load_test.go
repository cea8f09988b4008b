package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

func (w *world) fill(ns string, n int) {
	g := rand.New(rand.NewPCG(1, 2))
	var batch []memory.Capture
	for i := range n {
		batch = append(batch, memory.Capture{Agent: "ann", Text: fmt.Sprintf("%s %s %d", vocabulary[g.IntN(len(vocabulary))], vocabulary[g.IntN(len(vocabulary))], i)})
	}
	w.Capture(ns, batch...)
}

func TestDroppedNamespaceLeavesNoVectors(t *testing.T) {
	w := newWorld(t, smallGraphs)
	w.Namespace("team", withBuiltin())
	w.Namespace("other", withBuiltin())
	w.fill("team", 40)
	w.fill("other", 40)
	w.Drop("team")
	if n := len(w.views.Sets()); n != 1 {
		t.Errorf("%d sets", n)
	}
	w.Namespace("team", withBuiltin())
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
	w := newWorld(t, smallGraphs)
	w.Namespace("team", withBuiltin())
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
	loop(func() error { return w.views.Load(context.Background()) })
	for range 2 {
		loop(func() error {
			r, err := w.svc.Open(context.Background(), "team", "ann", views.Freshness{})
			if err != nil {
				return err
			}
			res, err := r.Search(context.Background(), memory.SearchRequest{Query: "river cache", Mode: memory.ModeVector, All: true, Limit: ptr(100)})
			if err == nil && len(res.Results) != 100 {
				err = fmt.Errorf("%d results, 100 exist", len(res.Results))
			}
			w.views.VectorStatus()
			if cerr := r.Close(); err == nil {
				err = cerr
			}
			return err
		})
	}
	for i := range 60 {
		id := w.One("team", "ann", fmt.Sprintf("newest word%d", i))
		for _, mode := range []memory.Mode{memory.ModeVector, memory.ModeText} {
			res := w.search("team", "", memory.SearchRequest{Query: fmt.Sprintf("word%d", i), Mode: mode, All: true, Limit: ptr(1)})
			if len(res.Results) != 1 || res.Results[0].ID != id {
				t.Errorf("%s does not find what was just acknowledged: %v", mode, texts(res.Results))
			}
		}
		w.Forget("team", id, "ann", events.ScopeTeam)
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
	w.Namespace("team", withBuiltin())
	w.fill("team", 30)
	want := w.search("team", "", memory.SearchRequest{Query: "river cache"})
	sibling, err := w.State.Sibling()
	w.OK(err)
	v := w.State.View()
	for seq := uint64(1); seq <= w.State.Cursor().Seq; seq++ {
		raw, err := v.Frame(seq)
		w.OK(err)
		f, err := events.DecodeFrame(raw)
		w.OK(err)
		contributions, err := w.Deriver().Frame(&f, nil)
		w.OK(err)
		c := sibling.Cursor()
		_, err = sibling.ApplyLocal(&projections.Range{Pipeline: projections.PipelineVersion, Previous: c.Seq, Chain: c.Chain, Frames: []projections.RangeFrame{{Bytes: raw, Contributions: contributions}}})
		w.OK(err)
	}
	w.OK(v.Close())
	w.OK(w.State.Swap(sibling))
	during := w.search("team", "", memory.SearchRequest{Query: "river cache"})
	w.OK(w.views.Load(context.Background()))
	after := w.search("team", "", memory.SearchRequest{Query: "river cache"})
	for _, got := range []memory.SearchResponse{during, after} {
		if !slices.Equal(texts(got.Results), texts(want.Results)) || got.Position != want.Position {
			t.Errorf("got %v, want %v", texts(got.Results), texts(want.Results))
		}
	}
}
