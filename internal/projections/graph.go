package projections

import (
	"fmt"
	"maps"
	"slices"

	"mneme/internal/events"
)

// graph is the projection of knowledge graphs: entities, their observations, and relations,
// of each partition. Everything lies below the reference of the event that made it, and an
// event names what was there before by reference. So an event does to the rows the same
// whatever the payloads of others say, and a fold without the key of one lacks its rows and
// nothing else: what erasing leaves. That names are taken once is decided at admission. If
// two entities had one name nevertheless, the later one would be found by it.
type graph struct {
	defaults
	t      *tx
	totals map[uint32]*GraphTotals // of the partitions that it has changed
}

var graphRows = declaration{
	name: "graph",
	rows: []rows{
		{prefix: prefixGraphEntity, scope: ofPartition, fact: true, key: "partition4 seq8 index4 number4", holds: "name and type of the entity that an event made, each uvarint length and bytes"},
		{prefix: prefixGraphObservation, scope: ofPartition, fact: true, key: "partition4 entity16 seq8 index4 number4", holds: "text of an observation of the entity"},
		{prefix: prefixGraphRelation, scope: ofPartition, fact: true, key: "partition4 seq8 index4 number4", holds: "from, to and type, each uvarint length and bytes"},
		{prefix: prefixGraphFind, scope: ofPartition, key: "partition4 hash16 kind1 seq8 index4 number4", holds: "(what has a name: 1 entity by name, 2 relation by an end, 3 relation, 4 observation by entity and text)"},
		{prefix: prefixGraphOwner, scope: ofPartition, key: "partition4 seq8 index4 number4", holds: "entity16 of an observation"},
		{prefix: prefixGraphEnded, scope: ofPartition, key: "partition4 seq8 index4", holds: "what the event took away, each kind1 as above (1, 3 or 4) and reference16; not an entity's observations"},
		{prefix: prefixGraphTotals, scope: ofPartition, key: "partition4", holds: "entities8 observations8 relations8 bytes8 of all strings, seq8 index4 of the last event"},
	},
	sections: []section{{tag: sectionGraph,
		append: func(c *Contribution, b []byte) []byte {
			if len(c.Graph) == 0 {
				return b
			}
			return append(b, events.EncodeGraph(c.Graph)...)
		},
		decode: func(c *Contribution, d *decoder) {
			steps, err := events.DecodeGraph(d.rest())
			c.Graph, d.bad = steps, d.bad || err != nil || len(steps) == 0
		}}},
}

func (g *graph) declared() *declaration { return &graphRows }

// changed decides that a change takes effect, whatever it says.
func (g *graph) changed(ev *event) error {
	if ev.part == nil {
		return ev.is(OutcomeRejected)
	}
	if done, err := g.t.records.usedBefore(ev); done || err != nil {
		return err
	}
	return ev.is(OutcomeApplied)
}

func (g *graph) fold(ev *event) error {
	if !ev.took(events.TypeGraphChanged) {
		return nil
	}
	if !ev.ClientID.IsZero() {
		used := UsedKey{At: ev.at, Body: ev.Body}
		if err := g.t.addFact(ev.Namespace, idemKey(ev.Namespace, ev.ClientID, ev.Agent), used.encode()); err != nil {
			return err
		}
	}
	total, err := g.of(ev.part.ID)
	if err != nil {
		return err
	}
	total.Changed = ev.at
	if ev.contribution == nil {
		return nil
	}
	f := graphFold{graph: g, ns: ev.Namespace, part: ev.part.ID, at: ev.at, total: total}
	for i := range ev.contribution.Graph {
		if err := f.step(&ev.contribution.Graph[i]); err != nil {
			return err
		}
	}
	if len(f.ended) == 0 {
		return nil
	}
	return g.t.b.Set(graphEndedKey(f.part, ev.at), f.ended, nil)
}

// of returns the totals of a partition, to be changed.
func (g *graph) of(part uint32) (*GraphTotals, error) {
	if t := g.totals[part]; t != nil {
		return t, nil
	}
	raw, err := g.t.get(graphTotalsKey(part))
	if err != nil {
		return nil, err
	}
	t := GraphTotals{}
	if raw != nil {
		if t, err = decodeGraphTotals(raw); err != nil {
			return nil, err
		}
	}
	g.totals[part] = &t
	return &t, nil
}

