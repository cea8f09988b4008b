package raftfsm

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/hashicorp/raft"
)

// Inspection is what a closed group's directory tells.
type Inspection struct {
	// Index and Term are the last entry that the log or a snapshot holds; zeroes
	// if there is none.
	Index, Term uint64
	// Command is the last command that the log holds; nil if there is none.
	Command []byte
	// Mark is what Machine.Checkpoint said of the newest snapshot; 0 if there is none.
	Mark uint64
	// SnapshotIndex and SnapshotTerm are where the machine stood then.
	SnapshotIndex, SnapshotTerm uint64
	// Alone: nobody else was ever in the group, as far as anything tells.
	Alone bool
	// Peers is why it is not alone, or not taken for it: ErrOtherNode,
	// ErrMembersUnknown, ErrNoSync. It is nil where Alone.
	Peers error
	// Damage is why the log cannot be trusted, or nil.
	Damage error
	// Log: there is a raft.db.
	Log bool
	// Promise is what the replica knows that it has promised the others.
	Promise Promise
	// Members are those of the newest membership that can be read; nil if there is none.
	Members []Member
}

// Inspect reads a group's directory without opening the group; Machine may be
// nil. It is for an owner whose state has been built anew from the event log: the
// state of a replica that is alone then holds what every entry up to Index did,
// and may take Index and Term for its cursor. With peers it may not: an entry at
// the end may not be committed, and the state comes from a peer's snapshot.
// Errors: ErrLocked, of I/O.
func Inspect(opt Options) (found Inspection, err error) { return inspect(opt, false) }

// Survivor is a closed replica whose peers are lost for ever: it counts as alone, whatever
// its files tell of others.
type Survivor struct{ Options }

// Inspect is Inspect for a survivor.
func (s Survivor) Inspect() (Inspection, error) { return inspect(s.Options, true) }

// CatchUp is CatchUp for a survivor: every entry that it has counts as committed.
func (s Survivor) CatchUp() error { return catchUp(s.Options, true) }

// Commands hands out what the log holds behind an index, in its order, whether it was
// committed or not; nothing of a log that is damaged.
func (s Survivor) Commands(behind uint64, visit func(command []byte) error) error {
	err := withClosed(s.Options, true, func(r *recovery) error {
		if r.report.damage != nil {
			return nil
		}
		return r.report.entriesBehind(r.opt, behind, func(l *raft.Log) error {
			if l.Type != raft.LogCommand || isMarker(l) {
				return nil
			}
			return visit(l.Data)
		})
	})
	if err != nil {
		return fmt.Errorf("raftfsm read %s: %w", s.Dir, err)
	}
	return nil
}

func inspect(opt Options, survivor bool) (found Inspection, err error) {
	if opt.ID == "" || opt.Dir == "" {
		return Inspection{}, errors.New("raftfsm inspect: Dir and ID are required")
	}
	err = withClosed(opt, survivor, func(r *recovery) error {
		found = Inspection{Index: r.report.last, Term: r.report.lastTerm, Command: r.report.command, Alone: r.single || !r.known, Damage: r.report.damage,
			Log: r.report.exists, Promise: r.promise(), Members: toMembers(r.newest)}
		if !found.Alone {
			found.Peers = r.peers
		}
		if snap := r.snaps.latest(); snap != nil {
			found.Mark, found.SnapshotIndex, found.SnapshotTerm = snap.man.Mark, snap.man.AppliedIndex, snap.man.AppliedTerm
			if snap.man.Index > found.Index {
				found.Index, found.Term = snap.man.Index, snap.man.Term
			}
		}
		return nil
	})
	if err != nil {
		return Inspection{}, fmt.Errorf("raftfsm inspect %s: %w", opt.Dir, err)
	}
	return found, nil
}

// Complete reports whether an empty machine would be brought to the end of a closed
// group's log: by the newest snapshot that is intact, whose bytes it reads, and the
// entries behind it, as far as the log and any snapshot went. It is false where the
// replica has, or may have, peers. Errors: ErrLocked, of I/O.
func Complete(opt Options) (whole bool, err error) {
	err = withClosed(opt, false, func(r *recovery) error {
		newest := r.snaps.latest()
		snap := newest
		for ; snap != nil; snap = r.snaps.latest() {
			err := r.snaps.check(snap)
			if err == nil {
				break
			}
			if !errors.Is(err, ErrCorruptSnapshot) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			r.snaps.discard(snap.id)
		}
		reached := r.report.last
		if snap != nil {
			reached = max(reached, snap.man.Index)
		}
		joined := r.bridged(snap) || snap != nil && r.report.empty() && r.report.damage == nil
		whole = r.single && joined && (newest == nil || reached >= newest.man.Index)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("raftfsm inspect %s: %w", opt.Dir, err)
	}
	return whole, nil
}

// withClosed works on the files of a closed group, whose lock it holds meanwhile.
// Nothing of them changes but what is half-written, which goes.
func withClosed(opt Options, survivor bool, work func(r *recovery) error) (err error) {
	opt.NoSync = false // it says nothing about what lies there
	r := &recovery{opt: opt.withDefaults(), log: slog.New(slog.DiscardHandler), readOnly: true, survivor: survivor}
	defer func() {
		if r.lock != nil {
			err = errors.Join(err, r.lock.Unlock())
		}
	}()
	if err := r.openFiles(); err != nil {
		return err
	}
	return work(r)
}

// SetAside moves the log of a closed group aside, for an owner that gets
// ErrStateLost and can apply from elsewhere what the state lacks: the next Open
// begins a log at the machine's index. It returns where the log lies now. Only a
// replica that is alone may do so: errors are a *RejoinError where it has, or may
// have, peers, ErrLocked, and of I/O.
func SetAside(opt Options) (kept string, err error) {
	found, err := Inspect(opt)
	if err != nil {
		return "", err
	}
	if !found.Alone {
		return "", &RejoinError{Dir: opt.Dir, Cause: ErrStateLost}
	}
	opt = opt.withDefaults()
	return moveAside(opt.dbFS, opt.dbPath())
}
