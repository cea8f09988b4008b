package node

import (
	"context"
	"fmt"

	"mneme/internal/eventlog"
	"mneme/internal/storage"
	"mneme/memory"
)

// Damage in a table of the state shows when somebody reads the rows in it: a start that
// loads the vectors or applies what Raft's log has behind the state, a search, an export.

// damagedState is how a start ends when the state of a shard opened and then turned out
// to be damaged. The log holds all of it: the next attempt sets the state aside and
// builds it.
type damagedState struct {
	shard uint16
	err   error
}

func (d *damagedState) Error() string { return d.err.Error() }
func (d *damagedState) Unwrap() error { return d.err }

// stateDamage looks whether damage of the state is why a start failed. It is a
// *damagedState only where the log is sound and as long as the state: else what is left
// of the state may be what the log can be repaired from.
func (c *core) stateDamage(ctx context.Context, failed error) error {
	for _, s := range c.shards {
		if err := s.stateDamage(ctx, failed); err != failed {
			return err
		}
	}
	return failed
}

func (s *shard) stateDamage(ctx context.Context, failed error) error {
	if s.state == nil || s.damaged != nil {
		return failed
	}
	damage := s.state.Fault()
	if !storage.IsCorrupt(damage) {
		return failed
	}
	found := &damagedState{s.id, fmt.Errorf("%w; found by: %w", damage, failed)}
	if s.peers != nil { // the others have all of it
		return found
	}
	read, err := eventlog.Scrub(ctx, s.stream, eventlog.Tail{Shard: s.id}, nil, nil)
	if err != nil {
		return failed
	}
	if read.Diverged() == nil && read.Tail.Seq >= s.state.Cursor().Seq {
		return found
	}
	return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("the state is damaged (%v), and so is the log, from which it could be built again", damage), Err: failed,
		Hint: "memctl log repair --data-dir DIR writes the log again where the state still holds what it lost; then start memnode. Else " + asideHint + "; where that does not start either, memctl restore brings a backup back"}
}

// asideHint is what helps where state and log are both damaged.
const asideHint = "move shards/0/state out of the data directory, start memnode, and run memctl log repair: the state is built from what the log and Raft's files hold"

const damagedHint = "start memnode: it builds the state again from the log where it meets the damage, and where it does not, memctl rebuild does; if the log is damaged too, " + asideHint

// repairMetDamage says what helps a running node whose log cannot be repaired from its
// state, for that is damaged too.
func repairMetDamage(err error) error {
	if !storage.IsCorrupt(err) || memory.CodeOf(err) != memory.CodeInternal {
		return err
	}
	return memory.Errorf(memory.CodeLogDiverged, "the log cannot be repaired from the state, which is damaged: %v", err).
		WithHint("stop memnode, %s", asideHint).WithCause(err)
}

// closedState says of a state that cannot be used what helps.
func (s *shard) closedState(cause error) error {
	opt := s.replicaOptions()
	if err := opt.MayBuild(cause); err != nil {
		return startError("state", err)
	}
	return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("the state cannot be used: %v", cause), Hint: damagedHint, Err: cause}
}

// metDamage is closedState for work on a stopped node that met damage in the state.
func (s *shard) metDamage(err error) error {
	if storage.IsCorrupt(err) && memory.CodeOf(publicError(err)) == memory.CodeInternal {
		return s.closedState(err)
	}
	return err
}
