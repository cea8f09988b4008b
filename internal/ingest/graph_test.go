package ingest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

var graphSeed = flag.Uint64("graph.seed", 0, "run only the graph history of this seed")

// graphTwin is the official memory server in slices: what it stores and answers. It differs
// where Mneme does: of equal things in one call, one is stored.
type graphTwin struct {
	entities  []memory.GraphEntity
	relations []memory.GraphRelation
}

func (g *graphTwin) find(name string) *memory.GraphEntity {
	for i := range g.entities {
		if g.entities[i].Name == name {
			return &g.entities[i]
		}
	}
	return nil
}

func (g *graphTwin) clone() graphTwin {
	out := graphTwin{relations: append([]memory.GraphRelation(nil), g.relations...)} // nil where there are none
	for _, e := range g.entities {
		e.Observations = slices.Clone(e.Observations)
		out.entities = append(out.entities, e)
	}
	return out
}

// change carries out a change; false if it fails, and then nothing is changed.
func (g *graphTwin) change(c memory.GraphChange) ([]memory.GraphResult, bool) {
	next := g.clone()
	var results []memory.GraphResult
	for _, op := range c.Operations {
		r, ok := next.operation(op)
		if !ok {
			return nil, false
		}
		results = append(results, r)
	}
	*g = next
	return results, true
}

func fresh(have *[]string, add []string) []string {
	out := []string{}
	for _, s := range add {
		if !slices.Contains(*have, s) {
			*have, out = append(*have, s), append(out, s)
		}
	}
	return out
}

func (g *graphTwin) operation(op memory.GraphOperation) (r memory.GraphResult, ok bool) {
	deleted := &memory.GraphDeleted{}
	switch {
	case op.CreateEntities != nil:
		r.Entities = []memory.GraphEntity{}
		for _, e := range op.CreateEntities {
			if g.find(e.Name) != nil {
				continue
			}
			have := []string{}
			e.Observations = fresh(&have, e.Observations)
			g.entities = append(g.entities, e)
			e.Observations = slices.Clone(e.Observations)
			r.Entities = append(r.Entities, e)
		}
	case op.CreateRelations != nil:
		r.Relations = []memory.GraphRelation{}
		for _, e := range op.CreateRelations {
			if !slices.Contains(g.relations, e) {
				g.relations, r.Relations = append(g.relations, e), append(r.Relations, e)
			}
		}
	case op.AddObservations != nil:
		r.Added = []memory.GraphAdded{}
		for _, o := range op.AddObservations {
			e := g.find(o.Entity)
			if e == nil {
				return r, false
			}
			r.Added = append(r.Added, memory.GraphAdded{Entity: o.Entity, Added: fresh(&e.Observations, o.Contents)})
		}
	case op.DeleteEntities != nil:
		r.Deleted = deleted
		for _, name := range op.DeleteEntities {
			if g.find(name) == nil {
				continue
			}
			deleted.Entities++
			g.entities = slices.DeleteFunc(g.entities, func(e memory.GraphEntity) bool { return e.Name == name })
			before := len(g.relations)
			g.relations = slices.DeleteFunc(g.relations, func(r memory.GraphRelation) bool { return r.From == name || r.To == name })
			deleted.Relations += before - len(g.relations)
		}
	case op.DeleteObservations != nil:
		r.Deleted = deleted
		for _, d := range op.DeleteObservations {
			if e := g.find(d.Entity); e != nil {
				before := len(e.Observations)
				e.Observations = slices.DeleteFunc(e.Observations, func(s string) bool { return slices.Contains(d.Observations, s) })
				deleted.Observations += before - len(e.Observations)
			}
		}
	default:
		r.Deleted = deleted
		before := len(g.relations)
		g.relations = slices.DeleteFunc(g.relations, func(e memory.GraphRelation) bool { return slices.Contains(op.DeleteRelations, e) })
		deleted.Relations = before - len(g.relations)
	}
	return r, true
}

