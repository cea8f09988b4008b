package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"mneme/internal/storage"
)

// Renew cuts the log for good, as erasing needs it: afterwards no file of the
// group holds a command or a copy of the state that was written before the call.
// It takes a fresh snapshot, moves what the log holds behind it, with term and
// vote, to a new raft.db in one step, and removes the old one, every earlier
// snapshot and what repairs had moved aside. What is written is sealed under the
// sealer's and the file system's present keys.
//
// The group goes on meanwhile; writes wait while the new file is made. A crash
// leaves the old or the new raft.db, either sound; then Renew is to be called
// again, as after an error. A peer that lags gets a snapshot afterwards; a
// snapshot that a peer sends during the call stays.
//
// Errors: ErrNotCaughtUp, ErrHalted, ErrClosed, ctx's (then it goes on and may
// succeed), of I/O. If the new file cannot be opened, the group halts.
func (g *Group) Renew(ctx context.Context) error {
	return g.await(ctx, "renew", func() error {
		g.renewing.Lock()
		defer g.renewing.Unlock()
		return g.renew(ctx)
	})
}

func (g *Group) renew(ctx context.Context) error {
	if err := g.fsm.progress.haltedErr(); err != nil {
		return err
	}
	if g.raft.State() == raft.Leader { // until then raft may have nothing to take a snapshot of
		if _, err := g.begunTerm(ctx, false); err != nil && !errors.Is(err, ErrNotLeader) {
			return err
		}
	}
	before := g.snaps.newest()
	if err := g.freshSnapshot(); err != nil {
		return err
	}
	g.opt.step("snapshot taken")
	if snap, first := g.snaps.latest(), g.store.firstIndex(); first != 0 && first <= snap.man.Index {
		if err := g.store.DeleteRange(first, snap.man.Index); err != nil {
			return err
		}
	}
	g.opt.step("log cut")
	if err := g.store.replaceFile(g.newFile); err != nil {
		return fmt.Errorf("begin a new raft.db: %w", err)
	}
	g.opt.step("new raft.db in use")
	if err := g.snaps.removeUpTo(before); err != nil {
		return err
	}
	g.opt.step("old snapshots removed")
	return g.removeDamaged()
}

// freshSnapshot makes a snapshot that did not exist before the call, also where
// nothing has been applied since the last one. Where raft hands over the first entry of this
// run after it had nothing new, it is asked once more.
func (g *Group) freshSnapshot() (err error) {
	const tries = 2
	for range tries {
		if err = g.raft.Snapshot().Error(); errors.Is(err, raft.ErrNothingNewToSnapshot) {
			err = g.fsm.resnapshot(g.opt.Transport)
		}
		if !errors.Is(err, ErrNotCaughtUp) {
			return err
		}
	}
	return err
}

// resnapshot repeats the newest snapshot from the present state. raft declines
// to take one before it has handed over an entry in this run; until then the
// state must be just what that snapshot holds, which it may have been restored from at
// the start.
func (f *fsm) resnapshot(trans raft.Transport) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	snap := f.snaps.latest()
	index, term := f.machine.AppliedIndex()
	if snap == nil || f.seen != 0 && f.seen != snap.man.Index || snap.man.AppliedIndex != index || snap.man.AppliedTerm != term {
		return ErrNotCaughtUp
	}
	cp, err := f.checkpoint(index, term)
	if err != nil {
		return err
	}
	defer cp.Release()
	m := snap.man
	sink, err := f.snaps.Create(1, m.Index, m.Term, toConfiguration(m.Servers), m.ConfIndex, trans)
	if err != nil {
		return err
	}
	if err := cp.Persist(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return nil
}

// newFile makes a new raft.db of what old holds and puts it in the old one's
// place. Until the rename the old one goes on after an error.
func (g *Group) newFile(old boltKV) (boltKV, error) {
	path, tmp := g.opt.dbPath(), g.opt.dbPath()+newSuffix
	if err := g.writeNew(old, tmp); err != nil {
		return nil, errors.Join(err, g.opt.dbFS.RemoveAll(tmp))
	}
	g.opt.step("new raft.db written")
	err := guard(old.Close)
	if err == nil {
		err = g.opt.dbFS.Rename(tmp, path)
	}
	g.opt.step("new raft.db renamed")
	if err == nil {
		err = storage.SyncDir(g.opt.dbFS, g.opt.Dir)
	}
	kv, openErr := openBolt(path, g.opt.NoSync)
	if openErr != nil {
		err = errors.Join(err, openErr)
		g.store.stable.refuse(err)
		g.storeFailed(0, err)
		return nil, err
	}
	if g.opt.wrapKV != nil {
		kv = g.opt.wrapKV(kv)
	}
	return kv, err
}

// writeNew writes and checks the copy.
func (g *Group) writeNew(old boltKV, tmp string) error {
	if err := g.opt.dbFS.RemoveAll(tmp); err != nil { // left by a crash
		return err
	}
	kv, err := openBolt(tmp, true)
	if err != nil {
		return err
	}
	frames := framer{g.opt.Sealer}
	if err := errors.Join(guard(func() error { return copyDB(old, kv, frames) }), guard(kv.Close)); err != nil {
		return err
	}
	was, err := checkLog(g.opt.dbFS, g.opt.dbPath(), frames)
	if err != nil {
		return err
	}
	is, err := checkLog(g.opt.dbFS, tmp, frames)
	if err != nil {
		return err
	}
	if is.damage != nil || is.first != was.first || is.last != was.last || is.lastTerm != was.lastTerm ||
		is.currentTerm != was.currentTerm || is.voteTerm != was.voteTerm {
		return fmt.Errorf("%w: the copy differs: %w", ErrCorruptLog, errors.Join(was.damage, is.damage))
	}
	return nil
}

// removeDamaged removes what earlier repairs moved aside.
func (g *Group) removeDamaged() error {
	names, err := g.opt.dbFS.List(g.opt.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "raft.db.damaged-") {
			if err := g.opt.dbFS.Remove(g.opt.dbFS.PathJoin(g.opt.Dir, name)); err != nil {
				return err
			}
		}
	}
	return storage.SyncDir(g.opt.dbFS, g.opt.Dir)
}
