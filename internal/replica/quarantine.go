package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
)

// A poison event stops the state of every replica in front of it. Raft goes on to agree, so
// an operator's quarantine is a command of the same group, behind the event: a replica that
// has stopped looks at it, and applies the event again, as a quarantined one. The writer of
// the next term has the log tell of it, for those who fold the log.

// Resume implements raftfsm.Resumer.
func (m *machine) Resume(e raftfsm.Entry, halted error) bool {
	poison := (*projections.PoisonError)(nil)
	if !projections.IsQuarantine(e.Data) || !errors.As(halted, &poison) {
		return false
	}
	q, err := projections.DecodeQuarantine(e.Data)
	if err != nil || q.At != poison.Ref() {
		return false
	}
	m.mu.Lock()
	m.state.Quarantine(*q)
	m.mu.Unlock()
	m.log.Warn("an event is put in quarantine, and the state goes on", "event", poison.At)
	select {
	case m.resumed <- struct{}{}:
	default:
	}
	return true
}

// untold refuses a snapshot of a state that has an event in quarantine of which the log does
// not tell yet. Raft's log keeps the command until then: whoever folds the log up to where a
// snapshot stands finds it told.
func (m *machine) untold() error {
	if m.keys == nil {
		return nil // nothing is folded up to a snapshot
	}
	v := m.state.View()
	noted, err := v.Noted()
	for _, n := range noted {
		if !n.Told {
			err = errors.Join(err, fmt.Errorf("the log does not tell yet that event %d.%d is in quarantine", n.At.Seq, n.At.Index))
		}
	}
	return errors.Join(err, v.Close())
}

// Poison is the event in front of which the state here has stopped, nil if that is not why
// it has, or it has not.
func (r *Replica) Poison() *projections.PoisonError {
	poison := (*projections.PoisonError)(nil)
	errors.As(r.group.Halted(), &poison)
	return poison
}

// poisonLook is how often it is looked whether a state that has stopped goes on.
const poisonLook = 50 * time.Millisecond

// AwaitPoisonGone waits until the state has not stopped at an event, or no more. Errors:
// ctx's.
func (r *Replica) AwaitPoisonGone(ctx context.Context) error {
	tick := time.NewTicker(poisonLook)
	defer tick.Stop()
	for r.Poison() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Quarantine has the group agree that the event in front of which the state has stopped is
// folded as a quarantined one. This replica must lead the group. It returns when the state
// here has gone on. Errors: raftfsm's, with raftfsm.ErrHalted if the state halts again.
func (r *Replica) Quarantine(ctx context.Context, q projections.Quarantine) (projections.QuarantineResult, error) {
	var group raftfsm.Resumption
	switch g := r.group.(type) {
	case *raftfsm.Group:
		group.Group = g
	case interface{ Resumption() raftfsm.Resumption }: // it stands in for one
		group = g.Resumption()
	default:
		return projections.QuarantineResult{}, errors.New("this Raft group does not go on once it has halted")
	}
	result, _, err := group.Propose(ctx, q.Encode()).Wait(ctx)
	out, _ := result.(projections.QuarantineResult)
	return out, err
}