func (w *world) graphOf(namespace string) graphTwin {
	w.t.Helper()
	return readGraph(w.t, w.state, namespace)
}

// readGraph reads the whole graph of a namespace from the rows.
func readGraph(t testing.TB, state *projections.State, namespace string) (out graphTwin) {
	t.Helper()
	v := state.View()
	defer v.Close()
	ns, ok := v.Namespace(namespace)
	if !ok {
		t.Fatalf("there is no namespace %s", namespace)
	}
	p, ok := v.Partition(ns.ID, events.ScopeTeam, "")
	if !ok {
		return out
	}
	err := errors.Join(
		v.GraphEntities(p.ID, events.GraphRef{}, func(_ events.GraphRef, e events.GraphEntity) (bool, error) {
			out.entities = append(out.entities, memory.GraphEntity{Name: e.Name, Type: e.Type, Observations: append([]string{}, e.Observations...)})
			return true, nil
		}),
		v.GraphRelations(p.ID, func(_ events.GraphRef, r events.GraphRelation) (bool, error) {
			out.relations = append(out.relations, memory.GraphRelation(r))
			return true, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	totals, err := v.GraphTotals(p.ID)
	want := projections.GraphTotals{Entities: uint64(len(out.entities)), Relations: uint64(len(out.relations)), Changed: totals.Changed}
	for _, e := range out.entities {
		want.Observations += uint64(len(e.Observations))
		want.Bytes += uint64(len(e.Name) + len(e.Type))
		for _, s := range e.Observations {
			want.Bytes += uint64(len(s))
		}
	}
	for _, r := range out.relations {
		want.Bytes += uint64(len(r.From) + len(r.To) + len(r.Type))
	}
	if err != nil || totals != want {
		t.Errorf("totals are %+v, the rows say %+v, %v", totals, want, err)
	}
	return out
}

// graphWorld is a world whose log may hold changes of a graph.
func graphWorld(t testing.TB) *world {
	t.Helper()
	w := startWorld(t)
	w.allowGraph()
	return w
}

func (w *world) allowGraph() {
	w.t.Helper()
	if _, err := RaiseLevel(context.Background(), w.writer, events.GraphLevel); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) change(namespace string, c memory.GraphChange) (memory.GraphChanged, error) {
	if c.Agent == "" {
		c.Agent = "agent-1"
	}
	return ChangeGraph(context.Background(), w.writer, namespace, c)
}

func (w *world) mustChange(namespace string, ops ...memory.GraphOperation) memory.GraphChanged {
	w.t.Helper()
	out, err := w.change(namespace, memory.GraphChange{Operations: ops})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// graphDice draws changes over few names, so that they meet.
type graphDice struct {
	*rand.Rand
	names int
}

func (d graphDice) name() string { return fmt.Sprintf("entity-%d", d.IntN(d.names)) }

func (d graphDice) texts() []string {
	out := []string{}
	for range d.IntN(4) {
		out = append(out, []string{"likes Go", "likes 日本語", "", "LIKES go", "was here\nand there"}[d.IntN(5)])
	}
	return out
}

func (d graphDice) relation() memory.GraphRelation {
	return memory.GraphRelation{From: d.name(), To: d.name(), Type: []string{"knows", "works on"}[d.IntN(2)]}
}

func drawn[T any](d graphDice, one func() T) []T {
	out := []T{}
	for range d.IntN(4) {
		out = append(out, one())
	}
	return out
}

func (d graphDice) operation(deletes bool) (op memory.GraphOperation) {
	kinds := 6
	if !deletes {
		kinds = 3
	}
	switch d.IntN(kinds) {
	case 0:
		op.CreateEntities = drawn(d, func() memory.GraphEntity {
			return memory.GraphEntity{Name: d.name(), Type: []string{"person", "project", ""}[d.IntN(3)], Observations: d.texts()}
		})
	case 1:
		op.CreateRelations = drawn(d, d.relation)
	case 2:
		op.AddObservations = drawn(d, func() memory.GraphObservations {
			return memory.GraphObservations{Entity: d.name(), Contents: d.texts()}
		})
	case 3:
		op.DeleteEntities = []string{d.name()}
	case 4:
		op.DeleteObservations = drawn(d, func() memory.GraphDeletion { return memory.GraphDeletion{Entity: d.name(), Observations: d.texts()} })
	default:
		op.DeleteRelations = drawn(d, d.relation)
	}
	return op
}

// TestGraphIsTheOfficialOne: a random history of changes gives what the official memory server
// stores and answers, but for equal things in one call, over restarts of the writer, and the
// log folds to the same.
func TestGraphIsTheOfficialOne(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		if *graphSeed != 0 {
			seed = *graphSeed
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to repeat: go test ./internal/ingest -run '^TestGraphIsTheOfficialOne$' -graph.seed %d", seed)
				}
			})
			walkGraph(t, graphDice{rand.New(rand.NewPCG(seed, 11)), 9})
		})
		if *graphSeed != 0 {
			break
		}
	}
}

