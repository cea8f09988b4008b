package projections

import (
	"bytes"
	"testing"

	"mneme/internal/events"
)

// What a range has behind a mark goes on from it: frames that the mark has passed are left
// out, and a range of another chain or further ahead has nothing.
func TestFramesOfARangeBehindAMark(t *testing.T) {
	marks := []Mark{{Seq: 4, Chain: events.Chain{9}}}
	r := &Range{Previous: 4, Chain: marks[0].Chain}
	for i := range 3 {
		b := []byte{'f', byte(i)}
		at := marks[i]
		marks = append(marks, Mark{at.Seq + 1, events.NextChain(at.Chain, at.Seq+1, b)})
		r.Frames = append(r.Frames, RangeFrame{Bytes: b})
	}
	end := marks[3]
	for i, at := range marks {
		frames := r.Behind(&at)
		if len(frames) != 3-i || at != end || len(frames) > 0 && !bytes.Equal(frames[0], r.Frames[i].Bytes) {
			t.Errorf("behind %d: %q, ends at %d", marks[i].Seq, frames, at.Seq)
		}
	}
	for _, at := range []Mark{{Seq: 3}, {Seq: 4}, {Seq: 5}, {Seq: 8}, {Seq: 5, Chain: marks[0].Chain}} {
		was := at
		if frames := r.Behind(&at); len(frames) != 0 || at != was {
			t.Errorf("of another history, behind %d: %q", was.Seq, frames)
		}
	}
}
