package projections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"mneme/internal/events"
	"mneme/internal/storage"
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

// spaceID names a space of a namespace.
type spaceID struct {
	ns    events.ID
	space SpaceKey
}

// spaceTotals is what a namespace has in one space.
type spaceTotals struct {
	living  uint64    // living versions with vectors in it
	pending uint64    // living versions that wait for theirs, since it is current or being built
	hash    StateHash // sum over its vector rows, so that dropping it costs no scan
}

func (s *spaceTotals) encode() []byte {
	return append(be64(be64(nil, s.living), s.pending), s.hash.encode()...)
}

func decodeSpaceTotals(b []byte) (*spaceTotals, error) {
	if len(b) != 48 {
		return nil, fmt.Errorf("space totals row: %w", events.ErrMalformed)
	}
	return &spaceTotals{living: binary.BigEndian.Uint64(b), pending: binary.BigEndian.Uint64(b[8:]), hash: decodeStateHash(b[16:])}, nil
}

// DroppedSpace is a space whose vectors are gone from a namespace.
type DroppedSpace struct {
	Namespace events.ID
	Space     SpaceKey
}

// vectors is the projection of vectors by space, and of the versions that wait
// for theirs.
type vectors struct {
	defaults
	t      *tx
	spaces changes[spaceID, spaceTotals]
	next   map[string]uint32 // next VectorID by its key
}

var vectorRows = declaration{
	name: "vectors",
	rows: []rows{
		{prefix: prefixSpace, scope: ofNamespace, key: "namespace16 space8",
			holds: "living versions with vectors in it 8, that wait for them 8, sum of its vectors' fact hashes 32"},
		{prefix: prefixPending, scope: ofNamespace, key: "namespace16 space8 partition4 doc4",
			holds: "record16: waits for its vectors in the current space or the one being built"},
		{prefix: prefixVector, scope: ofPartition, fact: true, key: "partition4 space8 vector4", holds: "doc4 chunk2 encoding1 numbers"},
		{prefix: prefixDocVectors, scope: ofPartition, key: "partition4 space8 doc4", holds: "first vector4, count4"},
		{prefix: prefixNextVector, scope: ofPartition, key: "partition4 space8", holds: "next vector number, 4"},
	},
	sections: []section{
		{tag: sectionVectors,
			append: func(c *Contribution, b []byte) []byte { return c.SpaceVectors.append(b) },
			decode: func(c *Contribution, d *decoder) { c.SpaceVectors.decode(d) }},
		{tag: sectionNext,
			append: func(c *Contribution, b []byte) []byte { return c.Next.append(b) },
			decode: func(c *Contribution, d *decoder) { c.Next.decode(d) }},
	},
	load: func(db *storage.DB, m *memory) error {
		all := map[spaceID]*spaceTotals{}
		err := eachRow(db, []byte{prefixSpace}, func(key, value []byte) error {
			if len(key) != 25 {
				return fmt.Errorf("space totals key: %w", events.ErrMalformed)
			}
			s, err := decodeSpaceTotals(value)
			all[spaceID{events.ID(key[1:17]), SpaceKey(key[17:])}] = s
			return err
		})
		m.spaces = m.spaces.with(all)
		return err
	},
}

func (x *vectors) declared() *declaration { return &vectorRows }

// attached decides whether a version gets the vectors that an embedder gave for
// it, in one of the namespace's spaces. A version that is no longer the record's
// present one, or that has them, is left alone, and so is a space that was dropped
// meanwhile.
func (x *vectors) attached(ev *event) error {
	found, err := x.t.records.target(ev)
	if err != nil {
		return err
	}
	ev.result.Record = ev.Target
	c := ev.contribution
	if !found || ev.head.Versions != ev.BaseVersion || c == nil || !x.t.home.of(ev.Namespace).knows(c.Space) {
		return ev.is(OutcomeRejected)
	}
	ev.result.Version = ev.head.Versions
	have, err := x.t.get(docVectorsKey(ev.part.ID, c.Space, ev.head.Doc))
	switch {
	case err != nil:
		return err
	case have != nil:
		return ev.is(OutcomeDuplicate)
	case len(c.Vectors) == 0:
		return ev.is(OutcomeRejected)
	}
	return ev.is(OutcomeApplied)
}

