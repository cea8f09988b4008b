package projections

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
)

// Mark is a place in the log: a sequence and the chain after it.
type Mark struct {
	Seq   uint64
	Chain events.Chain
}

// Range is the payload of one Raft command: frames of the log and what the
// leader derived from each of their events. It names the pipeline version that
// derived it and the mark that its proposer had applied: a replica that applies
// the command has applied everything the proposer had, so one that stands
// before that mark, or passed it with another chain, has diverged. It also names
// where the proposer's keyring stood, which has the keys of all frames: whoever
// applies the command sees to it that its own is there, see KeysOf. The state does
// not know of keys.
type Range struct {
	Pipeline uint32
	Keys     uint64 // index of the proposer's keyring; 0 = the range was never proposed
	Applied  Mark   // what the proposer had applied
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

// NewRange begins a range that continues the cursor, proposed by a replica that
// stands there.
func NewRange(c *Cursor) *Range {
	return &Range{Pipeline: PipelineVersion, Applied: c.Mark(), Previous: c.Seq, Chain: c.Chain}
}

// End is the sequence of the last frame.
func (r *Range) End() uint64 { return r.Previous + uint64(len(r.Frames)) }

// Behind are the frames that go on from a mark, which moves to the last of them; none
// where the range is on another chain, lies ahead, or has nothing new.
func (r *Range) Behind(at *Mark) (frames [][]byte) {
	here := Mark{r.Previous, r.Chain}
	for i := range r.Frames {
		b := r.Frames[i].Bytes
		next := Mark{here.Seq + 1, events.NextChain(here.Chain, here.Seq+1, b)}
		if here == *at {
			frames, *at = append(frames, bytes.Clone(b)), next
		}
		here = next
	}
	return frames
}

const (
	rangeVersion = 6
	rangeFixed   = 2 + 4 + 8 + 8 + 32 + 8 + 32
)

// Encode returns the bytes of the command:
//
//	u8 1 ‖ u8 version ‖ u32 pipeline ‖ u64 keys ‖ u64 applied ‖ chain 32 ‖ u64 previous ‖ chain 32 ‖ uvarint frames,
//	each: uvarint length ‖ frame ‖ uvarint contributions, each: uvarint length ‖ contribution
func (r *Range) Encode() []byte {
	n := rangeFixed + binary.MaxVarintLen64
	for i := range r.Frames {
		n += len(r.Frames[i].Bytes) * 3
	}
	b := append(make([]byte, 0, n), commandRange, rangeVersion)
	b = be64(be32(b, r.Pipeline), r.Keys)
	b = append(be64(b, r.Applied.Seq), r.Applied.Chain[:]...)
	b = append(be64(b, r.Previous), r.Chain[:]...)
	b = binary.AppendUvarint(b, uint64(len(r.Frames)))
	var scratch []byte
	for i := range r.Frames {
		b, scratch = r.Frames[i].append(b, scratch)
	}
	return b
}

func (f *RangeFrame) append(b, scratch []byte) (out, reuse []byte) {
	b = appendBytes(b, f.Bytes)
	b = binary.AppendUvarint(b, uint64(len(f.Contributions)))
	for _, c := range f.Contributions {
		scratch = c.append(scratch[:0])
		b = appendBytes(b, scratch)
	}
	return b, scratch
}

// EncodedSize is how much the frame adds to a command. It is about twice to
// ten times the frame, for what is derived from dense text is longer than it.
func (f *RangeFrame) EncodedSize() int {
	b, _ := f.append(nil, nil)
	return len(b)
}

// KeysOf is the index at which a replica's keyring must stand before the command is
// applied there; 0 where a command needs no keys or is none.
func KeysOf(command []byte) uint64 {
	d := &decoder{b: command}
	if d.command("apply range", commandRange, rangeVersion) != nil {
		return 0
	}
	if v := d.take(rangeFixed - 2); v != nil {
		return binary.BigEndian.Uint64(v[4:])
	}
	return 0
}

// DecodeRange parses what Encode wrote; frames and contributions alias b.
func DecodeRange(b []byte) (*Range, error) {
	d := &decoder{b: b}
	if err := d.command("apply range", commandRange, rangeVersion); err != nil {
		return nil, err
	}
	r := &Range{}
	if v := d.take(rangeFixed - 2); v != nil {
		r.Pipeline = binary.BigEndian.Uint32(v)
		r.Keys = binary.BigEndian.Uint64(v[4:])
		r.Applied.Seq = binary.BigEndian.Uint64(v[12:])
		copy(r.Applied.Chain[:], v[20:])
		r.Previous = binary.BigEndian.Uint64(v[52:])
		copy(r.Chain[:], v[60:])
	}
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