func walkGraph(t *testing.T, dice graphDice) {
	w := graphWorld(t)
	w.namespace("team-b")
	twins := map[string]*graphTwin{"team-a": {}, "team-b": {}}
	seen := map[string]int{}
	sent := map[string][]memory.GraphResult{}
	for n := range 250 {
		namespace := []string{"team-a", "team-a", "team-a", "team-b"}[dice.IntN(4)]
		twin := twins[namespace]
		c := memory.GraphChange{Agent: fmt.Sprint("agent-", dice.IntN(2)), ID: fmt.Sprint("id-", n)}
		for range 1 + dice.IntN(3) {
			c.Operations = append(c.Operations, dice.operation(true))
		}
		before := twin.clone()
		want, ok := twin.change(c)
		got, err := w.change(namespace, c)
		switch {
		case !ok:
			seen["failed"]++
			name, is := memory.MissingEntity(wantCode(t, err, memory.CodeNotFound))
			if !is || before.find(name) != nil && !slices.ContainsFunc(c.Operations, func(op memory.GraphOperation) bool { return slices.Contains(op.DeleteEntities, name) }) {
				t.Fatalf("change %d: the error is about %q: %v", n, name, err)
			}
		case err != nil:
			t.Fatalf("change %d %+v: %v", n, c, err)
		case !reflect.DeepEqual(got.Results, want):
			t.Fatalf("change %d %+v\n got %+v\nwant %+v", n, c, got.Results, want)
		default:
			seen[string(got.Status)]++
			if got.Status == memory.GraphApplied && dice.IntN(3) == 0 {
				again, err := w.change(namespace, c)
				if err != nil || again.Status != memory.GraphDuplicate || again.Position != got.Position || !reflect.DeepEqual(again.Results, want) {
					t.Fatalf("change %d again: %+v, %v, want %+v", n, again, err, got)
				}
				sent[c.ID] = want
			}
		}
		if n%20 == 0 {
			compareGraphs(t, n, w.graphOf(namespace), *twin)
		}
		if n%100 == 50 {
			w.stop()
			w.mustStart()
		}
	}
	for namespace, twin := range twins {
		compareGraphs(t, 250, w.graphOf(namespace), *twin)
	}
	for _, what := range []string{"failed", "applied", "unchanged"} {
		if seen[what] == 0 {
			t.Errorf("no change was %s: the history is too tame: %v", what, seen)
		}
	}
	if len(sent) == 0 || len(twins["team-a"].relations) == 0 && len(twins["team-a"].entities) == 0 {
		t.Error("the history is too tame")
	}
	w.refold()
}

func compareGraphs(t *testing.T, n int, got, want graphTwin) {
	t.Helper()
	if !reflect.DeepEqual(got.clone(), want.clone()) {
		t.Fatalf("after change %d the graph is\n%+v\nthe twin's\n%+v", n, got, want)
	}
}

