package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
)

// PipelineVersion is the version of derive and fold together. State built by
// another version is rebuilt, never mixed.
const PipelineVersion = 3

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

// rangeVersion is the version of the command. In versions 1 and 2 contributions
// had no sections.
const rangeVersion = 3

// Encode returns the bytes of the command:
//
//	u8 version ‖ u64 previous ‖ chain 32 ‖ uvarint frames,
//	each: uvarint length ‖ frame ‖ uvarint contributions, each: uvarint length ‖ contribution
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
			scratch = c.append(scratch[:0])
			b = appendBytes(b, scratch)
		}
	}
	return b
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
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

func (d *decoder) rest() []byte { return d.take(uint64(len(d.b))) }

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
	if version[0] > rangeVersion {
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
			c, err := decodeContribution(d.bytes())
			if err != nil {
				return nil, fmt.Errorf("apply range: %w", err)
			}
			f.Contributions = append(f.Contributions, c)
		}
		r.Frames = append(r.Frames, f)
	}
	if d.bad || len(d.b) != 0 {
		return nil, fmt.Errorf("apply range: %w", events.ErrMalformed)
	}
	return r, nil
}
