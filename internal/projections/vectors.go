package projections

import (
	"encoding/binary"
	"fmt"
	"math"

	"mneme/internal/events"
)

// Vectors: chunk vectors by space, numbered in DocID order as far as they come
// with their versions, and the versions that still wait for theirs.

// VectorRow is one chunk vector. Numbers are u8 encoding ‖ numbers: one signed
// byte a dimension (events.VectorsSmall), of length about 127, or little-endian
// float32s of length 1 (events.VectorsFloat).
type VectorRow struct {
	Doc     uint32
	Chunk   uint16
	Numbers []byte
}

func (v *VectorRow) encode() []byte {
	b := be32(make([]byte, 0, 6+len(v.Numbers)), v.Doc)
	b = binary.BigEndian.AppendUint16(b, v.Chunk)
	return append(b, v.Numbers...)
}

func decodeVectorRow(b []byte) (VectorRow, error) {
	if len(b) < 6 {
		return VectorRow{}, fmt.Errorf("vector row: %w", events.ErrMalformed)
	}
	return VectorRow{binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:]), b[6:]}, nil
}

// Small gives the signed bytes of a vector that has so many dimensions; false
// if it does not hold bytes.
func (v *VectorRow) Small(dims int) ([]byte, bool) {
	if len(v.Numbers) != 1+dims || v.Numbers[0] != events.VectorsSmall {
		return nil, false
	}
	return v.Numbers[1:], true
}

// Floats puts the vector into dst, which must have its dimensions. It has
// length 1 there unless it is zero.
func (v *VectorRow) Floats(dst []float32) error {
	if small, ok := v.Small(len(dst)); ok {
		var sum float64
		for _, b := range small {
			sum += float64(int8(b)) * float64(int8(b))
		}
		scale := 0.0
		if sum > 0 {
			scale = 1 / math.Sqrt(sum)
		}
		for i, b := range small {
			dst[i] = float32(float64(int8(b)) * scale)
		}
		return nil
	}
	if len(v.Numbers) != 1+4*len(dst) || v.Numbers[0] != events.VectorsFloat {
		return fmt.Errorf("vector of document %d chunk %d has %d bytes for %d dimensions: %w", v.Doc, v.Chunk, len(v.Numbers), len(dst), events.ErrMalformed)
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(v.Numbers[1+4*i:]))
	}
	return nil
}

// newVectors stores a new version's vectors in the current space and, if one
// is being built, in that, or notes that they are to come.
func (t *tx) newVectors(p *Partition, doc uint32, record events.ID, c *Contribution) error {
	row := &t.namespace(p.Namespace).row
	for _, s := range []*SpaceVectors{&c.SpaceVectors, &c.Next} {
		var err error
		switch {
		case s.Chunks == 0 || s.Space != row.Space && s.Space != row.Next:
		case len(s.Vectors) > 0:
			err = t.addVectors(p, doc, s.Space, s.Vectors)
		default:
			t.namespace(p.Namespace).totals(s.Space).pending++
			err = t.b.Set(pendingKey(p.Namespace, s.Space, p.ID, doc), record[:], nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addVectors stores the vectors of a living version in one space.
func (t *tx) addVectors(p *Partition, doc uint32, space SpaceKey, vectors [][]byte) error {
	first, err := t.takeVectorIDs(p.ID, space, uint32(len(vectors)))
	if err != nil {
		return err
	}
	n := t.namespace(p.Namespace)
	totals := n.totals(space)
	totals.living++
	for i, numbers := range vectors {
		row := VectorRow{Doc: doc, Chunk: uint16(i), Numbers: numbers}
		var h StateHash
		h, t.scratch = factHash(t.scratch, vectorFactKey(p.ID, space, doc, row.Chunk), numbers)
		n.hash, totals.hash = n.hash.Add(h), totals.hash.Add(h)
		id := first + uint32(i)
		if err := t.b.Set(vectorKey(p.ID, space, id), row.encode(), nil); err != nil {
			return err
		}
		t.out.Vectors = append(t.out.Vectors, AppliedVector{Partition: p.ID, Space: space, ID: id, Row: row})
	}
	return t.b.Set(docVectorsKey(p.ID, space, doc), be32(be32(nil, first), uint32(len(vectors))), nil)
}

// endVectors counts a version out of each space that it has vectors in, or
// waits for. The vectors stay, as the version's other rows do.
func (t *tx) endVectors(p *Partition, doc uint32) error {
	for space, totals := range t.namespace(p.Namespace).spaces {
		have, err := t.get(docVectorsKey(p.ID, space, doc))
		if err != nil {
			return err
		}
		if have != nil {
			totals.living--
		}
		if err := t.endPending(p, space, doc); err != nil {
			return err
		}
	}
	return nil
}

// endPending takes a version out of those that wait for vectors in a space.
func (t *tx) endPending(p *Partition, space SpaceKey, doc uint32) error {
	totals := t.namespace(p.Namespace).totals(space)
	if totals.pending == 0 {
		return nil
	}
	key := pendingKey(p.Namespace, space, p.ID, doc)
	raw, err := t.get(key)
	if err != nil || raw == nil {
		return err
	}
	totals.pending--
	return t.b.Delete(key, nil)
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
	if err := t.endPending(p, c.Space, h.Doc); err != nil {
		return res, err
	}
	return res, t.addVectors(p, h.Doc, c.Space, c.Vectors)
}
