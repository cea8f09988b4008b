package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// PipelineVersion is the version of derive and fold together. State built by
// another version is rebuilt, never mixed.
const PipelineVersion = 2

// Range is the payload of one Raft command: frames of the log and what the
// leader derived from each of their events. It applies only where the state
// stands exactly at Previous and Chain.
type Range struct {
	Previous uint64 // sequence of the last frame before the range
	Chain    events.Chain
	Frames   []RangeFrame
}

// RangeFrame is one message of the stream. Contributions has one entry for
// each event of a valid frame, nil for an event that contributes nothing; it
// is empty for a void one.
type RangeFrame struct {
	Bytes         []byte
	Contributions []*Contribution
}

// Contribution is what the fold needs of an event and cannot see: sealed
// values, opaque keys and clear integers.
type Contribution struct {
	Code         string // not empty: the event is quarantined with this code
	Terms        []text.Term
	Lengths      [text.NumFields]uint32
	Attrs        []AttrKey
	Conversation AttrKey // zero = none
	Space        SpaceKey
	Chunks       uint32   // chunks that need a vector in Space; 0 = none
	Vectors      [][]byte // sealed, one a chunk; empty = pending
	// Next are the same in the space that is being built; a zero Space is none.
	Next SpaceVectors
}

// SpaceVectors are a version's vectors in one space, as in Contribution.
type SpaceVectors struct {
	Space   SpaceKey
	Chunks  uint32
	Vectors [][]byte
}

// Versions of the command. One that names no space being built is of the first.
const (
	rangeVersion     = 1
	rangeVersionNext = 2
)

// Encode returns the bytes of the command:
//
//	u8 version ‖ u64 previous ‖ chain 32 ‖ uvarint frames,
//	each: uvarint length ‖ frame ‖ uvarint contributions, each: uvarint length ‖ contribution
//
// A contribution: u8 length ‖ code ‖ uvarint terms, each key 12 ‖ u8 field ‖ uvarint tf ‖
// uvarint lengths (one a field) ‖ uvarint attrs, each 12 ‖ conversation 12 ‖ space 8 ‖
// uvarint chunks ‖ uvarint vectors, each uvarint length ‖ bytes; in version 2 then,
// if a space is being built: space 8 ‖ uvarint chunks ‖ vectors as before.
func (r *Range) Encode() []byte {
	n := 64
	for i := range r.Frames {
		n += len(r.Frames[i].Bytes) * 3
	}
	b := make([]byte, 0, n)
	b = append(b, r.version())
	b = be64(b, r.Previous)
	b = append(b, r.Chain[:]...)
	b = binary.AppendUvarint(b, uint64(len(r.Frames)))
	var scratch []byte
	for i := range r.Frames {
		f := &r.Frames[i]
		b = appendBytes(b, f.Bytes)
		b = binary.AppendUvarint(b, uint64(len(f.Contributions)))
		for _, c := range f.Contributions {
			scratch = scratch[:0]
			if c != nil {
				scratch = c.append(scratch)
			}
			b = appendBytes(b, scratch)
		}
	}
	return b
}

func (r *Range) version() byte {
	for i := range r.Frames {
		for _, c := range r.Frames[i].Contributions {
			if c != nil && !c.Next.Space.IsZero() {
				return rangeVersionNext
			}
		}
	}
	return rangeVersion
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func (c *Contribution) append(b []byte) []byte {
	b = append(b, byte(len(c.Code)))
	b = append(b, c.Code...)
	b = binary.AppendUvarint(b, uint64(len(c.Terms)))
	for i := range c.Terms {
		b = append(b, c.Terms[i].Key[:]...)
		b = append(b, byte(c.Terms[i].Field))
		b = binary.AppendUvarint(b, uint64(c.Terms[i].TF))
	}
	for _, l := range c.Lengths {
		b = binary.AppendUvarint(b, uint64(l))
	}
	b = binary.AppendUvarint(b, uint64(len(c.Attrs)))
	for i := range c.Attrs {
		b = append(b, c.Attrs[i][:]...)
	}
	b = append(b, c.Conversation[:]...)
	b = (&SpaceVectors{c.Space, c.Chunks, c.Vectors}).append(b)
	if !c.Next.Space.IsZero() {
		b = c.Next.append(b)
	}
	return b
}

func (s *SpaceVectors) append(b []byte) []byte {
	b = append(b, s.Space[:]...)
	b = binary.AppendUvarint(b, uint64(s.Chunks))
	b = binary.AppendUvarint(b, uint64(len(s.Vectors)))
	for _, v := range s.Vectors {
		b = appendBytes(b, v)
	}
	return b
}

func (s *SpaceVectors) decode(d *decoder) {
	copy(s.Space[:], d.take(8))
	s.Chunks = uint32(d.uvarint())
	s.Vectors = make([][]byte, d.count(1))
	for i := range s.Vectors {
		s.Vectors[i] = d.bytes()
	}
}

// decoder reads the command; a failure sticks.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uvarint() uint64 {
	if d.bad {
		return 0
	}
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

// count reads a number of items of which each takes at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/size) {
		d.bad = true
		return 0
	}
	return int(n)
}

// DecodeRange parses what Encode wrote; frames and sealed values alias b.
func DecodeRange(b []byte) (*Range, error) {
	d := &decoder{b: b}
	version := d.take(1)
	if d.bad || version[0] < rangeVersion {
		return nil, fmt.Errorf("apply range: %w", events.ErrMalformed)
	}
	if version[0] > rangeVersionNext {
		return nil, fmt.Errorf("apply range version %d: %w", version[0], events.ErrNewer)
	}
	r := &Range{}
	if v := d.take(8); v != nil {
		r.Previous = binary.BigEndian.Uint64(v)
	}
	copy(r.Chain[:], d.take(32))
	for n := d.count(2); n > 0 && !d.bad; n-- {
		f := RangeFrame{Bytes: d.bytes()}
		for m := d.count(1); m > 0 && !d.bad; m-- {
			f.Contributions = append(f.Contributions, decodeContribution(d))
		}
		r.Frames = append(r.Frames, f)
	}
	if d.bad || len(d.b) != 0 || r.version() != version[0] {
		return nil, fmt.Errorf("apply range: %w", events.ErrMalformed)
	}
	return r, nil
}

func decodeContribution(outer *decoder) *Contribution {
	raw := outer.bytes()
	if len(raw) == 0 {
		return nil
	}
	d := &decoder{b: raw}
	c := &Contribution{}
	if n := d.take(1); n != nil {
		c.Code = string(d.take(uint64(n[0])))
	}
	c.Terms = make([]text.Term, d.count(14))
	for i := range c.Terms {
		copy(c.Terms[i].Key[:], d.take(12))
		if f := d.take(1); f != nil {
			c.Terms[i].Field = text.Field(f[0])
		}
		c.Terms[i].TF = uint32(d.uvarint())
	}
	for i := range c.Lengths {
		c.Lengths[i] = uint32(d.uvarint())
	}
	c.Attrs = make([]AttrKey, d.count(12))
	for i := range c.Attrs {
		copy(c.Attrs[i][:], d.take(12))
	}
	copy(c.Conversation[:], d.take(12))
	var current SpaceVectors
	current.decode(d)
	c.Space, c.Chunks, c.Vectors = current.Space, current.Chunks, current.Vectors
	if len(d.b) > 0 {
		c.Next.decode(d)
		d.bad = d.bad || c.Next.Space.IsZero()
	}
	if d.bad || len(d.b) != 0 {
		outer.bad = true
	}
	return c
}
