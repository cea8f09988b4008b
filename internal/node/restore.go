package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/backup"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/replica"
	"mneme/internal/storage"
	"mneme/memory"
)

// RestoreSource is what a data directory is made from.
type RestoreSource struct {
	Log      backup.Log
	Keys     []byte // the backup of a keyring; it stays the caller's
	KeysFile string // where it is, if Keys is nil; it may be a pipe
	Until    Until
	// Destroyed are keys and namespaces to destroy before the log is opened.
	Destroyed backup.Destroyed
	// Place is where log and list are from, if from a place of backups: it tells whether keys
	// of a file belong to it, and has other keys where the newest do not open the log.
	Place *backup.Chosen
}

// Until is where a restore ends before the backup does; the zero value is its end.
type Until struct {
	Positions string    // of several shards one for each, separated by commas; "" = not given
	Time      time.Time // the last moment to take; zero = not given
}

func (u Until) parse() (logUntil, error) {
	if u.Positions != "" && !u.Time.IsZero() {
		return logUntil{}, memory.Errorf(memory.CodeInvalid, "there are a position and a time to end at").WithHint("give one of them")
	}
	if u.Positions != "" {
		return untilPosition(u.Positions)
	}
	return logUntil{time: u.Time}, nil
}

// RestoreFrom makes a new data directory. State is built from the log. Until the last step
// the directory holds a mark with which nothing opens it; a restore into a directory with
// that mark begins again. From before the directory is looked at until it is whole, or empty
// again, it is locked.
func (o Offline) RestoreFrom(ctx context.Context, dir string, src RestoreSource, progress func(done, total uint64)) (memory.RestoreReport, error) {
	var out memory.RestoreReport
	o.Config.setDefaults()
	fsys := o.Config.FS
	dir, err := filepath.Abs(dir)
	if err != nil {
		return out, memory.Errorf(memory.CodeInvalid, "%v", err)
	}
	until, err := src.Until.parse()
	if err == nil {
		err = restorable(fsys, dir)
	}
	if err != nil {
		return out, err
	}
	if src.Keys == nil {
		if src.Keys, err = keysOf(ctx, fsys, src.KeysFile); err != nil {
			return out, err
		}
		defer clear(src.Keys)
		if src.Place != nil {
			if err := src.Place.Check(src.Keys); err != nil {
				return out, err
			}
		}
	}
	from, err := checkBackup(ctx, src.Log, until)
	if err != nil {
		return out, err
	}
	from.keys, from.destroyed = src.Keys, src.Destroyed
	from.cluster = from.sections[0].Cluster.String()
	if src.Place != nil {
		var anew bool
		if from.former, anew = src.Place.Former(); anew {
			from.cluster = newNodeID(o.Config.Now)
		}
		other, err := src.Place.KeysFor(ctx, from.need)
		if err != nil {
			return out, err
		}
		if other != nil {
			defer clear(other)
			from.keys = other
		}
	}
	lock, err := lockDataDir(fsys, dir)
	if err != nil {
		return out, publicError(err)
	}
	shards, err := o.restoreLocked(ctx, lock, from, progress)
	if err = errors.Join(err, lock.unlock()); err != nil {
		return out, err
	}
	out.Shards, out.Destroyed, out.DestroyedLiving = shards, src.Destroyed.Count(), src.Destroyed.Living(from.keys)
	if src.Place != nil {
		out.BackupErasOf = src.Place.Eras()
	}
	return out, nil
}

func (o Offline) restoreLocked(ctx context.Context, lock *dirLock, from logBackup, progress func(done, total uint64)) ([]memory.RebuildShard, error) {
	fsys, dir := lock.fs, lock.path
	if err := restorable(fsys, dir); err != nil { // until here it was not locked
		return nil, err
	}
	if err := beginRestore(fsys, dir); err != nil {
		return nil, restoreError(dir, memory.Errorf(memory.CodeInvalid, "%v", err).WithCause(err))
	}
	report, err := o.restore(ctx, lock, from, progress)
	if err != nil {
		return report, errors.Join(restoreError(dir, err), undoRestore(fsys, dir))
	}
	return report, endRestore(fsys, dir)
}

// restoreError says what to do about a full disk, whether files or the log found it.
func restoreError(dir string, err error) error {
	if !storage.IsNoSpace(err) && !errors.Is(err, eventlog.ErrNoSpace) {
		return err
	}
	return memory.Errorf(memory.CodeNoSpace, "the backup was not restored: %v", err).
		WithHint("free some space on the disk of %s, then run the same memctl restore again", dir).WithCause(err)
}

// restorable refuses a directory that holds anything but what an interrupted
// restore left, a lock, or what is nobody's.
func restorable(fsys vfs.FS, dir string) error {
	entries, err := fsys.List(dir)
	if err != nil || slices.Contains(entries, restoringMark) || !slices.ContainsFunc(entries, func(name string) bool { return name != lockFile && !nobodys(name) }) {
		return nil
	}
	return memory.Errorf(memory.CodeConflict, "%s is not empty", dir).WithHint("restore into a new directory, then start memnode with it")
}

