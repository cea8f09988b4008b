package ingest

import (
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// graphPlan works out what a change does to the graph as the state has it: the steps of the
// event, which hold nothing that is there already, and the results that its caller is told.
// Nothing that it names or severs is changed by another event in flight, see draft.makeKeys, so
// that the fold finds what it found.
type graphPlan struct {
	view  *projections.View
	part  uint32
	known bool // the partition is there

	made      uint32 // things that the event makes so far
	ends      int    // things that it takes away
	entities  map[string]*plannedEntity
	relations map[events.GraphRelation]*plannedRelation
	fresh     []*plannedRelation // that the event makes, in order
	steps     []events.GraphStep
	results   []memory.GraphResult
}

// plannedEntity is an entity that the change names, as its operations so far leave it.
type plannedEntity struct {
	ref    events.GraphRef
	living bool
	fresh  bool // the event makes it
	texts  map[string]plannedText
}

// plannedText is an observation that the change names.
type plannedText struct {
	ref    events.GraphRef
	living bool
}

type plannedRelation struct {
	events.GraphRelation
	ref    events.GraphRef
	living bool
}

// planGraph works out a change. Errors: not_found for an entity that observations are added
// to; too_large.
func planGraph(v *projections.View, ns events.ID, change *memory.GraphChange) (*graphPlan, error) {
	p := &graphPlan{view: v, entities: map[string]*plannedEntity{}, relations: map[events.GraphRelation]*plannedRelation{}}
	part, known := v.Partition(ns, events.ScopeTeam, "")
	p.part, p.known = part.ID, known
	for i := range change.Operations {
		step, result, err := p.operation(&change.Operations[i])
		if err != nil {
			return nil, err
		}
		p.steps, p.results = append(p.steps, step), append(p.results, result)
	}
	if p.ends > memory.MaxGraphEnds {
		return nil, memory.Errorf(memory.CodeTooLarge, "the change takes away more than %d entities, relations and observations", memory.MaxGraphEnds).
			WithHint("delete in several changes: of an entity with so many, first its observations or relations")
	}
	return p, nil
}

// changes reports whether the steps do anything.
func (p *graphPlan) changes() bool { return p.made > 0 || p.ends > 0 }

func (p *graphPlan) operation(op *memory.GraphOperation) (step events.GraphStep, result memory.GraphResult, err error) {
	deleted := &memory.GraphDeleted{}
	switch {
	case op.CreateEntities != nil:
		step.Kind, result.Entities = events.GraphEntitiesCreated, []memory.GraphEntity{}
		for i := range op.CreateEntities {
			if err = p.create(&op.CreateEntities[i], &step, &result); err != nil {
				break
			}
		}
	case op.CreateRelations != nil:
		step.Kind, result.Relations = events.GraphRelationsCreated, []memory.GraphRelation{}
		for _, r := range op.CreateRelations {
			if err = p.relate(r, &step, &result); err != nil {
				break
			}
		}
	case op.AddObservations != nil:
		step.Kind, result.Added = events.GraphObservationsAdded, []memory.GraphAdded{}
		for i := range op.AddObservations {
			if err = p.add(&op.AddObservations[i], &step, &result); err != nil {
				break
			}
		}
	case op.DeleteEntities != nil:
		step.Kind, result.Deleted = events.GraphEntitiesDeleted, deleted
		for _, name := range op.DeleteEntities {
			if err = p.deleteEntity(name, &step); err != nil {
				break
			}
		}
		deleted.Entities, deleted.Relations = len(step.Ended), len(step.Severed)
	case op.DeleteObservations != nil:
		step.Kind, result.Deleted = events.GraphObservationsDeleted, deleted
		for i := range op.DeleteObservations {
			if err = p.deleteObservations(&op.DeleteObservations[i], &step); err != nil {
				break
			}
		}
		deleted.Observations = len(step.Ended)
	default:
		step.Kind, result.Deleted = events.GraphRelationsDeleted, deleted
		for _, r := range op.DeleteRelations {
			if err = p.deleteRelation(r, &step); err != nil {
				break
			}
		}
		deleted.Relations = len(step.Ended)
	}
	return step, result, err
}

// next is the reference of what the event makes next.
func (p *graphPlan) next() events.GraphRef {
	p.made++
	return events.GraphRef{N: p.made - 1}
}

// entity finds an entity as the operations so far leave it.
func (p *graphPlan) entity(name string) (*plannedEntity, error) {
	if e := p.entities[name]; e != nil {
		return e, nil
	}
	e := &plannedEntity{texts: map[string]plannedText{}}
	if p.known {
		var err error
		if e.ref, _, e.living, err = p.view.GraphNamed(p.part, name); err != nil {
			return nil, err
		}
	}
	p.entities[name] = e
	return e, nil
}

// text finds an observation of a living entity.
func (p *graphPlan) text(e *plannedEntity, text string) (plannedText, error) {
	t, named := e.texts[text]
	if named || e.fresh {
		return t, nil
	}
	var err error
	t.ref, t.living, err = p.view.GraphObservation(p.part, e.ref, text)
	return t, err
}

func (p *graphPlan) relation(r memory.GraphRelation) (*plannedRelation, error) {
	key := events.GraphRelation(r)
	if e := p.relations[key]; e != nil {
		return e, nil
	}
	e := &plannedRelation{GraphRelation: key}
	if p.known {
		var err error
		if e.ref, e.living, err = p.view.GraphRelation(p.part, key); err != nil {
			return nil, err
		}
	}
	p.relations[key] = e
	return e, nil
}

func (p *graphPlan) create(e *memory.GraphEntity, step *events.GraphStep, result *memory.GraphResult) error {
	have, err := p.entity(e.Name)
	if err != nil || have.living {
		return err
	}
	now := &plannedEntity{ref: p.next(), living: true, fresh: true, texts: map[string]plannedText{}}
	p.entities[e.Name] = now
	texts := p.observe(now, e.Observations)
	step.Entities = append(step.Entities, events.GraphEntity{Name: e.Name, Type: e.Type, Observations: texts})
	result.Entities = append(result.Entities, memory.GraphEntity{Name: e.Name, Type: e.Type, Observations: texts})
	return nil
}

// observe makes observations of a fresh entity; of equal ones, one.
func (p *graphPlan) observe(e *plannedEntity, contents []string) []string {
	texts := []string{}
	for _, text := range contents {
		if _, twice := e.texts[text]; !twice {
			e.texts[text] = plannedText{p.next(), true}
			texts = append(texts, text)
		}
	}
	return texts
}

func (p *graphPlan) relate(r memory.GraphRelation, step *events.GraphStep, result *memory.GraphResult) error {
	have, err := p.relation(r)
	if err != nil || have.living {
		return err
	}
	have.ref, have.living = p.next(), true
	p.fresh = append(p.fresh, have)
	step.Relations = append(step.Relations, have.GraphRelation)
	result.Relations = append(result.Relations, r)
	return nil
}

func (p *graphPlan) add(o *memory.GraphObservations, step *events.GraphStep, result *memory.GraphResult) error {
	e, err := p.entity(o.Entity)
	if err != nil {
		return err
	}
	if !e.living {
		return memory.NoEntity(o.Entity)
	}
	texts := []string{}
	for _, text := range o.Contents {
		t, err := p.text(e, text)
		if err != nil {
			return err
		}
		if !t.living {
			e.texts[text] = plannedText{p.next(), true}
			texts = append(texts, text)
		}
	}
	step.Added = append(step.Added, events.GraphAdded{Entity: e.ref, Contents: texts})
	result.Added = append(result.Added, memory.GraphAdded{Entity: o.Entity, Added: texts})
	return nil
}

func (p *graphPlan) deleteEntity(name string, step *events.GraphStep) error {
	e, err := p.entity(name)
	if err != nil || !e.living {
		return err
	}
	step.Ended = append(step.Ended, e.ref)
	p.ends++
	if !e.fresh {
		if err := p.view.GraphObservations(p.part, e.ref, func(events.GraphRef, []byte) (bool, error) {
			p.ends++
			return p.ends <= memory.MaxGraphEnds, nil
		}); err != nil {
			return err
		}
	}
	e.living = false
	return p.sever(name, step)
}

// sever ends the relations at a name.
func (p *graphPlan) sever(name string, step *events.GraphStep) error {
	end := func(r *plannedRelation) bool {
		if r.living {
			step.Severed = append(step.Severed, r.ref)
			r.living = false
			p.ends++
		}
		return p.ends <= memory.MaxGraphEnds
	}
	if p.known {
		if err := p.view.GraphRelationsOf(p.part, name, func(ref events.GraphRef, r events.GraphRelation) (bool, error) {
			have := p.relations[r]
			if have == nil {
				have = &plannedRelation{GraphRelation: r, ref: ref, living: true}
				p.relations[r] = have
			}
			return end(have), nil
		}); err != nil {
			return err
		}
	}
	for _, r := range p.fresh {
		if r.From == name || r.To == name {
			end(r)
		}
	}
	return nil
}

func (p *graphPlan) deleteObservations(d *memory.GraphDeletion, step *events.GraphStep) error {
	e, err := p.entity(d.Entity)
	if err != nil || !e.living {
		return err
	}
	for _, text := range d.Observations {
		t, err := p.text(e, text)
		if err != nil {
			return err
		}
		if t.living {
			step.Ended = append(step.Ended, t.ref)
			e.texts[text] = plannedText{}
			p.ends++
		}
	}
	return nil
}

func (p *graphPlan) deleteRelation(r memory.GraphRelation, step *events.GraphStep) error {
	have, err := p.relation(r)
	if err != nil || !have.living {
		return err
	}
	step.Ended = append(step.Ended, have.ref)
	have.living = false
	p.ends++
	return nil
}

// severs reports whether a change may take relations away that it does not name, with an entity
// at either end: two such changes, of which each has one end, are not in flight together.
func severs(change *memory.GraphChange) bool {
	return slices.ContainsFunc(change.Operations, func(op memory.GraphOperation) bool { return len(op.DeleteEntities) > 0 })
}

// graphNames are the names of entities that a change touches, each once: two changes that
// share one are not in flight together.
func graphNames(change *memory.GraphChange) []string {
	var names []string
	for i := range change.Operations {
		op := &change.Operations[i]
		for _, e := range op.CreateEntities {
			names = append(names, e.Name)
		}
		for _, o := range op.AddObservations {
			names = append(names, o.Entity)
		}
		names = append(names, op.DeleteEntities...)
		for _, d := range op.DeleteObservations {
			names = append(names, d.Entity)
		}
		for _, relations := range [][]memory.GraphRelation{op.CreateRelations, op.DeleteRelations} {
			for _, r := range relations {
				names = append(names, r.From, r.To)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
