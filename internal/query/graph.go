package query

import (
	"context"
	"slices"

	"mneme/internal/events"
	"mneme/internal/query/views"
	"mneme/memory"
)

// Graph reads the team's knowledge graph of the namespace, or a part of it. Errors: invalid;
// too_large, for more than memory.MaxGraphAnswer bytes.
func (r *Reader) Graph(ctx context.Context, req memory.GraphRequest) (memory.Graph, error) {
	out, err := r.graph(ctx, &req)
	return out, views.Failed("graph", err)
}

func (r *Reader) graph(ctx context.Context, req *memory.GraphRequest) (memory.Graph, error) {
	out := memory.Graph{Entities: []memory.GraphEntity{}, Relations: []memory.GraphRelation{}, Position: r.view.Position()}
	if err := req.Validate(); err != nil {
		return out, err
	}
	g, ok := r.teamGraph(ctx)
	if !ok {
		return out, nil
	}
	if req.Query == nil && req.Names == nil {
		return out, g.whole(&out)
	}
	var refs []events.GraphRef
	var err error
	if req.Query != nil {
		refs, err = r.view.GraphMatches(ctx, g.part, *req.Query)
	} else {
		refs, err = g.named(req.Names)
	}
	if err != nil {
		return out, err
	}
	return out, g.selected(&out, refs)
}

// StreamGraph yields the team's whole knowledge graph in the order of creation, first the
// entities, then the relations; of the entities those behind the one that is named after, where
// one is. It holds one of them at a time. An error of yield ends it.
func (r *Reader) StreamGraph(ctx context.Context, after string, yield func(memory.GraphLine) error) error {
	g, ok := r.teamGraph(ctx)
	if !ok && after == "" {
		return nil
	}
	behind, err := g.behind(after)
	if err != nil {
		return views.Failed("graph", err)
	}
	err = r.view.State.GraphEntities(g.part.ID, behind, func(_ events.GraphRef, e events.GraphEntity) (bool, error) {
		line := publicEntity(e)
		return true, g.yielded(yield(memory.GraphLine{Entity: &line}))
	})
	if err == nil {
		err = r.view.State.GraphRelations(g.part.ID, func(_ events.GraphRef, e events.GraphRelation) (bool, error) {
			line := memory.GraphRelation(e)
			return true, g.yielded(yield(memory.GraphLine{Relation: &line}))
		})
	}
	if g.refused != nil {
		return g.refused
	}
	return views.Failed("graph", err)
}

// graphRead is one read of a graph.
type graphRead struct {
	ctx     context.Context
	r       *Reader
	part    *views.Partition
	size    int   // of the answer so far
	refused error // by whom it is read to
}

// teamGraph begins a read; false if the team has no graph.
func (r *Reader) teamGraph(ctx context.Context) (*graphRead, bool) {
	for i := range r.view.Partitions {
		if r.view.Partitions[i].Scope == events.ScopeTeam {
			return &graphRead{ctx: ctx, r: r, part: &r.view.Partitions[i]}, true
		}
	}
	return nil, false
}

// behind finds the entity behind which a read goes on; "" is before all.
func (g *graphRead) behind(name string) (ref events.GraphRef, err error) {
	found := name == ""
	if !found && g != nil {
		ref, _, found, err = g.r.view.State.GraphNamed(g.part.ID, name)
	}
	if err == nil && !found {
		err = memory.Errorf(memory.CodeNotFound, "there is no entity %q in the graph to go on after", name).WithHint("begin at the start, without a name to go on after")
	}
	return ref, err
}

// yielded ends a stream where its reader does, or ctx.
func (g *graphRead) yielded(err error) error {
	if err != nil {
		g.refused = err
		return err
	}
	return g.ctx.Err()
}

// took counts the strings of an entity, an observation or a relation of the answer.
func (g *graphRead) took(all ...string) error {
	g.size += thingBytes
	for _, s := range all {
		g.size += len(s)
	}
	if g.size > memory.MaxGraphAnswer {
		return memory.Errorf(memory.CodeTooLarge, "the answer would have more than %d bytes", memory.MaxGraphAnswer).WithHint(tooLargeHint)
	}
	return g.ctx.Err()
}

// thingBytes is what each entity, observation and relation counts beside its strings, so that many
// small ones are bounded, too.
const thingBytes = 16

const tooLargeHint = "ask for a part: by a query that fewer entities hold (search_nodes), or by names (open_nodes); " +
	"all of it comes as a stream: memctl export --format mcp-memory, or GET /v1/namespaces/NAMESPACE/graph/export"

func publicEntity(e events.GraphEntity) memory.GraphEntity {
	if e.Observations == nil {
		e.Observations = []string{}
	}
	return memory.GraphEntity{Name: e.Name, Type: e.Type, Observations: e.Observations}
}

