package keygroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/keyring"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Propose implements keyring.Proposer. A replica that does not lead hands the command to
// the one that does, and waits until it is applied here. A command whose outcome is
// unknown is brought again, for the keyring allows that. Errors: *memory.Error with code
// unavailable where the command was never proposed and will not be, else with code
// outcome_unknown.
func (g *Group) Propose(command []byte) (keyring.Answer, error) {
	ctx, cancel := context.WithTimeout(g.running, g.opt.Patience)
	defer cancel()
	var last error
	for maybe := false; ; {
		changed := g.leaderChanged()
		a, index, err := g.proposeOnce(ctx, command)
		if err == nil {
			if err = g.raft.WaitApplied(ctx, index); err == nil {
				return a, nil
			}
			return a, unknown(err, "the keys were changed, but this node has not got them yet: %v", err)
		}
		last = err
		switch memory.CodeOf(err) {
		case memory.CodeUnavailable:
		case memory.CodeOutcomeUnknown:
			maybe = true
		default:
			return a, err
		}
		if !g.pause(ctx, changed) {
			if maybe {
				return a, unknown(last, "a change of the keys may or may not have happened: %v", last)
			}
			return a, unavailable(last, "the keys cannot be changed now: %v", last)
		}
	}
}

// retryPause is how long to wait before a leader that did not answer, or is not known, is
// asked again, unless another one turns up before.
const retryPause = 50 * time.Millisecond

// pause waits before the next try. It reports false when there will be none.
func (g *Group) pause(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-changed:
	case <-time.After(retryPause):
	case <-g.raft.HaltedCh():
		return false
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// proposeOnce brings a command to whoever leads. Errors: *memory.Error as Propose, and
// those of another code, for which it is no use to try again.
func (g *Group) proposeOnce(ctx context.Context, command []byte) (keyring.Answer, uint64, error) {
	id, addr := g.raft.Leader()
	switch id {
	case "":
		return keyring.Answer{}, 0, unavailable(nil, "nobody leads the group of keys")
	case g.opt.ID:
		return g.proposeHere(ctx, command)
	}
	return g.proposeThere(ctx, id, addr, command)
}

// proposeHere proposes to Raft, of which this replica is the leader or was.
func (g *Group) proposeHere(ctx context.Context, command []byte) (keyring.Answer, uint64, error) {
	result, index, err := g.raft.Propose(ctx, command).Wait(ctx)
	switch {
	case err == nil:
	case errors.Is(err, raftfsm.ErrTooLarge):
		return keyring.Answer{}, 0, memory.Errorf(memory.CodeTooLarge, "a command of the keys is too long: %v", err).WithHint("send fewer subjects at once").WithCause(err)
	case errors.Is(err, raftfsm.ErrNotLeader), errors.Is(err, raftfsm.ErrRefused):
		return keyring.Answer{}, 0, unavailable(err, "%s", g.notLeading(err))
	default:
		return keyring.Answer{}, 0, unknown(err, "the group of keys did not say what became of a command: %v", err)
	}
	a, ok := result.(keyring.Answer)
	if !ok {
		return a, 0, fmt.Errorf("the group of keys answers a command with %T", result)
	}
	return a, index, nil
}

// notLeading says why this replica takes no commands.
func (g *Group) notLeading(err error) string {
	if err := g.raft.Halted(); err != nil {
		return fmt.Sprintf("node %s has stopped applying changes of the keys: %v", g.opt.ID, err)
	}
	if id, _ := g.raft.Leader(); id != "" && id != g.opt.ID {
		return fmt.Sprintf("node %s does not lead the group of keys, %s does", g.opt.ID, id)
	}
	return fmt.Sprintf("node %s does not lead the group of keys: %v", g.opt.ID, err)
}
