package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/querytest"
	"mneme/internal/settings"
	"mneme/memory"
)

var outsideSpace = embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: 3, Normalised: true, Version: 1}

// counted counts what it is asked.
type counted struct {
	outside
	asked atomic.Int64
}

func (c *counted) For(context.Context, embed.Space) (embed.Embedder, error) { return c, nil }

func (c *counted) Embed(ctx context.Context, p embed.Purpose, texts []string) ([][]float32, error) {
	c.asked.Add(1)
	return c.outside.Embed(ctx, p, texts)
}

func builtinSpaceOf(t testing.TB) embed.Space {
	t.Helper()
	return settings.Resolve(withBuiltin()).Space
}

func firstBytes(s embed.Space) []byte {
	key := settings.KeyOf(s)
	return key[:2]
}

func unit(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
}

// spaceEvent folds an event about a namespace's spaces.
func (w *world) spaceEvent(typ events.Type, ns string, space embed.Space) projections.Outcome {
	w.T.Helper()
	s := settings.SpaceEvent(space, nil)
	return w.Apply(&querytest.Item{Header: events.Header{Type: typ, Namespace: w.Space[ns]}, Payload: s.Encode(), Key: w.Keys.Cluster()})[0].Outcome
}

// sets names the sets that are in memory.
func (w *world) sets() (out []string) {
	for _, set := range w.views.Sets() {
		out = append(out, set.String())
	}
	slices.Sort(out)
	return out
}

func (w *world) wantSets(when string, want ...string) {
	w.T.Helper()
	slices.Sort(want)
	if got := w.sets(); !slices.Equal(got, want) {
		w.T.Errorf("%s: sets %q, want %q", when, got, want)
	}
}

// TestSpacesSideBySide: a search uses the space of the position that it reads
// at, whatever is built or dropped beside it.
func TestSpacesSideBySide(t *testing.T) {
	o := &counted{outside: outside{space: outsideSpace}}
	w := newWorld(t, func(opt *options) { opt.Embedders = o })
	w.Namespace("team", withBuiltin())
	first := w.One("team", "ann", "a ship on the sea")
	second := w.One("team", "ann", "land in sight")
	old, next := fmt.Sprintf("%x", firstBytes(builtinSpaceOf(t))), fmt.Sprintf("%x", firstBytes(outsideSpace))
	w.wantSets("one space", "partition 0, space "+old+": 2 vectors")
	if got := w.spaceEvent(events.TypeSpaceBuilding, "team", outsideSpace); got != projections.OutcomeApplied {
		t.Fatal(got)
	}
	w.attachIn(outsideSpace, "team", second, 1, "ann", events.ScopeTeam, []float32{0, 0, 1})
	w.wantSets("building", "partition 0, space "+next+": 1 vectors", "partition 0, space "+old+": 2 vectors")
	vectorOnly := memory.SearchRequest{Query: "sea", Mode: memory.ModeVector, All: true}
	if got := w.search("team", "", vectorOnly); len(got.Results) != 2 {
		t.Errorf("while the next space is built: %d results", len(got.Results))
	}
	before := w.reader("team", "")
	w.attachIn(outsideSpace, "team", first, 1, "ann", events.ScopeTeam, []float32{0, 1, 0})
	w.restart(func(opt *options) { opt.Embedders = o })
	w.wantSets("after a restart", "partition 0, space "+next+": 2 vectors", "partition 0, space "+old+": 2 vectors")
	if got := w.spaceEvent(events.TypeSpaceSwitched, "team", outsideSpace); got != projections.OutcomeApplied {
		t.Fatal(got)
	}
	if got := w.search("team", "", vectorOnly); len(got.Results) != 2 || got.Results[0].ID != second || o.asked.Load() == 0 {
		t.Errorf("after the switch: %+v", got.Results)
	}
	asked := o.asked.Load()
	if got, err := before.Search(context.Background(), vectorOnly); err != nil || len(got.Results) != 2 || o.asked.Load() != asked {
		t.Errorf("a reader from before: %+v, %v", got.Results, err)
	}
	st, ns, err := w.svc.Embedder(context.Background(), "team")
	w.OK(err)
	if ns != w.Space["team"] || st.State != memory.EmbedderReady || st.Vectors != 2 || len(st.Kept) != 1 || st.Kept[0].Records != 2 || st.Embedder.Space != outsideSpace.ID() {
		t.Errorf("%+v", st)
	}
	if got := w.spaceEvent(events.TypeSpaceDropped, "team", builtinSpaceOf(t)); got != projections.OutcomeApplied {
		t.Fatal(got)
	}
	w.wantSets("dropped", "partition 0, space "+next+": 2 vectors")
	w.Drop("team")
	w.wantSets("deleted")
	_, _, err = w.svc.Embedder(context.Background(), "team")
	wantCode(t, err, memory.CodeNotFound)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err = w.svc.Embedder(gone, "team")
	wantCode(t, err, memory.CodeTimeout)
}

