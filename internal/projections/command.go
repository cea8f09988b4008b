package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// PipelineVersion is the version of derive and fold together. State built by
// another version is rebuilt, never mixed.
const PipelineVersion = 1

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
}

const rangeVersion = 1

// Encode returns the bytes of the command:
//
//	u8 version ‖ u64 previous ‖ chain 32 ‖ uvarint frames,
//	each: uvarint length ‖ frame ‖ uvarint contributions, each: uvarint length ‖ contribution
//
// A contribution: u8 length ‖ code ‖ uvarint terms, each key 12 ‖ u8 field ‖ uvarint tf ‖
// uvarint lengths (one a field) ‖ uvarint attrs, each 12 ‖ conversation 12 ‖ space 8 ‖
// uvarint chunks ‖ uvarint vectors, each uvarint length ‖ bytes.
func (r *Range) Encode() []byte {
	n := 64
	for i := range r.Frames {
		n += len(r.Frames[i].Bytes) * 3
	}
	b := make([]byte, 0, n)
	b = append(b, rangeVersion)
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
	b = append(b, c.Space[:]...)
	b = binary.AppendUvarint(b, uint64(c.Chunks))
	b = binary.AppendUvarint(b, uint64(len(c.Vectors)))
	for _, v := range c.Vectors {
		b = appendBytes(b, v)
	}
	return b
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
	if v := d.take(1); d.bad || v[0] != rangeVersion {
		if !d.bad && v[0] > rangeVersion {
			return nil, fmt.Errorf("apply range version %d: %w", v[0], events.ErrNewer)
		}
		return nil, fmt.Errorf("apply range: %w", events.ErrMalformed)
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
	if d.bad || len(d.b) != 0 {
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
	copy(c.Space[:], d.take(8))
	c.Chunks = uint32(d.uvarint())
	c.Vectors = make([][]byte, d.count(1))
	for i := range c.Vectors {
		c.Vectors[i] = d.bytes()
	}
	if d.bad || len(d.b) != 0 {
		outer.bad = true
	}
	return c
}