// TestTwoWritersLoseNothing: changes that come at once to the same entity all count, each
// observation once, and of those who create the same one is told so.
func TestTwoWritersLoseNothing(t *testing.T) {
	w := graphWorld(t)
	w.mustChange("team-a", memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "shared", Type: "t"}}})
	const writers, each = 4, 25
	var wg sync.WaitGroup
	created := make([]int, writers)
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				got, err := w.change("team-a", memory.GraphChange{Agent: fmt.Sprint("agent-", i), Operations: []memory.GraphOperation{
					{AddObservations: []memory.GraphObservations{{Entity: "shared", Contents: []string{fmt.Sprint(i, " saw ", n), fmt.Sprint("all saw ", n)}}}},
					{CreateEntities: []memory.GraphEntity{{Name: fmt.Sprint("entity ", n), Type: "t"}}},
				}})
				if err != nil {
					t.Error(err)
					return
				}
				created[i] += len(got.Results[1].Entities)
			}
		})
	}
	wg.Wait()
	g, sum := w.graphOf("team-a"), 0
	for _, n := range created {
		sum += n
	}
	if len(g.entities) != 1+each || sum != each || len(g.entities[0].Observations) != writers*each+each {
		t.Errorf("%d entities, %d were told to be new, %d observations", len(g.entities), sum, len(g.entities[0].Observations))
	}
	w.refold()
}

// TestErasingTakesPartsOfGraph: what was said under a subject's key goes with it, and what the
// others said stays, as far as what it was about is there; a replay of the log comes to the same.
func TestErasingTakesPartsOfGraph(t *testing.T) {
	w := graphWorld(t)
	ctx := context.Background()
	ada := func(id string, ops ...memory.GraphOperation) {
		if _, err := w.change("team-a", memory.GraphChange{ID: id, Subject: "ada", Operations: ops}); err != nil {
			t.Fatal(err)
		}
	}
	w.mustChange("team-a", memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "team", Type: "group", Observations: []string{"meets on Tuesdays"}}, {Name: "old", Type: "t"}}})
	adas := memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "Ada", Type: "person", Observations: []string{"likes tea"}}}}
	ada("ada-1", adas, memory.GraphOperation{CreateRelations: []memory.GraphRelation{{From: "Ada", To: "team", Type: "is in"}}},
		memory.GraphOperation{AddObservations: []memory.GraphObservations{{Entity: "team", Contents: []string{"Ada leads it"}}}})
	w.mustChange("team-a", memory.GraphOperation{AddObservations: []memory.GraphObservations{{Entity: "Ada", Contents: []string{"said others"}}, {Entity: "team", Contents: []string{"is small"}}}},
		memory.GraphOperation{CreateRelations: []memory.GraphRelation{{From: "team", To: "old", Type: "has"}}})
	ada("ada-2", memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "cat", Type: "pet"}}})
	w.mustChange("team-a", memory.GraphOperation{DeleteEntities: []string{"cat", "old"}})
	if g := w.graphOf("team-a"); len(g.entities) != 2 || len(g.relations) != 1 || len(g.entities[0].Observations) != 3 {
		t.Fatalf("%+v", g)
	}
	_, err := w.change("team-a", memory.GraphChange{Subject: "ada", Operations: []memory.GraphOperation{{DeleteEntities: []string{"Ada"}}}})
	wantCode(t, err, memory.CodeInvalid)
	if _, err := w.writer.Erasing().Erase(ctx, "team-a", "ada"); err != nil {
		t.Fatal(err)
	}
	want := graphTwin{entities: []memory.GraphEntity{{Name: "team", Type: "group", Observations: []string{"meets on Tuesdays", "is small"}}}}
	compareGraphs(t, 0, w.graphOf("team-a"), want)
	w.refold()
	_, err = w.change("team-a", memory.GraphChange{ID: "ada-1", Subject: "ada", Operations: []memory.GraphOperation{adas}})
	wantCode(t, err, memory.CodeGone)
	// Who is spoken of again begins anew.
	w.mustChange("team-a", adas)
	want.entities = append(want.entities, adas.CreateEntities[0])
	compareGraphs(t, 1, w.graphOf("team-a"), want)
	w.refold()
}

