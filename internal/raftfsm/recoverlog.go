package raftfsm

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/raft"

	"mneme/internal/storage"
)

// fitLog opens the log, or a new one where the old one does not fit and this
// replica is alone.
func (r *recovery) fitLog() error {
	misfit := r.misfit()
	switch {
	case errors.Is(misfit, ErrStateLost):
		return r.refuse(misfit)
	case !r.known:
		return r.found()
	case misfit == nil:
		return r.openLog()
	case !r.single:
		return r.refuse(misfit)
	case errors.Is(misfit, errNoSnapshot):
		if err := r.snapshotNow(); err != nil {
			return err
		}
		r.repaired.Reason = misfit.Error()
		return r.openLog()
	default:
		return r.beginAnew(misfit)
	}
}

// errNoSnapshot: the log is sound and holds the machine's index, but its
// beginning is gone and so is the snapshot that stood for it.
var errNoSnapshot = errors.New("no snapshot joins the log")

// misfit says why the log cannot be used as it is, or nil.
func (r *recovery) misfit() error {
	rep := r.report
	applied, appliedTerm := r.opt.Machine.AppliedIndex()
	var base, baseTerm uint64
	if snap := r.snaps.latest(); snap != nil {
		base, baseTerm = snap.man.Index, snap.man.Term
	}
	last := max(base, rep.last)
	_, _, member := r.members.get()
	switch {
	case rep.damage != nil:
		return rep.damage
	case rep.exists && rep.empty() && member && rep.voteTerm > 0 && base == 0 && applied == 0:
		// A member that has voted had entries; what replaced them is gone.
		return fmt.Errorf("%w: the log is empty and there is no snapshot", ErrStateLost)
	case rep.first > base+1 && applied+1 < rep.first:
		return fmt.Errorf("%w: the log begins at %d, the state ends at %d", ErrStateLost, rep.first, max(applied, base))
	case !rep.exists && (base > 0 || applied > 0 || r.known):
		return errors.New("raft.db is missing")
	case rep.currentTerm < max(rep.lastTerm, baseTerm, appliedTerm):
		return fmt.Errorf("raft.db ends in term %d, the state is of term %d", rep.currentTerm, max(rep.lastTerm, baseTerm, appliedTerm))
	case last < applied:
		return fmt.Errorf("raft.db ends at %d, the state stands at %d", last, applied)
	case rep.covers(applied) && rep.termAt[applied] != 0 && rep.termAt[applied] != appliedTerm:
		return fmt.Errorf("raft.db has term %d at %d, the state has %d", rep.termAt[applied], applied, appliedTerm)
	case !rep.empty() && rep.first > base+1:
		return errNoSnapshot // the cases above leave first-1 <= applied <= last
	}
	return nil
}

// openLog opens a log that fits, and drops entries that a snapshot replaces.
func (r *recovery) openLog() error {
	if err := r.openStore(); err != nil {
		return err
	}
	snap, rep := r.snaps.latest(), r.report
	if snap != nil && !rep.empty() {
		// Left over when a crash came between a peer's snapshot and the clearing
		// of the log behind it. Raft would append behind a gap.
		index := snap.man.Index
		other := rep.covers(index) && rep.termAt[index] != 0 && rep.termAt[index] != snap.man.Term
		if rep.last < index || other {
			return r.store.DeleteRange(rep.first, rep.last)
		}
	}
	if r.single && rep.currentTerm < r.opt.TermFloor {
		// An older copy: terms were used of which it knows nothing.
		if err := r.store.stable.leap(max(rep.maxTerm(), r.opt.TermFloor) + termLeap); err != nil {
			return err
		}
	}
	applied, _ := r.opt.Machine.AppliedIndex()
	if r.single && snap == nil && rep.empty() && applied == 0 && r.opt.Bootstrap {
		return r.seed(max(rep.maxTerm(), r.opt.TermFloor) + termLeap) // a crash came between raft.db and its first entry
	}
	return nil
}

// openStore opens raft.db, or makes it, and makes its name durable: bolt syncs
// what is in the file only.
func (r *recovery) openStore() error {
	kv, err := openBolt(r.opt.dbPath(), r.opt.NoSync)
	if err != nil {
		return err
	}
	if err := storage.SyncDir(r.opt.dbFS, r.opt.Dir); err != nil {
		return errors.Join(err, guard(kv.Close))
	}
	if r.opt.wrapKV != nil {
		kv = r.opt.wrapKV(kv)
	}
	db, frames := &liveDB{kv: kv}, framer{r.opt.Sealer}
	stable := &stableStore{kv: db, frames: frames, noSync: r.opt.NoSync, failed: func(err error) { r.events.storeFailed(0, err) }}
	if r.store, err = newLogStore(db, frames, stable, r.members, r.events, r.opt.Clock); err != nil {
		return errors.Join(err, db.Close())
	}
	return nil
}

// found begins a group, or waits for one to be joined.
func (r *recovery) found() error {
	if err := r.openStore(); err != nil {
		return err
	}
	if !r.opt.Bootstrap {
		return nil
	}
	if r.opt.TermFloor > 0 { // everything of an earlier group is gone but what the owner knows
		return r.seed(r.opt.TermFloor + termLeap)
	}
	return r.seed(1)
}

// seed writes the first entry: a membership of this replica alone.
func (r *recovery) seed(term uint64) error {
	if err := r.store.stable.leap(max(term, 1)); err != nil {
		return err
	}
	return r.store.StoreLog(&raft.Log{
		Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(r.alone()), AppendedAt: r.opt.Clock(),
	})
}

func (r *recovery) alone() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(r.opt.ID), Address: r.opt.Transport.LocalAddr(),
	}}}
}

// beginAnew starts a new log at the machine's index: first a snapshot there, then
// the old file aside, then the new file with a term that was never used.
func (r *recovery) beginAnew(reason error) error {
	term := r.report.maxTerm()
	if snap := r.snaps.latest(); snap != nil {
		term = max(term, snap.man.Term)
	}
	applied, appliedTerm := r.opt.Machine.AppliedIndex()
	term = max(term, appliedTerm, r.opt.TermFloor) + termLeap
	if err := r.snapshotNow(); err != nil {
		return err
	}
	r.repaired.Reason = reason.Error()
	moved, err := moveAside(r.opt.dbFS, r.opt.dbPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.repaired.MovedTo = moved
	say := r.log.Error
	if moved == "" { // nothing was damaged: after a restore there is none yet
		say = r.log.Warn
	}
	say("a new raft log begins", "reason", reason, "moved_to", moved, "index", applied, "term", term)
	if err := r.openStore(); err != nil {
		return err
	}
	if r.snaps.latest() == nil {
		return r.seed(term)
	}
	return r.store.stable.leap(term)
}

// snapshotNow makes a snapshot at the machine's index unless there is one.
func (r *recovery) snapshotNow() error {
	applied, term := r.opt.Machine.AppliedIndex()
	if snap := r.snaps.latest(); applied == 0 || (snap != nil && snap.man.AppliedIndex >= applied) {
		return nil
	}
	index, _, _ := r.members.get()
	conf := r.alone()
	cp, err := r.fsm.checkpoint(applied, term)
	if err != nil {
		return err
	}
	defer cp.Release()
	sink, err := r.snaps.Create(1, applied, term, conf, min(max(index, 1), applied), r.opt.Transport)
	if err != nil {
		return err
	}
	if err := cp.Persist(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return nil
}
