package query

import (
	"errors"

	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// graphTeller says in names what an event did to a graph. An event names what was there before
// by the events that made it, which are opened for that: what an erasure left closed has no
// name any more.
type graphTeller struct {
	keys *keyring.Keyring
	view *projections.View
	at   projections.Ref // of the event that is told of
	made map[projections.Ref][]graphThing
}

// graphThing is one thing that an event made: one of the two is set, or a text and its entity.
type graphThing struct {
	entity   *events.GraphEntity
	relation *events.GraphRelation
	of       events.GraphRef
	text     string
}

// tellGraph is the public form of a graph.changed.
func tellGraph(keys *keyring.Keyring, v *projections.View, namespace string, at projections.Ref, env *events.Envelope) (memory.GraphEvent, error) {
	out := memory.GraphEvent{Namespace: namespace, Agent: env.Agent}
	steps, err := views.OpenGraph(keys, env)
	if errors.Is(err, views.ErrErased) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	t := graphTeller{keys: keys, view: v, at: at, made: map[projections.Ref][]graphThing{at: thingsOf(steps, at)}}
	for i := range steps {
		if err := t.tell(&out, &steps[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// thingsOf lists what an event makes, by number.
func thingsOf(steps []events.GraphStep, at projections.Ref) (out []graphThing) {
	for i := range steps {
		s := &steps[i]
		for j := range s.Entities {
			of := events.GraphRef{Seq: at.Seq, Index: at.Index, N: uint32(len(out))}
			out = append(out, graphThing{entity: &s.Entities[j]})
			for _, text := range s.Entities[j].Observations {
				out = append(out, graphThing{of: of, text: text})
			}
		}
		for j := range s.Relations {
			out = append(out, graphThing{relation: &s.Relations[j]})
		}
		for _, a := range s.Added {
			for _, text := range a.Contents {
				out = append(out, graphThing{of: a.Entity.At(at.Seq, at.Index), text: text})
			}
		}
	}
	return out
}

// thing finds what a reference names; false if that was erased.
func (t *graphTeller) thing(ref events.GraphRef) (graphThing, bool, error) {
	ref = ref.At(t.at.Seq, t.at.Index)
	at := projections.Ref{Seq: ref.Seq, Index: ref.Index}
	made, known := t.made[at]
	if !known {
		env, _, err := t.view.Envelope(at)
		if err != nil {
			return graphThing{}, false, err
		}
		steps, err := views.OpenGraph(t.keys, &env)
		if err != nil && !errors.Is(err, views.ErrErased) {
			return graphThing{}, false, err
		}
		made = thingsOf(steps, at)
		t.made[at] = made
	}
	if int(ref.N) >= len(made) {
		return graphThing{}, false, nil
	}
	return made[ref.N], true, nil
}

// name is the name of an entity; "" if it was erased.
func (t *graphTeller) name(ref events.GraphRef) (string, error) {
	e, ok, err := t.thing(ref)
	if err != nil || !ok || e.entity == nil {
		return "", err
	}
	return e.entity.Name, nil
}

func (t *graphTeller) tell(out *memory.GraphEvent, s *events.GraphStep) error {
	for _, e := range s.Entities {
		out.CreatedEntities = append(out.CreatedEntities, publicEntity(e))
	}
	for _, r := range s.Relations {
		out.CreatedRelations = append(out.CreatedRelations, memory.GraphRelation(r))
	}
	for _, a := range s.Added {
		name, err := t.name(a.Entity)
		if err != nil {
			return err
		}
		if name != "" && len(a.Contents) > 0 {
			out.AddedObservations = append(out.AddedObservations, memory.GraphObservations{Entity: name, Contents: a.Contents})
		}
	}
	for _, refs := range [][]events.GraphRef{s.Ended, s.Severed} {
		for _, ref := range refs {
			if err := t.ended(out, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended tells of what was taken away.
func (t *graphTeller) ended(out *memory.GraphEvent, ref events.GraphRef) error {
	gone, ok, err := t.thing(ref)
	if err != nil || !ok {
		return err
	}
	if gone.entity != nil {
		out.DeletedEntities = append(out.DeletedEntities, gone.entity.Name)
		return nil
	}
	if gone.relation != nil {
		out.DeletedRelations = append(out.DeletedRelations, memory.GraphRelation(*gone.relation))
		return nil
	}
	name, err := t.name(gone.of)
	if err != nil || name == "" {
		return err
	}
	last := len(out.DeletedObservations) - 1
	if last < 0 || out.DeletedObservations[last].Entity != name {
		out.DeletedObservations = append(out.DeletedObservations, memory.GraphDeletion{Entity: name})
		last++
	}
	out.DeletedObservations[last].Observations = append(out.DeletedObservations[last].Observations, gone.text)
	return nil
}