func (x *vectors) fold(ev *event) error {
	if ev.ended != nil {
		if err := x.end(ev.ended.part, ev.ended.doc); err != nil {
			return err
		}
	}
	c := ev.contribution
	switch {
	case ev.began != nil && c != nil:
		return x.begin(ev.began, c)
	case ev.took(events.TypeVectorsAttached):
		if err := x.endPending(ev.part, c.Space, ev.head.Doc); err != nil {
			return err
		}
		return x.add(ev.part, ev.head.Doc, c.Space, c.Vectors)
	case ev.took(events.TypeSpaceSwitched) && !ev.space.IsZero():
		// The space before is not filled any more. Nothing is written about the
		// versions that still wait for vectors in the new one.
		x.totals(ev.Namespace, ev.space).pending = 0
		return x.t.dropRange(pendingPrefix(ev.Namespace, ev.space))
	case ev.took(events.TypeSpaceDropped):
		return x.dropSpace(ev.Namespace, ev.space)
	}
	return nil
}

func (x *vectors) totals(ns events.ID, space SpaceKey) *spaceTotals {
	return x.spaces.edit(spaceID{ns, space})
}

// begin stores a new version's vectors in the current space and, if one is being
// built, in that, or notes that they are to come.
func (x *vectors) begin(v *version, c *Contribution) error {
	ns := v.part.Namespace
	row := x.t.home.of(ns)
	for _, s := range []*SpaceVectors{&c.SpaceVectors, &c.Next} {
		var err error
		switch {
		case s.Chunks == 0 || s.Space != row.Space && s.Space != row.Next:
		case len(s.Vectors) > 0:
			err = x.add(v.part, v.doc, s.Space, s.Vectors)
		default:
			x.totals(ns, s.Space).pending++
			err = x.t.b.Set(pendingKey(ns, s.Space, v.part.ID, v.doc), v.record[:], nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add stores the vectors of a living version in one space.
func (x *vectors) add(p *Partition, doc uint32, space SpaceKey, vectors [][]byte) error {
	first, err := x.takeIDs(p.ID, space, uint32(len(vectors)))
	if err != nil {
		return err
	}
	totals := x.totals(p.Namespace, space)
	totals.living++
	for i, numbers := range vectors {
		row := VectorRow{Doc: doc, Chunk: uint16(i), Numbers: numbers}
		totals.hash = totals.hash.Add(x.t.facts.add(p.Namespace, vectorFactKey(p.ID, space, doc, row.Chunk), numbers))
		id := first + uint32(i)
		if err := x.t.b.Set(vectorKey(p.ID, space, id), row.encode(), nil); err != nil {
			return err
		}
		x.t.out.Vectors = append(x.t.out.Vectors, AppliedVector{Partition: p.ID, Space: space, ID: id, Row: row})
	}
	return x.t.b.Set(docVectorsKey(p.ID, space, doc), be32(be32(nil, first), uint32(len(vectors))), nil)
}

func (x *vectors) takeIDs(part uint32, space SpaceKey, n uint32) (uint32, error) {
	key := nextVectorKey(part, space)
	next, ok := x.next[string(key)]
	if !ok {
		raw, err := x.t.get(key)
		if err != nil {
			return 0, err
		}
		if len(raw) == 4 {
			next = binary.BigEndian.Uint32(raw)
		}
	}
	x.next[string(key)] = next + n
	return next, nil
}

// end counts a version out of each space that it has vectors in, or waits for.
// The vectors stay, as the version's other rows do.
func (x *vectors) end(p *Partition, doc uint32) error {
	for _, space := range x.t.home.of(p.Namespace).spaces() {
		have, err := x.t.get(docVectorsKey(p.ID, space, doc))
		if err != nil {
			return err
		}
		if have != nil {
			x.totals(p.Namespace, space).living--
		}
		if err := x.endPending(p, space, doc); err != nil {
			return err
		}
	}
	return nil
}

// endPending takes a version out of those that wait for vectors in a space.
func (x *vectors) endPending(p *Partition, space SpaceKey, doc uint32) error {
	if s := x.spaces.get(spaceID{p.Namespace, space}); s == nil || s.pending == 0 {
		return nil
	}
	key := pendingKey(p.Namespace, space, p.ID, doc)
	raw, err := x.t.get(key)
	if err != nil || raw == nil {
		return err
	}
	x.totals(p.Namespace, space).pending--
	return x.t.b.Delete(key, nil)
}

// dropSpace deletes the vectors of a namespace in one space. Its numbers begin
// at 0 again, should it ever be built anew.
func (x *vectors) dropSpace(ns events.ID, space SpaceKey) error {
	parts, err := x.t.partitions.of(ns)
	if err != nil {
		return err
	}
	for _, part := range parts {
		for _, prefix := range [][]byte{vectorPrefix(part, space), docVectorsPrefix(part, space), nextVectorKey(part, space)} {
			if err := x.t.dropRange(prefix); err != nil {
				return err
			}
		}
		delete(x.next, string(nextVectorKey(part, space)))
		x.t.out.Vectors = slices.DeleteFunc(x.t.out.Vectors, func(v AppliedVector) bool { return v.Partition == part && v.Space == space })
	}
	id := spaceID{ns, space}
	if s := x.spaces.get(id); s != nil {
		x.t.facts.removeSum(ns, s.hash)
		x.spaces.remove(id)
	}
	x.t.out.DroppedSpaces = append(x.t.out.DroppedSpaces, DroppedSpace{ns, space})
	return errors.Join(x.t.dropRange(pendingPrefix(ns, space)), x.t.b.Delete(spaceTotalsKey(ns, space), nil))
}

func (x *vectors) drop(ns events.ID, parts []uint32) {
	for key := range x.next {
		if slices.Contains(parts, binary.BigEndian.Uint32([]byte(key)[1:])) {
			delete(x.next, key)
		}
	}
	gone := func(id spaceID, _ *spaceTotals) {
		if id.ns == ns {
			x.spaces.remove(id)
		}
	}
	for id, s := range x.spaces.now {
		gone(id, s)
	}
	if h := x.t.home.homes.was.get(ns); h != nil { // the present one may have been dropped already
		for _, space := range h.spaces() {
			gone(spaceID{ns, space}, nil)
		}
	}
}

// erase deletes the vectors of a version in all spaces.
func (x *vectors) erase(v *version) error {
	p := v.part
	for _, space := range x.t.home.of(p.Namespace).spaces() {
		if err := x.endPending(p, space, v.doc); err != nil {
			return err
		}
		key := docVectorsKey(p.ID, space, v.doc)
		raw, err := x.t.get(key)
		if err != nil {
			return err
		}
		if len(raw) != 8 {
			continue
		}
		totals := x.totals(p.Namespace, space)
		if v.row.Living() {
			totals.living--
		}
		first, n := binary.BigEndian.Uint32(raw), binary.BigEndian.Uint32(raw[4:])
		for id := first; id < first+n; id++ {
			if err := x.eraseVector(p, space, id, totals); err != nil {
				return err
			}
		}
		if err := x.t.b.Delete(key, nil); err != nil {
			return err
		}
	}
	return nil
}

func (x *vectors) eraseVector(p *Partition, space SpaceKey, id uint32, totals *spaceTotals) error {
	key := vectorKey(p.ID, space, id)
	raw, err := x.t.get(key)
	if err != nil || raw == nil {
		return err
	}
	row, err := decodeVectorRow(raw)
	if err != nil {
		return err
	}
	totals.hash = totals.hash.Sub(x.t.facts.remove(p.Namespace, vectorFactKey(p.ID, space, row.Doc, row.Chunk), row.Numbers))
	return x.t.b.Delete(key, nil)
}

func (x *vectors) finish() error {
	for key, next := range x.next {
		if err := x.t.b.Set([]byte(key), be32(nil, next), nil); err != nil {
			return err
		}
	}
	for id, s := range x.spaces.now {
		if s == nil {
			continue
		}
		if err := x.t.b.Set(spaceTotalsKey(id.ns, id.space), s.encode(), nil); err != nil {
			return err
		}
	}
	return nil
}

func (x *vectors) publish(m *memory) { m.spaces = x.spaces.after() }
