package raftfsm

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gofrs/flock"
	"github.com/hashicorp/raft"

	"mneme/internal/storage"
)

// termLeap is how far a new log's term lies beyond the highest one known: a lost
// log may have seen elections of which nothing else tells, and a term must never
// be used twice.
const termLeap = 1024

// newSuffix follows the name of a raft.db that is not finished yet.
const newSuffix = ".new"

// recovery brings log, snapshots and machine together before raft starts. Its
// steps are idempotent: a crash at any point is repaired by the next open.
type recovery struct {
	opt    Options
	log    *slog.Logger
	events logEvents

	lock     *flock.Flock
	members  *memberFile
	snaps    *snapshotStore
	fsm      *fsm
	store    *logStore
	report   *logReport
	single   bool               // this replica is the only member, as far as anything tells
	newest   raft.Configuration // that any file tells
	peers    error              // why it is not taken for that; nil where single
	known    bool               // there is or was a group here
	survivor bool               // the others are lost for ever
	readOnly bool               // nothing but what is half-written is changed
	repaired Repair
}

func (r *recovery) run() error {
	if err := r.openFiles(); err != nil {
		return err
	}
	if err := r.restoreState(); err != nil {
		return err
	}
	if err := r.fitLog(); err != nil {
		return err
	}
	applied, _ := r.opt.Machine.AppliedIndex()
	if snap := r.snaps.latest(); snap != nil {
		applied = max(applied, snap.man.Index)
	}
	r.fsm.progress = newProgress(applied)
	return nil
}

// openFiles takes the lock, removes what is half-written and reads the rest.
func (r *recovery) openFiles() error {
	for _, fsys := range []vfs.FS{r.opt.dbFS, r.opt.FS} { // often one and the same
		if err := storage.MkdirAll(fsys, r.opt.Dir, 0o700); err != nil {
			return err
		}
	}
	r.lock = flock.New(r.opt.lockPath())
	if ok, err := r.lock.TryLock(); err != nil || !ok {
		r.lock = nil
		return errors.Join(ErrLocked, err)
	}
	// A restore and a new raft.db that a crash cut off.
	if err := errors.Join(r.opt.FS.RemoveAll(r.opt.restoreDir()), r.opt.dbFS.RemoveAll(r.opt.dbPath()+newSuffix)); err != nil {
		return err
	}
	var memberErr, err error
	r.members, memberErr = openMemberFile(r.opt.FS, r.opt.memberPath())
	if memberErr != nil {
		r.log.Error("membership is unknown", "error", memberErr)
	}
	if r.snaps, err = openSnapshotStore(r.opt.FS, r.opt.snapshotsDir(), r.members, r.log); err != nil {
		return err
	}
	r.fsm = &fsm{machine: r.opt.Machine, snaps: r.snaps, dir: r.opt.restoreDir(), log: r.log, progress: newProgress(0)}
	var ask []uint64
	if snap := r.snaps.latest(); snap != nil {
		ask = append(ask, snap.man.Index)
	}
	applied := r.applied()
	if r.report, err = checkLog(r.opt.dbFS, r.opt.dbPath(), framer{r.opt.Sealer}, append(ask, applied)...); err != nil {
		return err
	}
	if err := r.whoElse(memberErr); err != nil {
		return err
	}
	return r.setAside()
}

// applied is the machine's index, 0 where there is no machine (Inspect).
func (r *recovery) applied() uint64 {
	if r.opt.Machine == nil {
		return 0
	}
	index, _ := r.opt.Machine.AppliedIndex()
	return index
}

// setAside moves damaged snapshots out of the way where nobody else is in the
// group.
func (r *recovery) setAside() error {
	if !r.single || r.readOnly {
		return nil
	}
	return r.snaps.setAside()
}

// whoElse decides whether this replica is alone: every source that can be read
// (membership file, log, newest snapshot) must say so. A missing or damaged
// membership file is written anew from the others.
func (r *recovery) whoElse(memberErr error) error {
	type source struct {
		index uint64
		conf  raft.Configuration
	}
	var sources []source
	index, conf, known := r.members.get()
	if known {
		sources = append(sources, source{index, conf})
	}
	if r.report.confIndex > 0 {
		sources = append(sources, source{r.report.confIndex, r.report.conf})
	}
	if snap := r.snaps.latest(); snap != nil {
		sources = append(sources, source{snap.man.ConfIndex, toConfiguration(snap.man.Servers)})
	}
	applied := r.applied()
	r.known = len(sources) > 0 || memberErr != nil || r.report.exists || applied > 0
	// Where nothing tells of anybody, groups begin where Bootstrap is set.
	r.single = len(sources) > 0 || (r.opt.Bootstrap && memberErr == nil)
	var newest source
	for _, s := range sources {
		r.single = r.single && onlyVoter(s.conf, raft.ServerID(r.opt.ID))
		if s.index >= newest.index {
			newest = s
		}
	}
	r.newest = newest.conf
	r.single = r.single || r.survivor
	if !r.single {
		r.peers = notAlone(r.opt.ID, len(sources), newest.conf, memberErr)
	}
	if r.opt.NoSync && r.peers != nil {
		return r.peers
	}
	if !known && len(sources) > 0 && !r.readOnly {
		return r.members.save(newest.index, newest.conf)
	}
	return nil
}

// notAlone says why a replica is not taken for the only voter of its group.
func notAlone(id string, sources int, newest raft.Configuration, memberErr error) error {
	switch {
	case sources == 0 && memberErr != nil:
		return fmt.Errorf("%w: %w", ErrMembersUnknown, memberErr)
	case len(newest.Servers) == 1 && string(newest.Servers[0].ID) != id:
		return fmt.Errorf("%w, %s; this is %s", ErrOtherNode, newest.Servers[0].ID, id)
	}
	return errors.Join(ErrNoSync, memberErr)
}

// restoreState brings the machine to the newest intact snapshot if it lies
// behind. Damaged snapshots that it needs are moved aside.
func (r *recovery) restoreState() error {
	for {
		snap := r.snaps.latest()
		applied, _ := r.opt.Machine.AppliedIndex()
		if snap == nil || applied >= snap.man.AppliedIndex {
			return nil
		}
		err := restoreSnapshot(r.fsm, r.snaps, snap.id)
		if err == nil {
			r.repaired.RestoredFrom = snap.id
			r.log.Warn("state restored from snapshot", "snapshot", snap.id, "had", applied, "has", snap.man.AppliedIndex)
			return nil
		}
		if !errors.Is(err, ErrCorruptSnapshot) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore from %s: %w", snap.id, err)
		}
		r.log.Error("snapshot is damaged", "snapshot", snap.id, "error", err)
		r.snaps.discard(snap.id)
		if err := r.setAside(); err != nil {
			return err
		}
		if next := r.snaps.latest(); r.bridged(next) {
			continue
		}
		return r.refuse(fmt.Errorf("%w: %w", ErrStateLost, err))
	}
}

// refuse is the answer where log and state cannot be brought together here.
func (r *recovery) refuse(cause error) error {
	if r.single {
		return cause
	}
	return &RejoinError{Dir: r.opt.Dir, Cause: cause}
}

// bridged tells whether the log continues from snap (nil is the beginning), so
// that the machine gets from there to the log's end.
func (r *recovery) bridged(snap *storedSnapshot) bool {
	base := uint64(0)
	if snap != nil {
		base = snap.man.Index
	}
	return r.report.damage == nil && !r.report.empty() && r.report.first <= base+1
}
