package views

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/events"
)

func graphEntities(all ...events.GraphEntity) events.GraphStep {
	return events.GraphStep{Kind: events.GraphEntitiesCreated, Entities: all}
}

func graphAdded(entity events.GraphRef, contents ...string) events.GraphStep {
	return events.GraphStep{Kind: events.GraphObservationsAdded, Added: []events.GraphAdded{{Entity: entity, Contents: contents}}}
}

func graphEnded(kind events.GraphStepKind, refs ...events.GraphRef) events.GraphStep {
	return events.GraphStep{Kind: kind, Ended: refs}
}

// team opens a view of a namespace's team, which the test closes with the world at the latest.
func (w *world) team(ns string) *View {
	w.T.Helper()
	v, err := w.views.Open(context.Background(), ns, "", Freshness{})
	w.OK(err)
	return v
}

// found gives the entities that a view finds.
func (w *world) found(v *View, query string) []events.GraphRef {
	w.T.Helper()
	out, err := v.GraphMatches(context.Background(), &v.Partitions[0], query)
	w.OK(err)
	return out
}

// search opens a view, searches and closes it.
func (w *world) search(ns, query string) int {
	w.T.Helper()
	v := w.team(ns)
	n := len(w.found(v, query))
	w.OK(v.Close())
	return n
}

// rowsWith are the entities that hold a string by the rows of a view.
func (w *world) rowsWith(v *View, query string) (out []events.GraphRef) {
	w.T.Helper()
	w.OK(v.State.GraphEntities(v.Partitions[0].ID, events.GraphRef{}, func(ref events.GraphRef, e events.GraphEntity) (bool, error) {
		for _, s := range append([]string{e.Name, e.Type}, e.Observations...) {
			if strings.Contains(strings.ToLower(s), query) {
				out = append(out, ref)
				break
			}
		}
		return true, nil
	}))
	return out
}

// keeps lists the strings of the graphs that are in memory.
func (w *world) keeps() (all []string) {
	for _, g := range w.views.knowledge.parts {
		for _, e := range g.entities {
			all = append(all, e.name, e.kind)
		}
		for _, o := range g.observations {
			all = append(all, o.text)
		}
	}
	return all
}

// TestGraphMatchesAreWhatAViewHolds: whichever of several views is searched first, each finds what
// its own rows hold. A view missed what had ended between it and the view that was searched before.
func TestGraphMatchesAreWhatAViewHolds(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t)
		w.Namespace("team", nil)
		w.Graph("team", "", graphEntities(events.GraphEntity{Name: "hub", Type: "t"}))
		rnd := rand.New(rand.NewPCG(seed, 3))
		word := func() string { return []string{"River", "cache", "ÜBER", "部署", "crane"}[rnd.IntN(5)] }
		things := []events.GraphRef{{Seq: w.State.Cursor().Seq}}
		var open []*View
		looked := 0
		for n := range 250 {
			thing := func() events.GraphRef { return things[max(0, len(things)-1-rnd.IntN(8))] } // what came lately ends lately
			seq := w.State.Cursor().Seq + 1
			switch rnd.IntN(6) {
			case 0, 1:
				w.Graph("team", "", graphEntities(events.GraphEntity{Name: fmt.Sprint(word(), n), Type: word(), Observations: []string{word()}}))
				things = append(things, events.GraphRef{Seq: seq}, events.GraphRef{Seq: seq, N: 1})
			case 2, 3:
				w.Graph("team", "", graphAdded(thing(), word()+word()))
				things = append(things, events.GraphRef{Seq: seq})
			case 4:
				w.Graph("team", "", graphEnded(events.GraphEntitiesDeleted, thing()))
			case 5:
				w.Graph("team", "", graphEnded(events.GraphObservationsDeleted, thing()))
			}
			open = append(open, w.team("team"))
			for len(open) > 0 && rnd.IntN(4) == 0 {
				at := rnd.IntN(len(open))
				v, query := open[at], strings.ToLower(word())
				open = slices.Delete(open, at, at+1)
				want := w.rowsWith(v, query)
				if got := w.found(v, query); !slices.Equal(got, want) {
					t.Fatalf("seed %d, after %d changes a view at %d finds %v by %q, its rows %v", seed, n, v.State.Cursor().Seq, got, query, want)
				}
				looked += len(want)
				w.OK(v.Close())
			}
		}
		for _, v := range open {
			w.OK(v.Close())
		}
		if looked == 0 || len(w.keeps()) == 0 {
			t.Errorf("seed %d is too tame", seed)
		}
	}
}

