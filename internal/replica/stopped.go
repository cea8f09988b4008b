package replica

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
)

// Work on a stopped replica sees what the next start would: the state commits
// without a sync, so after a kill the newest commands are in Raft's log alone.

// Alone refuses work on the state of a stopped replica that has peers: what is
// changed there without them is another state.
func (o Options) Alone() error {
	o.setDefaults()
	if found, err := raftfsm.Inspect(o.groupOptions()); err != nil || found.Alone {
		return nil // a damaged Raft log is the next start's to tell
	}
	return &DamagedError{Message: fmt.Sprintf("the shard in %s has replicas on other nodes", o.Dir),
		Hint: "start the nodes and do it there", Err: ErrPeers}
}

// CheckGroup looks at the Raft files of a stopped replica and says why they keep it
// from starting: a *DamagedError, raftfsm.ErrOtherNode. Damage that the start mends
// by itself is none.
func (o Options) CheckGroup() error {
	o.setDefaults()
	found, err := raftfsm.Inspect(o.groupOptions())
	if err != nil || !o.alone() {
		return err
	}
	return groupError(o.Dir, found.Peers)
}

// Behind reports whether Raft's log or a snapshot goes beyond where the state of a
// stopped replica stands. With peers it is false: they say what is committed. Errors:
// of I/O.
func (o Options) Behind(at projections.Cursor) (bool, error) {
	o.setDefaults()
	found, err := raftfsm.Inspect(o.groupOptions())
	return err == nil && found.Alone && found.Damage == nil && at.RaftIndex > 0 && found.Index > at.RaftIndex, err
}

// CatchUp applies to the state of a stopped replica what Raft's log and snapshots hold
// behind it, and flushes it. What the start does not apply is left, too.
func (o Options) CatchUp(state *projections.State) error {
	if behind, err := o.Behind(state.Cursor()); err != nil || !behind {
		return err
	}
	return o.catchUp(state)
}

func (o Options) catchUp(state *projections.State) error {
	return o.apply(state, raftfsm.CatchUp)
}

func (o Options) apply(state *projections.State, catchUp func(raftfsm.Options) error) error {
	o.setDefaults()
	opt := o.groupOptions()
	m := newMachine(state, o.FS, func() {}, o.Logger)
	close(m.closing) // on a full disk it gives up instead of waiting
	opt.Machine = m
	if err := errors.Join(catchUp(opt), state.Flush()); err != nil {
		return fmt.Errorf("apply what Raft's log holds behind the state: %w", err)
	}
	return nil
}

// Survivor is a stopped replica whose peers are lost for ever, see raftfsm.Survivor.
type Survivor struct{ Options }

// Inspect says what its Raft files hold, and the sequence at which the log's last message
// stood, at least, when they were written; 0 where they tell of none.
func (s Survivor) Inspect() (found raftfsm.Inspection, end uint64, err error) {
	s.setDefaults()
	if found, err = (raftfsm.Survivor{Options: s.groupOptions()}).Inspect(); err != nil {
		return found, 0, err
	}
	end, err = endOf(found)
	return found, end, err
}

// CatchUp applies to the state what its Raft log and snapshots hold behind it.
func (s Survivor) CatchUp(state *projections.State) error {
	return s.apply(state, func(opt raftfsm.Options) error { return raftfsm.Survivor{Options: opt}.CatchUp() })
}

// Frames are those of the event log that its Raft log holds behind a state, in their order
// and without a gap. Each had been acknowledged by the event log before it was proposed.
func (s Survivor) Frames(at projections.Cursor) (frames [][]byte, err error) {
	s.setDefaults()
	mark := at.Mark()
	err = (raftfsm.Survivor{Options: s.groupOptions()}).Commands(at.RaftIndex, func(command []byte) error {
		if r, err := projections.DecodeRange(command); err == nil { // another command holds no frames
			frames = append(frames, r.Behind(&mark)...)
		}
		return nil
	})
	return frames, err
}

// LogGoesTo is how far a state that stands at a sequence can follow the log towards
// end: to the first message that is missing.
func (o Options) LogGoesTo(ctx context.Context, at, end uint64) (uint64, error) {
	if at >= end {
		return at, nil
	}
	info, err := o.Stream.Info(ctx)
	if err != nil {
		return at, err
	}
	err = o.Stream.Read(ctx, at+1, min(end, info.Last), func(m eventlog.Message) error { at = m.Seq; return nil })
	if gap := (*eventlog.GapError)(nil); errors.As(err, &gap) {
		err = nil
	}
	return at, err
}

// RaftFills reports whether Raft's snapshots and log hold all that was applied up to
// RaftEnd, so that a state can be built from them where the event log does not hold it.
func (o Options) RaftFills() (bool, error) {
	o.setDefaults()
	return raftfsm.Complete(o.groupOptions())
}

// LostEndHint is what helps where neither the state, the event log nor Raft's log hold
// all that was applied.
const LostEndHint = "put nats/ or shards/ back from a copy of the folder (nats/damaged has blocks of the log as they were before they were cut), or memctl restore a backup into a new directory"

// RaftEnd is the sequence at which the log's last message stood, at least, when
// Raft's log was written, or its newest snapshot; 0 where these tell of none, or not
// for sure. Right after a snapshot Raft's log may hold no command.
func (o Options) RaftEnd() (uint64, error) {
	o.setDefaults()
	found, err := raftfsm.Inspect(o.groupOptions())
	if err != nil || !found.Alone {
		return 0, err
	}
	return endOf(found)
}

func endOf(found raftfsm.Inspection) (uint64, error) {
	if found.Damage != nil || found.Command == nil {
		return found.Mark, nil
	}
	end, err := projections.CommandEnd(found.Command)
	return max(end, found.Mark), err
}
