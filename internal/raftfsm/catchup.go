package raftfsm

import (
	"errors"
	"fmt"
	"log/slog"

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
func CatchUp(opt Options) (err error) {
	if opt.ID == "" || opt.Dir == "" || opt.Machine == nil {
		return errors.New("raftfsm catch up: Dir, ID and Machine are required")
	}
	opt.NoSync = false // it says nothing about what lies there
	r := &recovery{opt: opt.withDefaults(), log: slog.New(slog.DiscardHandler), readOnly: true}
	defer func() {
		if r.lock != nil {
			err = errors.Join(err, r.lock.Unlock())
		}
	}()
	if err = r.openFiles(); err == nil && r.single {
		err = r.catchUp()
	}
	if err != nil {
		return fmt.Errorf("raftfsm catch up %s: %w", opt.Dir, err)
	}
	return nil
}

func (r *recovery) catchUp() error {
	err := r.restoreState()
	if err == nil {
		err = r.misfit()
	}
	switch {
	case errors.Is(err, ErrStateLost):
		return nil
	case err != nil && !errors.Is(err, errNoSnapshot):
		return nil // a misfit says why a log begins anew
	}
	applied, _ := r.opt.Machine.AppliedIndex()
	return r.report.entriesBehind(r.opt, applied, func(l *raft.Log) error {
		r.fsm.ApplyBatch([]*raft.Log{l})
		return r.fsm.progress.haltedErr()
	})
}