// entity takes an entity into the answer.
func (g *graphRead) entity(out *memory.Graph, e events.GraphEntity) error {
	out.Entities = append(out.Entities, publicEntity(e))
	err := g.took(e.Name, e.Type)
	for i := 0; i < len(e.Observations) && err == nil; i++ {
		err = g.took(e.Observations[i])
	}
	return err
}

func (g *graphRead) relation(out *memory.Graph, e events.GraphRelation) error {
	out.Relations = append(out.Relations, memory.GraphRelation(e))
	return g.took(e.From, e.To, e.Type)
}

func (g *graphRead) whole(out *memory.Graph) error {
	total, err := g.r.view.State.GraphTotals(g.part.ID)
	if err != nil {
		return err
	}
	if total.Bytes+thingBytes*(total.Entities+total.Observations+total.Relations) > memory.MaxGraphAnswer {
		return memory.Errorf(memory.CodeTooLarge, "the graph has %d entities, %d observations and %d relations, which are more than the %d bytes of one answer",
			total.Entities, total.Observations, total.Relations, memory.MaxGraphAnswer).WithHint(tooLargeHint)
	}
	if err := g.r.view.State.GraphEntities(g.part.ID, events.GraphRef{}, func(_ events.GraphRef, e events.GraphEntity) (bool, error) {
		return true, g.entity(out, e)
	}); err != nil {
		return err
	}
	return g.r.view.State.GraphRelations(g.part.ID, func(_ events.GraphRef, e events.GraphRelation) (bool, error) {
		return true, g.relation(out, e)
	})
}

// named finds entities by name, in the order of creation.
func (g *graphRead) named(names []string) ([]events.GraphRef, error) {
	var refs []events.GraphRef
	for _, name := range names {
		ref, _, ok, err := g.r.view.State.GraphNamed(g.part.ID, name)
		if err != nil {
			return nil, err
		}
		if ok {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareGraph)
	return slices.Compact(refs), nil
}

func compareGraph(a, b events.GraphRef) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// lookUp is about how many rows are read in passing in the time that it takes to look up one
// entity with what belongs to it (BenchmarkGraphParts).
const lookUp = 150

// selected answers with entities, by their references in order, and the relations at them: it
// looks them up one by one, or reads everything in passing where that is less.
func (g *graphRead) selected(out *memory.Graph, refs []events.GraphRef) error {
	total, err := g.r.view.State.GraphTotals(g.part.ID)
	if err != nil {
		return err
	}
	if lookUp*uint64(len(refs)) > total.Entities+total.Observations+total.Relations {
		return g.filtered(out, refs)
	}
	return g.lookedUp(out, refs)
}

func (g *graphRead) lookedUp(out *memory.Graph, refs []events.GraphRef) error {
	v := g.r.view.State
	relations := map[events.GraphRef]events.GraphRelation{}
	for _, ref := range refs {
		e, ok, err := v.GraphEntity(g.part.ID, ref)
		if err == nil && ok {
			err = v.GraphObservations(g.part.ID, ref, func(_ events.GraphRef, text []byte) (bool, error) {
				e.Observations = append(e.Observations, string(text))
				return true, g.took(string(text))
			})
		}
		if err == nil && ok {
			out.Entities = append(out.Entities, publicEntity(e))
			err = g.took(e.Name, e.Type)
		}
		if err == nil && ok {
			err = v.GraphRelationsOf(g.part.ID, e.Name, func(ref events.GraphRef, r events.GraphRelation) (bool, error) {
				if _, known := relations[ref]; known {
					return true, nil
				}
				relations[ref] = r
				return true, g.took(r.From, r.To, r.Type)
			})
		}
		if err != nil {
			return err
		}
	}
	order := make([]events.GraphRef, 0, len(relations))
	for ref := range relations {
		order = append(order, ref)
	}
	slices.SortFunc(order, compareGraph)
	for _, ref := range order {
		out.Relations = append(out.Relations, memory.GraphRelation(relations[ref]))
	}
	return nil
}

// filtered is selected for most of a graph: it reads everything once.
func (g *graphRead) filtered(out *memory.Graph, refs []events.GraphRef) error {
	names := make(map[string]bool, len(refs))
	if err := g.r.view.State.GraphEntities(g.part.ID, events.GraphRef{}, func(ref events.GraphRef, e events.GraphEntity) (bool, error) {
		if len(refs) == 0 {
			return false, nil
		}
		if ref != refs[0] {
			return true, nil
		}
		refs = refs[1:]
		names[e.Name] = true
		return true, g.entity(out, e)
	}); err != nil {
		return err
	}
	return g.r.view.State.GraphRelations(g.part.ID, func(_ events.GraphRef, e events.GraphRelation) (bool, error) {
		if !names[e.From] && !names[e.To] {
			return true, nil
		}
		return true, g.relation(out, e)
	})
}
