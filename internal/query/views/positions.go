package views

import (
	"fmt"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// Positions gives references of a view their public form and checks positions
// that callers bring, both by the view's epochs.
type Positions struct {
	shard  uint16
	now    events.Position
	starts []uint64 // first sequences of the log's epochs, by epoch
}

// Positions reads the epochs of a view.
func (s *Views) Positions(v *projections.View) (Positions, error) {
	c := v.Cursor()
	starts := make([]uint64, 1, c.Epoch+1)
	starts[0] = 1
	for e := uint32(1); e <= c.Epoch; e++ {
		start, ok, err := v.EpochStart(e)
		if err != nil {
			return Positions{}, fmt.Errorf("epoch %d: %w", e, err)
		}
		if !ok {
			start = starts[e-1] // an epoch that was passed over holds nothing
		}
		starts = append(starts, start)
	}
	return Positions{shard: s.opt.Shard, now: v.Position(), starts: starts}, nil
}

// Of is the public form of a reference.
func (p *Positions) Of(at projections.Ref) string {
	return events.Position{Shard: p.shard, Epoch: p.epoch(at.Seq), Seq: at.Seq, Index: at.Index}.String()
}

// epoch returns the epoch in which a sequence lies.
func (p *Positions) epoch(seq uint64) uint32 {
	for i := len(p.starts) - 1; i > 0; i-- {
		if seq >= p.starts[i] {
			return uint32(i)
		}
	}
	return 0
}

// Check reports lost_position for a position that does not lie before the
// start of the epoch after its own, and stale_position for one of an epoch
// that is yet to come.
func (p *Positions) Check(at events.Position) error {
	if at.IsZero() {
		return nil
	}
	if int(at.Epoch) >= len(p.starts) {
		return memory.Errorf(memory.CodeStalePosition, "this node stands at %s and has not reached %s", p.now, at).
			WithHint("try again, or ask another node")
	}
	if int(at.Epoch)+1 < len(p.starts) && at.Seq >= p.starts[at.Epoch+1] {
		return memory.Errorf(memory.CodeLostPosition, "position %s lies in a part of the log that was lost; epoch %d began before it", at, at.Epoch+1).
			WithHint("what was written there must be written again; the same ids are safe")
	}
	return nil
}
