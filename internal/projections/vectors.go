package projections

import (
	"encoding/binary"

	"mneme/internal/events"
)

// Vectors: sealed chunk vectors by space, numbered in DocID order, and the
// records that still wait for theirs.

// addVectors stores a version's vectors, or notes that they are pending.
func (t *tx) addVectors(ev *eventContext, p *Partition, doc uint32, record events.ID, space SpaceKey, chunks uint32, sealed [][]byte) error {
	if chunks == 0 {
		return nil
	}
	if len(sealed) == 0 {
		t.namespace(p.Namespace).pending++
		return t.b.Set(pendingKey(p.Namespace, p.ID, doc), record[:], nil)
	}
	first, err := t.takeVectorIDs(p.ID, space, uint32(len(sealed)))
	if err != nil {
		return err
	}
	for i, s := range sealed {
		row := VectorRow{Doc: doc, Chunk: uint16(i), Key: ev.Key, Event: ev.Event, Sealed: s}
		id := first + uint32(i)
		if err := t.addFact(p.Namespace, vectorKey(p.ID, space, id), row.encode()); err != nil {
			return err
		}
		t.out.Vectors = append(t.out.Vectors, AppliedVector{Partition: p.ID, Space: space, ID: id, Row: row})
	}
	return t.b.Set(docVectorsKey(p.ID, space, doc), be32(be32(nil, first), uint32(len(sealed))), nil)
}

func (t *tx) takeVectorIDs(part uint32, space SpaceKey, n uint32) (uint32, error) {
	key := nextVectorKey(part, space)
	next, ok := t.nextVec[string(key)]
	if !ok {
		raw, err := t.get(key)
		if err != nil {
			return 0, err
		}
		if len(raw) == 4 {
			next = binary.BigEndian.Uint32(raw)
		}
	}
	t.nextVec[string(key)] = next + n
	return next, nil
}

// vectorsAttached gives a pending version its vectors. A version that is no
// longer the record's present one, or that has them, is left alone.
func (t *tx) vectorsAttached(ev *eventContext) (EventResult, error) {
	h, p, err := t.target(ev)
	if err != nil {
		return EventResult{}, err
	}
	c := ev.contribution
	if p == nil || h.Versions != ev.BaseVersion || c == nil {
		return EventResult{Outcome: OutcomeRejected, Record: ev.Target}, nil
	}
	res := EventResult{Outcome: OutcomeApplied, Record: ev.Target, Version: h.Versions}
	have, err := t.get(docVectorsKey(p.ID, c.Space, h.Doc))
	if err != nil {
		return res, err
	}
	if have != nil {
		res.Outcome = OutcomeDuplicate
		return res, nil
	}
	if len(c.Vectors) == 0 {
		res.Outcome = OutcomeRejected
		return res, nil
	}
	if err := t.dropPending(p, h.Doc); err != nil {
		return res, err
	}
	return res, t.addVectors(ev, p, h.Doc, ev.Target, c.Space, uint32(len(c.Vectors)), c.Vectors)
}

func (t *tx) dropPending(p *Partition, doc uint32) error {
	key := pendingKey(p.Namespace, p.ID, doc)
	raw, err := t.get(key)
	if err != nil || raw == nil {
		return err
	}
	t.namespace(p.Namespace).pending--
	return t.b.Delete(key, nil)
}
