package views

import (
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// Positions gives references of a view their public form and checks positions
// that callers bring, both by the view's epochs.
type Positions struct {
	shard  uint16
	now    events.Position
	epochs projections.Epochs
}

// Positions are those of a view.
func (s *Views) Positions(v *projections.View) Positions {
	return Positions{shard: s.opt.Shard, now: v.Position(), epochs: v.Epochs()}
}

// Of is the public form of a reference.
func (p *Positions) Of(at projections.Ref) string {
	return events.Position{Shard: p.shard, Epoch: p.epochs.Of(at.Seq), Seq: at.Seq, Index: at.Index}.String()
}

// Check reports lost_position for a position that does not lie before the
// start of the epoch after its own, and stale_position for one of an epoch
// that is yet to come.
func (p *Positions) Check(at events.Position) error {
	if at.IsZero() {
		return nil
	}
	if at.Epoch > p.now.Epoch {
		return memory.Errorf(memory.CodeStalePosition, "this node stands at %s and has not reached %s", p.now, at).
			WithHint("try again, or ask another node")
	}
	if next, ok := p.epochs.After(at.Epoch); ok && at.Seq >= next.Seq {
		return lost(at, next.Epoch)
	}
	return nil
}

// lost is the error for a position behind which an epoch began.
func lost(at events.Position, epoch uint32) error {
	return memory.Errorf(memory.CodeLostPosition, "position %s lies in a part of the log that was lost; epoch %d began before it", at, epoch).
		WithHint("what was written there must be written again; the same ids are safe")
}