func (g *graph) drop(_ events.ID, parts []uint32) {
	for _, part := range parts {
		delete(g.totals, part)
	}
}

func (g *graph) finish() error {
	for _, part := range slices.Sorted(maps.Keys(g.totals)) {
		if err := g.t.b.Set(graphTotalsKey(part), g.totals[part].encode(), nil); err != nil {
			return err
		}
	}
	return nil
}

// eraseEvent takes out everything that an event made.
func (g *graph) eraseEvent(ns events.ID, part uint32, at Ref) error {
	total, err := g.of(part)
	if err != nil {
		return err
	}
	f := graphFold{graph: g, ns: ns, part: part, at: at, total: total}
	for _, kind := range []struct {
		prefix byte
		end    func(events.GraphRef) error
	}{{prefixGraphEntity, f.endEntity}, {prefixGraphRelation, f.endRelation}, {prefixGraphOwner, f.endObservation}} {
		var refs []events.GraphRef
		if err := eachRow(g.t.b, at.append(be32([]byte{kind.prefix}, part)), func(key, _ []byte) error {
			refs = append(refs, events.DecodeGraphRef(key[5:]))
			return nil
		}); err != nil {
			return err
		}
		for _, ref := range refs {
			if err := kind.end(ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// graphFold carries out the steps of one event.
type graphFold struct {
	*graph
	ns    events.ID
	part  uint32
	at    Ref
	total *GraphTotals
	made  uint32 // things that the event has made so far
	ended []byte // kinds and references
}

// next is the reference of the next thing that the event makes.
func (f *graphFold) next() events.GraphRef {
	r := events.GraphRef{Seq: f.at.Seq, Index: f.at.Index, N: f.made}
	f.made++
	return r
}

func (f *graphFold) step(s *events.GraphStep) error {
	for _, e := range s.Entities {
		if err := f.entity(e); err != nil {
			return err
		}
	}
	for _, r := range s.Relations {
		if err := f.relation(r); err != nil {
			return err
		}
	}
	for _, a := range s.Added {
		entity := a.Entity.At(f.at.Seq, f.at.Index)
		row, err := f.t.get(graphEntityKey(f.part, entity))
		for _, text := range a.Contents {
			ref := f.next() // also where the entity is gone, so that numbers do not depend on it
			if err == nil && row != nil {
				err = f.observation(entity, ref, text)
			}
		}
		if err != nil {
			return err
		}
	}
	var err error
	switch s.Kind {
	case events.GraphEntitiesDeleted:
		if err = f.endAll(graphEntityByName, s.Ended, f.endEntity); err == nil {
			err = f.endAll(graphRelationByAll, s.Severed, f.endRelation)
		}
	case events.GraphObservationsDeleted:
		err = f.endAll(graphObservationByText, s.Ended, f.endObservation)
	case events.GraphRelationsDeleted:
		err = f.endAll(graphRelationByAll, s.Ended, f.endRelation)
	}
	return err
}

// endAll ends things of a kind, and notes them whether they are there or not: the note is the
// same then in a fold that lacks what others made.
func (f *graphFold) endAll(kind byte, refs []events.GraphRef, end func(events.GraphRef) error) error {
	for _, ref := range refs {
		ref = ref.At(f.at.Seq, f.at.Index)
		f.ended = ref.Append(append(f.ended, kind))
		if err := end(ref); err != nil {
			return err
		}
	}
	return nil
}

func (f *graphFold) entity(e events.GraphEntity) error {
	ref := f.next()
	f.total.Entities++
	f.total.Bytes += uint64(len(e.Name) + len(e.Type))
	if err := f.t.addFact(f.ns, graphEntityKey(f.part, ref), appendGraphStrings(nil, e.Name, e.Type)); err != nil {
		return err
	}
	if err := f.t.b.Set(graphFindKey(f.part, graphEntityByName, ref, e.Name), nil, nil); err != nil {
		return err
	}
	for _, text := range e.Observations {
		if err := f.observation(ref, f.next(), text); err != nil {
			return err
		}
	}
	return nil
}

func (f *graphFold) observation(entity, ref events.GraphRef, text string) error {
	f.total.Observations++
	f.total.Bytes += uint64(len(text))
	if err := f.t.addFact(f.ns, graphObservationKey(f.part, entity, ref), []byte(text)); err != nil {
		return err
	}
	if err := f.t.b.Set(graphOwnerKey(f.part, ref), entity.Append(nil), nil); err != nil {
		return err
	}
	return f.t.b.Set(graphFindKey(f.part, graphObservationByText, ref, string(entity.Append(nil)), text), nil, nil)
}

func (f *graphFold) relation(r events.GraphRelation) error {
	ref := f.next()
	f.total.Relations++
	f.total.Bytes += uint64(len(r.From) + len(r.To) + len(r.Type))
	if err := f.t.addFact(f.ns, graphRelationKey(f.part, ref), appendGraphStrings(nil, r.From, r.To, r.Type)); err != nil {
		return err
	}
	for _, key := range relationFinds(f.part, ref, r) {
		if err := f.t.b.Set(key, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// relationFinds are the keys by which a relation is found; the first two are one where it leads
// back to where it starts.
func relationFinds(part uint32, ref events.GraphRef, r events.GraphRelation) [3][]byte {
	return [3][]byte{graphFindKey(part, graphRelationByEnd, ref, r.From), graphFindKey(part, graphRelationByEnd, ref, r.To),
		graphFindKey(part, graphRelationByAll, ref, r.From, r.To, r.Type)}
}

// endEntity takes an entity out, with its observations. What is not there is passed over, here
// and below.
func (f *graphFold) endEntity(ref events.GraphRef) error {
	key := graphEntityKey(f.part, ref)
	row, err := f.t.get(key)
	if err != nil || row == nil {
		return err
	}
	e, err := decodeGraphEntity(row)
	if err != nil {
		return err
	}
	var observations []events.GraphRef
	prefix := graphObservations(f.part, ref)
	if err := eachRow(f.t.b, prefix, func(key, _ []byte) error {
		observations = append(observations, events.DecodeGraphRef(key[len(prefix):]))
		return nil
	}); err != nil {
		return err
	}
	for _, o := range observations {
		if err := f.endObservation(o); err != nil {
			return err
		}
	}
	f.total.Entities--
	f.total.Bytes -= uint64(len(e.Name) + len(e.Type))
	if err := f.t.deleteFact(f.ns, key, row); err != nil {
		return err
	}
	return f.t.b.Delete(graphFindKey(f.part, graphEntityByName, ref, e.Name), nil)
}

func (f *graphFold) endObservation(ref events.GraphRef) error {
	owner, err := f.t.get(graphOwnerKey(f.part, ref))
	if err != nil || owner == nil {
		return err
	}
	if len(owner) != events.GraphRefBytes {
		return fmt.Errorf("owner of an observation: %w", events.ErrMalformed)
	}
	entity := events.DecodeGraphRef(owner)
	key := graphObservationKey(f.part, entity, ref)
	text, err := f.t.get(key)
	if err != nil {
		return err
	}
	f.total.Observations--
	f.total.Bytes -= uint64(len(text))
	if err := f.t.deleteFact(f.ns, key, text); err != nil {
		return err
	}
	if err := f.t.b.Delete(graphOwnerKey(f.part, ref), nil); err != nil {
		return err
	}
	return f.t.b.Delete(graphFindKey(f.part, graphObservationByText, ref, string(owner), string(text)), nil)
}

func (f *graphFold) endRelation(ref events.GraphRef) error {
	key := graphRelationKey(f.part, ref)
	row, err := f.t.get(key)
	if err != nil || row == nil {
		return err
	}
	r, err := decodeGraphRelation(row)
	if err != nil {
		return err
	}
	f.total.Relations--
	f.total.Bytes -= uint64(len(r.From) + len(r.To) + len(r.Type))
	if err := f.t.deleteFact(f.ns, key, row); err != nil {
		return err
	}
	for _, key := range relationFinds(f.part, ref, r) {
		if err := f.t.b.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}