// TestGraphThingsComeAndGoBetweenSearches: what was made and taken away since the strings were read,
// or before they ever were, is found by a view of between, also after a search behind it.
func TestGraphThingsComeAndGoBetweenSearches(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	for name, c := range map[string]struct {
		made func(hub events.GraphRef) events.GraphStep
		end  func(hub, made events.GraphRef) events.GraphStep
	}{
		"an observation": {func(hub events.GraphRef) events.GraphStep { return graphAdded(hub, "zebra") },
			func(_, made events.GraphRef) events.GraphStep {
				return graphEnded(events.GraphObservationsDeleted, made)
			}},
		"an observation with its entity": {func(hub events.GraphRef) events.GraphStep { return graphAdded(hub, "zebra") },
			func(hub, _ events.GraphRef) events.GraphStep { return graphEnded(events.GraphEntitiesDeleted, hub) }},
		"an entity": {func(events.GraphRef) events.GraphStep { return graphEntities(events.GraphEntity{Name: "zebra"}) },
			func(_, made events.GraphRef) events.GraphStep { return graphEnded(events.GraphEntitiesDeleted, made) }},
	} {
		for _, read := range []bool{true, false} {
			w.restart()
			w.Graph("team", "", graphEntities(events.GraphEntity{Name: "hub"}))
			hub := events.GraphRef{Seq: w.State.Cursor().Seq}
			if read {
				w.search("team", "hub")
			}
			w.Graph("team", "", c.made(hub))
			between := w.team("team")
			w.Graph("team", "", c.end(hub, events.GraphRef{Seq: w.State.Cursor().Seq}))
			if n := w.search("team", "zebra"); n != 0 {
				t.Errorf("%s, read before: %v: %d are found after the end", name, read, n)
			}
			if got := w.found(between, "zebra"); len(got) != 1 {
				t.Errorf("%s, read before: %v: a view of between finds %v", name, read, got)
			}
			w.OK(between.Close())
		}
	}
}

// TestErasedStringsLeaveTheGraphsMemory: strings that were erased, and those of a namespace that
// was deleted, are not kept, and a view of before that finds them brings none back.
func TestErasedStringsLeaveTheGraphsMemory(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Namespace("other", nil)
	w.Graph("other", "", graphEntities(events.GraphEntity{Name: "Xylocarp", Type: "t"}))
	w.Graph("team", "eve", graphEntities(events.GraphEntity{Name: "Eve", Type: "person", Observations: []string{"likes xylocarps"}}))
	w.Graph("team", "", graphEntities(events.GraphEntity{Name: "harbour", Type: "place"}))
	if w.search("team", "xylocarp") != 1 || w.search("other", "xylocarp") != 1 || !slices.Contains(w.keeps(), "likes xylocarps") {
		t.Fatalf("nothing is kept: %q", w.keeps())
	}
	before := w.team("team")
	defer before.Close()
	w.End("team", "eve")
	holds := func(when string, want ...string) {
		t.Helper()
		got := w.keeps()
		for _, s := range append(want, "likes xylocarps", "eve") {
			if wanted := slices.Contains(want, s); slices.Contains(got, s) != wanted {
				t.Errorf("%s %q is kept: %q", when, s, got)
			}
		}
	}
	holds("after the erasure")
	if got := w.found(before, "xylocarp"); len(got) != 1 {
		t.Errorf("a view of before finds %v", got)
	}
	holds("after a search in a view of before")
	if w.search("team", "xylocarp") != 0 || w.search("team", "harbour") != 1 || w.search("other", "xylocarp") != 1 {
		t.Error("what was erased is found, or what was not is lost")
	}
	holds("after a search", "harbour", "xylocarp")
	if got := w.found(before, "xylocarp"); len(got) != 1 {
		t.Errorf("a view of before finds %v", got)
	}
	holds("after another search in a view of before")
	gone := w.team("other")
	defer gone.Close()
	w.search("team", "harbour")
	w.Drop("other")
	holds("after a namespace was deleted", "harbour")
	if got := w.found(gone, "xylocarp"); len(got) != 1 || slices.Contains(w.keeps(), "xylocarp") {
		t.Errorf("a view of a deleted namespace finds %v, kept is %q", got, w.keeps())
	}
}

