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

// Check reports lost_position for a position whose sequence was written in another
// epoch than its own: a repair or a restore began in front of it, or it is of a log
// that this one does not go on from. It reports stale_position for one that may yet
// come.
func (p *Positions) Check(at events.Position) error {
	switch {
	case at.IsZero():
		return nil
	case at.Seq <= p.now.Seq:
		if epoch := p.epochs.Of(at.Seq); epoch != at.Epoch {
			return lost(at, epoch)
		}
		return nil
	case at.Epoch > p.now.Epoch:
		return memory.Errorf(memory.CodeStalePosition, "this node stands at %s and has not reached %s", p.now, at).
			WithHint("try again, or ask another node")
	case at.Epoch < p.now.Epoch:
		return lost(at, p.now.Epoch)
	}
	return nil
}

// lost is the error for a position of another epoch than the one that has its
// sequence, or will have it.
func lost(at events.Position, epoch uint32) error {
	return memory.Errorf(memory.CodeLostPosition, "position %s lies in a part of the log that was lost; here sequence %d is of epoch %d", at, at.Seq, epoch).
		WithHint("what was written there must be written again; the same ids are safe")
}
