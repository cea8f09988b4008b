package projections

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// graphReads are the reads of knowledge graphs.
type graphReads struct{ p *published }

// GraphTotals is how much a partition's graph has.
func (v graphReads) GraphTotals(part uint32) (GraphTotals, error) {
	raw, err := v.p.get(graphTotalsKey(part))
	if err != nil || raw == nil {
		return GraphTotals{}, err
	}
	return decodeGraphTotals(raw)
}

// GraphEntity reads an entity without its observations; false if it is not there.
func (v graphReads) GraphEntity(part uint32, ref events.GraphRef) (events.GraphEntity, bool, error) {
	row, err := v.p.get(graphEntityKey(part, ref))
	if err != nil || row == nil {
		return events.GraphEntity{}, false, err
	}
	e, err := decodeGraphEntity(row)
	return e, err == nil, err
}

// GraphNamed finds the entity of a name, without its observations.
func (v graphReads) GraphNamed(part uint32, name string) (ref events.GraphRef, e events.GraphEntity, ok bool, err error) {
	found, err := v.found(graphFinds(part, graphEntityByName, name))
	for i := len(found) - 1; i >= 0 && err == nil; i-- {
		if e, ok, err = v.GraphEntity(part, found[i]); ok && e.Name == name {
			return found[i], e, true, nil
		}
	}
	return ref, events.GraphEntity{}, false, err
}

// GraphObservation finds an observation of an entity by its text.
func (v graphReads) GraphObservation(part uint32, entity events.GraphRef, text string) (events.GraphRef, bool, error) {
	found, err := v.found(graphFinds(part, graphObservationByText, string(entity.Append(nil)), text))
	for _, ref := range found {
		have, err := v.p.get(graphObservationKey(part, entity, ref))
		if err != nil || string(have) == text && have != nil {
			return ref, err == nil, err
		}
	}
	return events.GraphRef{}, false, err
}

// GraphRelation finds a relation.
func (v graphReads) GraphRelation(part uint32, r events.GraphRelation) (events.GraphRef, bool, error) {
	found, err := v.found(graphFinds(part, graphRelationByAll, r.From, r.To, r.Type))
	for _, ref := range found {
		have, ok, err := v.relation(part, ref)
		if err != nil || ok && have == r {
			return ref, err == nil, err
		}
	}
	return events.GraphRef{}, false, err
}

func (v graphReads) relation(part uint32, ref events.GraphRef) (events.GraphRelation, bool, error) {
	row, err := v.p.get(graphRelationKey(part, ref))
	if err != nil || row == nil {
		return events.GraphRelation{}, false, err
	}
	r, err := decodeGraphRelation(row)
	return r, err == nil, err
}

// GraphRelationsOf visits the relations that begin or end at a name, in the order of creation.
func (v graphReads) GraphRelationsOf(part uint32, name string, visit func(events.GraphRef, events.GraphRelation) (bool, error)) error {
	return v.below(graphFinds(part, graphRelationByEnd, name), func(ref events.GraphRef, _ []byte) (bool, error) {
		r, ok, err := v.relation(part, ref)
		if err != nil || !ok || r.From != name && r.To != name {
			return true, err
		}
		return visit(ref, r)
	})
}

// found lists the references below a prefix of finds.
func (v graphReads) found(prefix []byte) (refs []events.GraphRef, err error) {
	err = v.below(prefix, func(ref events.GraphRef, _ []byte) (bool, error) {
		refs = append(refs, ref)
		return true, nil
	})
	return refs, err
}

// below visits the rows of a prefix that a reference follows, in its order.
func (v graphReads) below(prefix []byte, visit func(ref events.GraphRef, value []byte) (bool, error)) error {
	return v.belowAfter(prefix, events.GraphRef{}, visit)
}

// belowAfter is below for the rows behind a reference; the zero one is before all of them.
func (v graphReads) belowAfter(prefix []byte, after events.GraphRef, visit func(ref events.GraphRef, value []byte) (bool, error)) error {
	return v.p.walk(behindGraph(prefix, after), storage.PrefixEnd(prefix), false, func(key, value []byte) (bool, error) {
		return visit(events.DecodeGraphRef(key[len(prefix):]), value)
	})
}

// behindGraph is where the rows of a prefix begin that a greater reference follows.
func behindGraph(prefix []byte, after events.GraphRef) []byte {
	if after == (events.GraphRef{}) {
		return prefix
	}
	return storage.PrefixEnd(after.Append(prefix[:len(prefix):len(prefix)]))
}

// GraphObservations visits the observations of an entity, in the order in which they came.
func (v graphReads) GraphObservations(part uint32, entity events.GraphRef, visit func(ref events.GraphRef, text []byte) (bool, error)) error {
	return v.below(graphObservations(part, entity), visit)
}