// refuseHalfRestored keeps everything but the restore itself from opening a
// directory that is not whole.
func refuseHalfRestored(fsys vfs.FS, dir string) error {
	if !hasAny(fsys, dir, restoringMark) {
		return nil
	}
	return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("%s is not whole: a restore into it was interrupted", dir),
		Hint: "run the same memctl restore again"}
}

// restoringMark is the file that a directory holds while a restore fills it.
const restoringMark = "RESTORING"

// beginRestore puts the mark into dir, durably, and then removes what an
// interrupted restore left.
func beginRestore(fsys vfs.FS, dir string) error {
	if err := storage.MkdirAll(fsys, dir, 0o700); err != nil {
		return err
	}
	// That it is there says all; a file written beside it first would be
	// something in the directory without the mark.
	f, err := fsys.Create(filepath.Join(dir, restoringMark), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte("memctl restore fills this directory. If it was interrupted, run it again.\n"))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := errors.Join(storage.SyncDir(fsys, dir), storage.SyncDir(fsys, filepath.Dir(filepath.Clean(dir)))); err != nil {
		return err
	}
	return emptyRestore(fsys, dir)
}

// emptyRestore removes everything but the mark, the lock, which the caller holds, and what
// is nobody's: the root of a volume has a folder that only root may open.
func emptyRestore(fsys vfs.FS, dir string) error {
	entries, err := fsys.List(dir)
	for _, name := range entries {
		if name != restoringMark && name != lockFile && !nobodys(name) {
			err = errors.Join(err, fsys.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return err
}

// undoRestore takes back a restore that failed; the mark goes last. What stays is
// the directory and its lock.
func undoRestore(fsys vfs.FS, dir string) error {
	if err := emptyRestore(fsys, dir); err != nil {
		return err
	}
	return fsys.Remove(filepath.Join(dir, restoringMark))
}

// endRestore makes the directory a data directory.
func endRestore(fsys vfs.FS, dir string) error {
	if err := fsys.Remove(filepath.Join(dir, restoringMark)); err != nil {
		return err
	}
	return storage.SyncDir(fsys, dir)
}

// logBackup is what a backup of the log is found to be, with the keys that open it.
type logBackup struct {
	keys      []byte
	destroyed backup.Destroyed
	cluster   string   // what the node is to be of
	former    []string // what that goes on from
	need      backup.Need
	log       backup.Log
	sections  []backup.Section
	epochs    []uint32 // the last one of each
	last      []uint64 // the last message of each that is to be restored
	frames    uint64   // of all
}

// checkBackup reads a backup of the log as a whole, and finds where a restore of it ends.
func checkBackup(ctx context.Context, log backup.Log, until logUntil) (logBackup, error) {
	at, need, cut := map[uint16]*projections.Cursor{}, backup.Need{}, cutter{until: until, at: map[uint16]*cutAt{}}
	sections, err := log.Read(ctx, func(shard uint16, _ uint64, data []byte) error {
		if at[shard] == nil {
			at[shard] = &projections.Cursor{Shard: shard}
		}
		f, valid, err := at[shard].Follow(data)
		if err != nil {
			return err
		}
		if valid {
			need.See(&f)
		}
		return cut.see(shard, at[shard].Seq, &f, valid)
	})
	if events.IsForeign(err) {
		return logBackup{}, publicError(startError(log.Name, err))
	}
	if errors.Is(err, backup.ErrNotIntact) {
		return logBackup{}, memory.Errorf(memory.CodeLogDiverged, "%s cannot be restored: %v", log.Name, err).WithHint("use another copy of the backup").WithCause(err)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return logBackup{}, memory.Errorf(memory.CodeInvalid, "%v", err)
	}
	if err != nil {
		return logBackup{}, err
	}
	out := logBackup{log: log, need: need, sections: sections, epochs: make([]uint32, len(sections)), last: make([]uint64, len(sections))}
	for i, s := range sections {
		if c := at[s.After.Shard]; c != nil {
			out.epochs[i] = c.Epoch
		}
		if out.last[i], err = cut.last(s); err != nil {
			return logBackup{}, err
		}
		out.frames += out.last[i]
	}
	return out, nil
}

func (o Offline) restore(ctx context.Context, lock *dirLock, from logBackup, progress func(done, total uint64)) ([]memory.RebuildShard, error) {
	cfg := o.Config
	cfg.DataDir, cfg.NATSAddr, cfg.NATSURL = lock.path, "127.0.0.1:0", ""
	if err := importKeys(&cfg, from); err != nil {
		return nil, publicError(startError("keyring", err))
	}
	c := &core{cfg: cfg, restoring: lock}
	shards, err := c.restoreFrom(ctx, from, progress)
	return shards, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
}

// importKeys makes the keyring, and destroys in it what was destroyed since it was backed
// up: what is sealed under that is opened by nobody, from the first frame on.
func importKeys(cfg *Config, from logBackup) error {
	opt := keyring.Options{Dir: cfg.DataDir, Master: cfg.MasterKey, FS: cfg.FS, Log: cfg.Logger}
	if err := keyring.Import(opt, bytes.NewReader(from.keys)); err != nil || from.destroyed.Count() == 0 {
		return err
	}
	keys, spaces, err := from.destroyed.IDs()
	if err != nil {
		return err
	}
	opt.AllowNewStorage = true // nothing is encrypted yet
	k, err := keyring.Open(opt)
	if err != nil {
		return err
	}
	return errors.Join(keyring.DestroyAgain(k, keys, spaces), k.Close())
}

func (c *core) restoreFrom(ctx context.Context, from logBackup, progress func(done, total uint64)) ([]memory.RebuildShard, error) {
	if err := c.restoreNode(from); err != nil {
		return nil, err
	}
	if err := c.openDir(true); err != nil {
		return nil, err
	}
	if err := c.openLog(ctx, nobody); err != nil {
		return nil, err
	}
	for i, s := range c.shards {
		epoch, err := restoredEpoch(from.epochs[i], c.cfg.Now(), rand.Uint32())
		if err == nil {
			err = (streams{s}).begin(ctx, epoch)
		}
		if err != nil {
			return nil, err
		}
	}
	done := uint64(0)
	_, err := from.log.Read(ctx, func(shard uint16, seq uint64, data []byte) error {
		if seq > from.last[shard] {
			return nil
		}
		if done++; progress != nil {
			progress(done, 2*from.frames)
		}
		return c.shards[shard].stream.Append(ctx, data, seq-1)
	})
	if err != nil {
		return nil, err
	}
	var out []memory.RebuildShard
	for _, s := range c.shards {
		one, err := s.restoreState(ctx, from.log.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	if progress != nil {
		progress(2*from.frames, 2*from.frames)
	}
	return out, nil
}

// restoreState builds the state of a shard whose log was restored, and begins its epoch.
func (s *shard) restoreState(ctx context.Context, name string) (out memory.RebuildShard, err error) {
	started := time.Now()
	s.state, err = replica.OpenState(ctx, s.replicaOptions())
	if errors.Is(err, keyring.ErrNoKey) {
		return out, &StartError{Kind: StartLostKey, Message: fmt.Sprintf("the keys given do not open %s: %v", name, err),
			Hint: "name the keys of the same backup, or later ones of the same node", Err: err}
	}
	if err != nil {
		return out, startError("state", err)
	}
	s.onClose("state", func(context.Context) error { return s.state.Close() })
	if err := (streams{s}).beginEpoch(ctx); err != nil { // it flushes the state, too
		return out, err
	}
	v := s.state.View()
	defer v.Close()
	cur := v.Cursor()
	return memory.RebuildShard{ID: int(s.id), Position: cur.Position().String(), StateHash: v.Hash().String(), Events: cur.Events,
		TookMS: time.Since(started).Milliseconds()}, nil
}

// firstRestore is the time from which the epochs of restored logs are counted.
var firstRestore = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// restoreSpread is how many epochs one second's restore chooses from.
const restoreSpread = 1 << 20

// restoredEpoch is the epoch of a log that was restored from a backup whose last
// epoch is the given one. What was written after the backup is lost, also what an
// earlier restore of it led to, and none of those positions are to be given out
// again. Nothing is left that tells how many there were. So the epoch is the time in
// seconds, which puts later restores behind earlier ones, plus a random number below
// restoreSpread, which holds two restores, and the repairs after them, apart whatever
// the clock says. A clock before 2026, or past the year 2094, is left out; so much is
// above it that a log can be restored from its own restore a thousand times more.
func restoredEpoch(last uint32, now time.Time, random uint32) (uint32, error) {
	epoch := uint64(last) + 1
	if seconds := now.Sub(firstRestore) / time.Second; seconds > 0 && seconds < math.MaxInt32 {
		epoch = max(epoch, uint64(seconds))
	}
	if epoch += uint64(random % restoreSpread); epoch > math.MaxUint32-restoreSpread {
		return 0, memory.Errorf(memory.CodeInvalid, "the backup's log is in epoch %d, after which no restore has one left", last).
			WithHint("restore an earlier backup and start it, then memctl export and import into a new data directory")
	}
	return uint32(epoch), nil
}

// restoreNode writes node.json with the backup's number of shards, and its cluster id where no
// other cluster has taken its place.
func (c *core) restoreNode(from logBackup) error {
	d := &dataDir{fs: c.cfg.FS, path: c.cfg.DataDir, node: nodeFile{Format: nodeFormatFrom, NodeID: newNodeID(c.cfg.Now), ClusterID: from.cluster, Former: from.former, Mode: modeStandalone}}
	if len(from.sections) > 1 {
		d.node.Shards = len(from.sections)
	}
	return d.writeNode()
}