// TestGraphRefusals: what cannot be done is refused, changes nothing and is not written.
func TestGraphRefusals(t *testing.T) {
	w := graphWorld(t)
	w.mustChange("team-a", memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "a", Type: "t"}}})
	if got, err := w.change("team-a", memory.GraphChange{ID: "used", Operations: []memory.GraphOperation{{AddObservations: []memory.GraphObservations{{Entity: "a", Contents: []string{"o"}}}}}}); err != nil || got.Status != memory.GraphApplied {
		t.Fatalf("%+v, %v", got, err)
	}
	w.capture("team-a", memory.Capture{ID: "captured", Text: "something"})
	last := w.last()
	one := []memory.GraphOperation{{DeleteEntities: []string{"a"}}}
	big := string(make([]byte, memory.MaxObservation+1))
	for name, c := range map[string]struct {
		namespace string
		change    memory.GraphChange
		code      memory.Code
	}{
		"no namespace":        {"nowhere", memory.GraphChange{Operations: one}, memory.CodeNotFound},
		"no operation":        {"team-a", memory.GraphChange{}, memory.CodeInvalid},
		"empty operation":     {"team-a", memory.GraphChange{Operations: []memory.GraphOperation{{}}}, memory.CodeInvalid},
		"two in one":          {"team-a", memory.GraphChange{Operations: []memory.GraphOperation{{DeleteEntities: []string{"a"}, CreateEntities: []memory.GraphEntity{}}}}, memory.CodeInvalid},
		"no name":             {"team-a", memory.GraphChange{Operations: []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{{}}}}}, memory.CodeInvalid},
		"long observation":    {"team-a", memory.GraphChange{Operations: []memory.GraphOperation{{AddObservations: []memory.GraphObservations{{Entity: "a", Contents: []string{big}}}}}}, memory.CodeTooLarge},
		"too many":            {"team-a", memory.GraphChange{Operations: []memory.GraphOperation{{AddObservations: []memory.GraphObservations{{Entity: "a", Contents: make([]string, memory.MaxGraphItems)}}}}}, memory.CodeTooLarge},
		"id of another":       {"team-a", memory.GraphChange{ID: "used", Operations: one}, memory.CodeConflict},
		"id of a memory":      {"team-a", memory.GraphChange{ID: "captured", Operations: one}, memory.CodeConflict},
		"unknown, as a whole": {"team-a", memory.GraphChange{Operations: []memory.GraphOperation{one[0], {AddObservations: []memory.GraphObservations{{Entity: "a", Contents: []string{"lost?"}}}}}}, memory.CodeNotFound},
	} {
		if _, err := w.change(c.namespace, c.change); memory.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	r, err := w.try("team-a", memory.Capture{ID: "used", Text: "a memory under the id of a change"})
	if memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = w.writer.Revise(context.Background(), "team-a", "agent-1", events.ID{1}.String(), memory.Revision{}, 0, "used")
	wantCode(t, err, memory.CodeConflict)
	if got := w.mustChange("team-a", memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "a", Type: "other"}}}); got.Status != memory.GraphUnchanged || got.Position == "" {
		t.Errorf("nothing to do: %+v", got)
	}
	if now := w.last(); now != last {
		t.Errorf("%d frames were written for nothing", now-last)
	}
	w.refold()
}