// GraphEntities visits all entities behind one with their observations, in the order of creation;
// the zero reference is before all of them. It reads each of their rows once, none of those that
// it passes over, and holds one entity at a time.
func (v graphReads) GraphEntities(part uint32, after events.GraphRef, visit func(events.GraphRef, events.GraphEntity) (bool, error)) error {
	prefix := be32([]byte{prefixGraphObservation}, part)
	texts, err := v.p.snap.NewIter(&pebble.IterOptions{LowerBound: behindGraph(prefix, after), UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return err
	}
	next := texts.First()
	err = v.belowAfter(be32([]byte{prefixGraphEntity}, part), after, func(ref events.GraphRef, value []byte) (bool, error) {
		e, err := decodeGraphEntity(value)
		if err != nil {
			return false, err
		}
		for ; next; next = texts.Next() {
			of := events.DecodeGraphRef(texts.Key()[5:])
			if ref.Before(of) {
				break
			}
			if of == ref {
				e.Observations = append(e.Observations, string(texts.Value()))
			}
		}
		return visit(ref, e)
	})
	return errors.Join(err, texts.Error(), texts.Close())
}

// GraphRelations visits all relations in the order of creation.
func (v graphReads) GraphRelations(part uint32, visit func(events.GraphRef, events.GraphRelation) (bool, error)) error {
	return v.below(be32([]byte{prefixGraphRelation}, part), func(ref events.GraphRef, value []byte) (bool, error) {
		r, err := decodeGraphRelation(value)
		if err != nil {
			return false, err
		}
		return visit(ref, r)
	})
}

// GraphNews is what happened to a partition's graph behind an event.
type GraphNews struct {
	// Entity is told of each entity that was made and is there, without its observations.
	Entity func(events.GraphRef, events.GraphEntity)
	// Observation is told of each observation, in any order.
	Observation func(ref, entity events.GraphRef, text string)
	// EntityEnded and ObservationEnded are told of what an event took away, as far as it named
	// it: of an entity, without its observations.
	EntityEnded, ObservationEnded func(ref events.GraphRef, at Ref)
}

// GraphSince tells what happened to a partition's graph behind an event; the zero Ref is the
// beginning. It costs what happened, from the beginning what is there.
func (v graphReads) GraphSince(part uint32, after Ref, tell GraphNews) error {
	if err := v.behind(prefixGraphEntity, part, after, func(key, value []byte) (bool, error) {
		e, err := decodeGraphEntity(value)
		if err == nil {
			tell.Entity(events.DecodeGraphRef(key[5:]), e)
		}
		return true, err
	}); err != nil {
		return err
	}
	if err := v.observationsSince(part, after, tell.Observation); err != nil || after == (Ref{}) {
		return err // from the beginning: what has ended was not told of
	}
	return v.behind(prefixGraphEnded, part, after, func(key, value []byte) (bool, error) {
		for ; len(value) > events.GraphRefBytes; value = value[1+events.GraphRefBytes:] {
			switch value[0] {
			case graphEntityByName:
				tell.EntityEnded(events.DecodeGraphRef(value[1:]), decodeRef(key[5:]))
			case graphObservationByText:
				tell.ObservationEnded(events.DecodeGraphRef(value[1:]), decodeRef(key[5:]))
			}
		}
		return true, nil
	})
}

// observationsSince reads all observations as they lie, and those behind an event one by one.
func (v graphReads) observationsSince(part uint32, after Ref, tell func(ref, entity events.GraphRef, text string)) error {
	if after == (Ref{}) {
		return v.behind(prefixGraphObservation, part, after, func(key, value []byte) (bool, error) {
			tell(events.DecodeGraphRef(key[5+events.GraphRefBytes:]), events.DecodeGraphRef(key[5:]), string(value))
			return true, nil
		})
	}
	return v.behind(prefixGraphOwner, part, after, func(key, value []byte) (bool, error) {
		ref, entity := events.DecodeGraphRef(key[5:]), events.DecodeGraphRef(value)
		text, err := v.p.get(graphObservationKey(part, entity, ref))
		if err == nil {
			tell(ref, entity, string(text))
		}
		return true, err
	})
}

// behind visits the rows of a prefix and a partition that belong to what events made behind one.
func (v graphReads) behind(prefix byte, part uint32, after Ref, visit func(key, value []byte) (bool, error)) error {
	all := be32([]byte{prefix}, part)
	return v.p.walk(Ref{after.Seq, after.Index + 1}.append(all[:len(all):len(all)]), storage.PrefixEnd(all), false, visit)
}
