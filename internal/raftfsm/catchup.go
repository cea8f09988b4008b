package raftfsm

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// CatchUp brings opt.Machine to the end of a closed group's log, from the newest
// snapshot and the entries behind it, as the next Open would. The group's own files
// stay as they are. It is for an owner that works on a stopped replica: what the
// machine applied last may not have reached the disk, but is in the log.
//
// Nothing is applied where the next Open begins a log anew at the machine's index, or
// finds it lost, nor where the replica has, or may have, peers: which entries are
// committed is theirs to tell. Errors: ErrHalted, ErrLocked, of I/O.
func CatchUp(opt Options) error { return catchUp(opt, false) }

func catchUp(opt Options, survivor bool) error {
	if opt.ID == "" || opt.Dir == "" || opt.Machine == nil {
		return errors.New("raftfsm catch up: Dir, ID and Machine are required")
	}
	err := withClosed(opt, survivor, func(r *recovery) error {
		if !r.single {
			return nil
		}
		return r.catchUp()
	})
	if err != nil {
		return fmt.Errorf("raftfsm catch up %s: %w", opt.Dir, err)
	}
	return nil
}

func (r *recovery) catchUp() error {
	err := r.restoreState()
	if errors.Is(err, ErrStateLost) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.misfit(); err != nil && !errors.Is(err, errNoSnapshot) {
		return nil // it says why the next Open does not go on with this log
	}
	applied, _ := r.opt.Machine.AppliedIndex()
	since := map[uint64]*raft.Log{} // what came since it halted
	r.fsm.kept = func(index uint64, l *raft.Log) error {
		if since[index] == nil {
			return raft.ErrLogNotFound
		}
		*l = *since[index]
		return nil
	}
	err = r.report.entriesBehind(r.opt, applied, func(l *raft.Log) error {
		since[l.Index] = l
		r.fsm.ApplyBatch([]*raft.Log{l})
		if r.fsm.progress.haltedErr() == nil {
			clear(since)
		}
		return nil
	})
	return errors.Join(err, r.fsm.progress.haltedErr())
}