// TestADeletionIsBounded: a change takes away so much and no more, counted with the observations of
// its entities and the relations at them; what is refused changes nothing, and after one thing was
// deleted by itself the rest goes.
func TestADeletionIsBounded(t *testing.T) {
	w := graphWorld(t)
	w.mustChange("team-a", memory.GraphOperation{CreateEntities: []memory.GraphEntity{{Name: "hub", Type: "t"}}})
	edge := func(i int) memory.GraphRelation {
		return memory.GraphRelation{From: "hub", To: fmt.Sprint(i), Type: "knows"}
	}
	const each = memory.MaxGraphEnds / 2 // of observations and of relations, and so one too many with the entity
	for at := 0; at < each; at += 2000 {
		var adds []string
		var edges []memory.GraphRelation
		for i := at; i < min(at+2000, each); i++ {
			adds, edges = append(adds, fmt.Sprint(i)), append(edges, edge(i))
		}
		w.mustChange("team-a", memory.GraphOperation{CreateRelations: edges}, memory.GraphOperation{AddObservations: []memory.GraphObservations{{Entity: "hub", Contents: adds}}})
	}
	end := memory.GraphOperation{DeleteEntities: []string{"hub"}}
	_, err := w.change("team-a", memory.GraphChange{Operations: []memory.GraphOperation{end}})
	wantCode(t, err, memory.CodeTooLarge)
	if got := w.graphOf("team-a"); len(got.entities) != 1 || len(got.entities[0].Observations) != each || len(got.relations) != each {
		t.Errorf("what was refused has left %d entities and %d relations", len(got.entities), len(got.relations))
	}
	w.mustChange("team-a", memory.GraphOperation{DeleteRelations: []memory.GraphRelation{edge(7)}})
	if got := w.mustChange("team-a", end); got.Results[0].Deleted.Relations != each-1 {
		t.Errorf("%+v", got.Results[0].Deleted)
	}
	compareGraphs(t, 1, w.graphOf("team-a"), graphTwin{})
}

// TestGraphNeedsItsLevel: a log that a program may still follow which does not know of graphs
// gets none of it.
func TestGraphNeedsItsLevel(t *testing.T) {
	w := startWorld(t)
	last := w.last()
	_, err := w.change("team-a", memory.GraphChange{Operations: []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{{Name: "a", Type: "t"}}}}})
	wantCode(t, err, memory.CodeUnavailable)
	if w.last() != last {
		t.Error("it was written")
	}
	// In one frame with a memory, which has no part in that.
	v := w.state.View()
	ns, _ := v.Namespace("team-a")
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	drafts := make([]*draft, 2)
	for i, draftOf := range []func(a *admission) (*draft, error){
		func(a *admission) (*draft, error) {
			return a.graph(&memory.GraphChange{Agent: "agent-1", Operations: []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{{Name: "a", Type: "t"}}}}})
		},
		func(a *admission) (*draft, error) {
			return a.capture(&Item{Capture: memory.Capture{Agent: "agent-1", Text: "a memory", Kind: memory.KindOther, Scope: memory.ScopeTeam}})
		},
	} {
		a, err := w.writer.admit("team-a")
		if err != nil {
			t.Fatal(err)
		}
		drafts[i], err = draftOf(a)
		if err := errors.Join(err, a.view.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.writer.queue.push(ns.ID, drafts); err != nil {
		t.Fatal(err)
	}
	told := answers(context.Background(), w.writer, memory.WaitApplied, drafts...)
	if memory.CodeOf(told[0].err) != memory.CodeUnavailable || told[1].err != nil || told[1].result.Outcome != projections.OutcomeCreated {
		t.Errorf("beside a memory: %+v", told)
	}
}

// BenchmarkAddObservation: one observation to one of many entities, without the log's fsync.
func BenchmarkAddObservation(b *testing.B) {
	for _, entities := range []int{100, 10_000} {
		b.Run(fmt.Sprint(entities), func(b *testing.B) {
			w := graphWorld(b)
			for at := 0; at < entities; at += 100 {
				var op memory.GraphOperation
				for i := range 100 {
					op.CreateEntities = append(op.CreateEntities, memory.GraphEntity{Name: fmt.Sprint("entity ", at+i), Type: "t", Observations: []string{"one", "two", "three"}})
				}
				w.mustChange("team-a", op)
			}
			b.ResetTimer()
			for n := range b.N {
				w.mustChange("team-a", memory.GraphOperation{AddObservations: []memory.GraphObservations{{Entity: fmt.Sprint("entity ", n%entities), Contents: []string{fmt.Sprint("observation ", n)}}}})
			}
		})
	}
}
