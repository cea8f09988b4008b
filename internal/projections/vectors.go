package projections

import (
	"encoding/binary"

	"mneme/internal/events"
)

// Vectors: sealed chunk vectors by space, numbered in DocID order, and the
// records that still wait for theirs.

// newVectors stores a new version's vectors in the current space and, if one
// is being built, in that, or notes that they are to come.
func (t *tx) newVectors(ev *eventContext, p *Partition, doc uint32, record events.ID, c *Contribution) error {
	switch {
	case c.Chunks == 0:
	case len(c.Vectors) > 0:
		if err := t.addVectors(ev, p, doc, c.Space, c.Vectors); err != nil {
			return err
		}
	default:
		t.namespace(p.Namespace).pending++
		if err := t.b.Set(pendingKey(p.Namespace, p.ID, doc), record[:], nil); err != nil {
			return err
		}
	}
	next := &c.Next
	switch {
	case next.Chunks == 0 || next.Space != t.namespace(p.Namespace).row.Next:
		return nil
	case len(next.Vectors) > 0:
		return t.addVectors(ev, p, doc, next.Space, next.Vectors)
	}
	return t.b.Set(waitingKey(p.Namespace, p.ID, doc), record[:], nil)
}

// addVectors stores the vectors of a living version in one space.
func (t *tx) addVectors(ev *eventContext, p *Partition, doc uint32, space SpaceKey, sealed [][]byte) error {
	first, err := t.takeVectorIDs(p.ID, space, uint32(len(sealed)))
	if err != nil {
		return err
	}
	n := t.namespace(p.Namespace)
	totals := n.totals(space)
	totals.living++
	for i, s := range sealed {
		row := VectorRow{Doc: doc, Chunk: uint16(i), Key: ev.Key, Event: ev.Event, Sealed: s}
		id := first + uint32(i)
		key, value := vectorKey(p.ID, space, id), row.encode()
		var h StateHash
		h, t.scratch = factHash(t.scratch, key, value)
		n.hash, totals.hash = n.hash.Add(h), totals.hash.Add(h)
		if err := t.b.Set(key, value, nil); err != nil {
			return err
		}
		t.out.Vectors = append(t.out.Vectors, AppliedVector{Partition: p.ID, Space: space, ID: id, Row: row})
	}
	return t.b.Set(docVectorsKey(p.ID, space, doc), be32(be32(nil, first), uint32(len(sealed))), nil)
}

// buryVectors counts a version out of each space that it has vectors in. The
// rows stay, as the version's others do.
func (t *tx) buryVectors(p *Partition, doc uint32) error {
	n := t.namespace(p.Namespace)
	if !n.row.Next.IsZero() {
		if err := t.b.Delete(waitingKey(p.Namespace, p.ID, doc), nil); err != nil {
			return err
		}
	}
	for space, totals := range n.spaces {
		have, err := t.get(docVectorsKey(p.ID, space, doc))
		if err != nil {
			return err
		}
		if have != nil {
			totals.living--
		}
	}
	return nil
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

// vectorsAttached gives a version its vectors in one of the namespace's spaces.
// A version that is no longer the record's present one, or that has them, is
// left alone, and so is a space that was dropped meanwhile.
func (t *tx) vectorsAttached(ev *eventContext) (EventResult, error) {
	h, p, err := t.target(ev)
	if err != nil {
		return EventResult{}, err
	}
	c := ev.contribution
	if p == nil || h.Versions != ev.BaseVersion || c == nil || !t.namespace(p.Namespace).row.knows(c.Space) {
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
	switch row := &t.namespace(p.Namespace).row; c.Space {
	case row.Space:
		err = t.dropPending(p, h.Doc)
	case row.Next:
		err = t.b.Delete(waitingKey(p.Namespace, p.ID, h.Doc), nil)
	}
	if err != nil {
		return res, err
	}
	return res, t.addVectors(ev, p, h.Doc, c.Space, c.Vectors)
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
