package loader

import (
	"context"
	"fmt"
	"slices"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// One change of the graph has at most so many entities, relations and observations,
// and bytes of them.
const (
	graphItems = memory.MaxGraphItems / 2
	graphBytes = memory.MaxGraphBytes / 2
)

// graph gathers entities and relations into changes of the knowledge graph.
// What is there is passed over, so that a repeated import changes nothing.
type graph struct {
	load      *load
	namespace string
	entities  []memory.GraphEntity       // without observations
	contents  []memory.GraphObservations // of those entities
	relations []memory.GraphRelation
	named     []importer.Item // what the entities are from, but for those of a name with another type
	items     int
	bytes     int
}

func (g *graph) add(ctx context.Context, item importer.Item) error {
	var change memory.GraphChange
	size := 0
	if e := item.Entity; e != nil {
		change.Operations = []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{{Name: e.Name, Type: e.Type, Observations: e.Observations}}}}
		size = 2*len(e.Name) + len(e.Type)
		for _, o := range e.Observations {
			size += len(o)
		}
	} else {
		r := item.Relation
		change.Operations = []memory.GraphOperation{{CreateRelations: []memory.GraphRelation{{From: r.From, To: r.To, Type: r.Type}}}}
		size = len(r.From) + len(r.To) + len(r.Type)
	}
	n := 2
	if item.Entity != nil {
		n += len(item.Entity.Observations)
	}
	if err := g.check(change.Operations[0], n < graphItems && size < graphBytes); err != nil {
		g.load.refused(item, &memory.ItemError{Code: err.Code, Detail: err.Error()})
		return nil
	}
	first := ""
	if e := item.Entity; e != nil { // of one name there is one
		if first = g.load.rows.other(e.Name, e.Type, item.Where); first != "" {
			g.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "its name is that of " + first + ", which has another type and counts; what is observed of it is kept there"})
		}
	}
	if g.items > 0 && (g.namespace != item.Namespace || g.items+n > graphItems || g.bytes+size > graphBytes) {
		if err := g.flush(ctx); err != nil {
			return err
		}
	}
	g.namespace = item.Namespace
	if item.Relation != nil {
		g.relations = append(g.relations, change.Operations[0].CreateRelations...)
		g.items, g.bytes = g.items+1, g.bytes+size
		return nil
	}
	if first == "" {
		g.named = append(g.named, item)
	}
	return g.entity(ctx, item)
}

// check tells what the node would not take. One that does not fit is divided later, and so is
// looked at in parts.
func (g *graph) check(op memory.GraphOperation, fits bool) *memory.Error {
	parts := []memory.GraphOperation{op}
	if !fits {
		e := op.CreateEntities[0] // a relation always fits
		observations := e.Observations
		e.Observations = nil
		parts = []memory.GraphOperation{{CreateEntities: []memory.GraphEntity{e}}}
		for i := range observations {
			parts = append(parts, memory.GraphOperation{AddObservations: []memory.GraphObservations{{Entity: e.Name, Contents: observations[i : i+1]}}})
		}
	}
	for i := range parts {
		change := memory.GraphChange{Agent: g.load.opt.Agent, Operations: parts[i : i+1]}
		if err := change.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// entity adds an entity, its observations in as many changes as they need.
func (g *graph) entity(ctx context.Context, item importer.Item) error {
	e := item.Entity
	g.entities = append(g.entities, memory.GraphEntity{Name: e.Name, Type: e.Type, Observations: []string{}})
	g.items, g.bytes = g.items+1, g.bytes+len(e.Name)+len(e.Type)
	part := memory.GraphObservations{Entity: e.Name}
	for _, o := range e.Observations {
		if g.items+1 > graphItems || g.bytes+len(o) > graphBytes {
			g.contents = append(g.contents, part)
			if err := g.flush(ctx); err != nil {
				return err
			}
			g.namespace, part = item.Namespace, memory.GraphObservations{Entity: e.Name}
		}
		part.Contents = append(part.Contents, o)
		g.items, g.bytes = g.items+1, g.bytes+len(o)
	}
	if len(part.Contents) > 0 {
		g.contents = append(g.contents, part)
		g.items, g.bytes = g.items+1, g.bytes+len(e.Name)
	}
	return nil
}

// flush carries out what was gathered as one change.
func (g *graph) flush(ctx context.Context) error {
	var ops []memory.GraphOperation
	if len(g.entities) > 0 {
		ops = append(ops, memory.GraphOperation{CreateEntities: g.entities})
	}
	if len(g.contents) > 0 {
		ops = append(ops, memory.GraphOperation{AddObservations: g.contents})
	}
	if len(g.relations) > 0 {
		ops = append(ops, memory.GraphOperation{CreateRelations: g.relations})
	}
	if len(ops) == 0 {
		return nil
	}
	if err := g.load.send.prepare(ctx, g.namespace); err != nil {
		return err
	}
	done, err := g.load.node.ChangeGraph(ctx, g.namespace, memory.GraphChange{Agent: g.load.opt.Agent, Operations: ops})
	if err != nil {
		return err
	}
	if err := g.typed(ctx, done); err != nil {
		return err
	}
	counts := g.load.counts(g.namespace).graph()
	counts.Entities += len(g.entities)
	counts.Relations += len(g.relations)
	for _, o := range g.contents {
		counts.Observations += len(o.Contents)
	}
	for _, res := range done.Results {
		counts.Created += len(res.Entities) + len(res.Relations)
		for _, added := range res.Added {
			counts.Created += len(added.Added)
		}
	}
	g.load.send.done += uint64(len(g.entities) + len(g.relations))
	g.load.send.report()
	*g = graph{load: g.load}
	return nil
}

// typed names the entities that were in the graph before, and have another type there.
func (g *graph) typed(ctx context.Context, done memory.GraphChanged) error {
	created := map[string]bool{}
	for _, res := range done.Results {
		for _, e := range res.Entities {
			created[e.Name] = true
		}
	}
	there := slices.DeleteFunc(g.named, func(item importer.Item) bool { return created[item.Entity.Name] })
	for step := 50; len(there) > 0; { // the names go into a URL
		n := min(step, len(there))
		var names []string
		for _, item := range there[:n] {
			names = append(names, item.Entity.Name)
		}
		got, err := g.load.node.ReadGraph(ctx, g.namespace, memory.GraphRequest{Names: names}, client.ReadOptions{As: g.load.opt.Agent})
		switch tooLarge := memory.CodeOf(err) == memory.CodeTooLarge; {
		case tooLarge && n > 1:
			step = n / 2
			continue
		case tooLarge:
			g.load.left(there[0], "the type of an entity that is there, and too large to be compared")
		case err != nil:
			return err
		}
		is := map[string]string{}
		for _, e := range got.Entities {
			is[e.Name] = e.Type
		}
		for _, item := range there[:n] {
			if typ, known := is[item.Entity.Name]; known && typ != item.Entity.Type {
				g.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: fmt.Sprintf("it is there with another type, %q, which it keeps; what is observed of it is kept there", typ)})
			}
		}
		there = there[n:]
	}
	return nil
}