// TestAGraphThatIsReadStopsNoOther: while one graph is read into memory, the others are searched
// and changes are applied. All waited for it.
func TestAGraphThatIsReadStopsNoOther(t *testing.T) {
	w := newWorld(t)
	for _, ns := range []string{"slow", "team"} {
		w.Namespace(ns, nil)
		w.Graph(ns, "eve", graphEntities(events.GraphEntity{Name: "eve", Type: "person"}))
		w.search(ns, "eve")
	}
	v := w.team("slow")
	g := w.views.knowledge.parts[v.Partitions[0].ID]
	g.mu.Lock() // as who reads does
	read, done := make(chan int), make(chan struct{})
	go func() { read <- len(w.found(v, "eve")) }()
	go func() {
		defer close(done)
		w.search("team", "eve")
		w.End("team", "eve") // drops what is kept
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Error("a search of another graph, or an erasure, waits for the one that is read")
	}
	g.mu.Unlock()
	<-done
	if n := <-read; n != 1 {
		t.Errorf("%d entities are found in the one that was read", n)
	}
	w.OK(v.Close())
}

// TestGraphsInMemoryAreBounded: of several graphs those that were searched last are kept, one that
// is too large is searched in its rows, and one of which most has ended is read anew.
func TestGraphsInMemoryAreBounded(t *testing.T) {
	w := newWorld(t)
	w.views.knowledge.max = 2500
	for _, ns := range []string{"a", "b", "c", "large"} {
		w.Namespace(ns, nil)
		w.Graph(ns, "", graphEntities(events.GraphEntity{Name: "river " + ns, Type: "t", Observations: []string{strings.Repeat("x", 700)}}))
	}
	w.Graph("large", "", graphAdded(events.GraphRef{Seq: w.State.Cursor().Seq}, strings.Repeat("y", 2000)))
	kept := func(want ...string) {
		t.Helper()
		for _, ns := range []string{"a", "b", "c", "large"} {
			if has := slices.Contains(w.keeps(), "river "+ns); has != slices.Contains(want, ns) {
				t.Errorf("the graph of %s is kept: %v", ns, has)
			}
		}
	}
	for _, ns := range []string{"a", "b", "a", "c"} {
		if w.search(ns, "river") != 1 {
			t.Errorf("nothing is found in %s", ns)
		}
	}
	kept("a", "c")
	if w.search("large", "yyy") != 1 || w.search("large", "river") != 1 || w.search("large", "nothing") != 0 {
		t.Error("the large graph is searched wrongly")
	}
	kept("a", "c")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	v := w.team("large")
	if _, err := v.GraphMatches(cancelled, &v.Partitions[0], "y"); err == nil {
		t.Error("who looks through the rows does not hear that nobody waits any more")
	}
	w.OK(v.Close())
}

// TestAGraphThatHasEndedIsReadAnew: what has ended leaves memory when it is most of it.
func TestAGraphThatHasEndedIsReadAnew(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", nil)
	w.Graph("team", "", graphEntities(events.GraphEntity{Name: "hub", Type: "t"}))
	hub := events.GraphRef{Seq: w.State.Cursor().Seq}
	texts := make([]string, minDead+1)
	for i := range texts {
		texts[i] = fmt.Sprint("seen ", i)
	}
	w.Graph("team", "", graphAdded(hub, texts...))
	refs := make([]events.GraphRef, len(texts))
	for i := range refs {
		refs[i] = events.GraphRef{Seq: w.State.Cursor().Seq, N: uint32(i)}
	}
	w.search("team", "seen")
	w.Graph("team", "", graphEnded(events.GraphObservationsDeleted, refs...))
	for i, want := range []int{len(texts) + 2, 2} {
		if n := w.search("team", "seen"); n != 0 {
			t.Errorf("search %d finds %d", i, n)
		}
		if got := len(w.keeps()); got != want {
			t.Errorf("after search %d, %d strings are kept, want %d", i, got, want)
		}
	}
}