// TestDroppedAndBuiltAgain: the same space once more, in one batch with its
// end, numbers its vectors anew.
func TestDroppedAndBuiltAgain(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	for i := range 5 {
		w.One("team", "ann", fmt.Sprintf("note %d", i))
	}
	w.spaceEvent(events.TypeSpaceBuilding, "team", outsideSpace)
	id := w.One("team", "ann", "with both")
	w.attachIn(outsideSpace, "team", id, 1, "ann", events.ScopeTeam, []float32{1, 0, 0})
	w.wantSets("built", fmt.Sprintf("partition 0, space %x: 1 vectors", firstBytes(outsideSpace)), fmt.Sprintf("partition 0, space %x: 6 vectors", firstBytes(builtinSpaceOf(t))))
	s := settings.SpaceEvent(outsideSpace, nil)
	event := func(typ events.Type) *querytest.Item {
		return &querytest.Item{Header: events.Header{Type: typ, Namespace: w.Space["team"]}, Payload: s.Encode(), Key: w.Keys.Cluster()}
	}
	for i, r := range w.Apply(event(events.TypeSpaceDropped), event(events.TypeSpaceBuilding)) {
		if r.Outcome != projections.OutcomeApplied {
			t.Errorf("event %d: %s", i, r.Outcome)
		}
	}
	w.attachIn(outsideSpace, "team", id, 1, "ann", events.ScopeTeam, []float32{0, 1, 0})
	if got := len(w.sets()); got != 2 {
		t.Errorf("%d sets", got)
	}
	before := w.sets()
	w.restart()
	w.wantSets("after a restart", before...)
}

// TestCompareSpaces holds recall and agreement to spaces of which they are
// known: one is the other turned around.
func TestCompareSpaces(t *testing.T) {
	for _, agree := range []bool{true, false} {
		t.Run(fmt.Sprint("agree=", agree), func(t *testing.T) {
			w := newWorld(t)
			w.Namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(outsideSpace)})
			target := outsideSpace
			target.Model = "another"
			rnd := rand.New(rand.NewPCG(1, 2))
			var ids []string
			for i := range 60 {
				c := memory.Capture{Agent: "ann", Text: fmt.Sprintf("note %d", i)}
				if i%4 == 0 {
					c.Scope = memory.ScopeAgent
				}
				ids = append(ids, w.Capture("team", c)...)
			}
			vectors := make([][]float32, len(ids))
			scope := func(i int) events.Scope {
				if i%4 == 0 {
					return events.ScopeAgent
				}
				return events.ScopeTeam
			}
			for i, id := range ids {
				v := []float32{float32(rnd.NormFloat64()), float32(rnd.NormFloat64()), float32(rnd.NormFloat64())}
				unit(v)
				vectors[i] = v
				w.attach("team", id, 1, "ann", scope(i), v)
			}
			w.spaceEvent(events.TypeSpaceBuilding, "team", target)
			for i, id := range ids {
				v := vectors[i]
				if !agree {
					v = vectors[(i*29+4)%len(ids)] // i to i+4 are of one scope, 29 mixes
				}
				w.attachIn(target, "team", id, 1, "ann", scope(i), v)
			}
			w.Forget("team", ids[1], "ann", events.ScopeTeam)
			c, err := w.views.CompareSpaces(context.Background(), w.Space["team"], outsideSpace, target)
			w.OK(err)
			if c.Sample < 28 || c.Sample > 32 || c.Recall != 1 {
				t.Errorf("%+v", c)
			}
			if agree != (c.Agreement == 1) || !agree && c.Agreement > 0.8 {
				t.Errorf("agreement is %.3f", c.Agreement)
			}
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			if _, err := w.views.CompareSpaces(gone, w.Space["team"], outsideSpace, target); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if c, err := w.views.CompareSpaces(context.Background(), w.Space["team"], embed.Space{}, target); err != nil || c.Agreement != 0 || c.Recall != 1 {
				t.Errorf("%+v, %v", c, err)
			}
			if c, err := w.views.CompareSpaces(context.Background(), events.ID{9}, outsideSpace, target); err != nil || c.Sample != 0 {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}
