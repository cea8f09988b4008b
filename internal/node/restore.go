package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/replica"
	"mneme/internal/storage"
	"mneme/memory"
)

// Restore makes a new data directory from a backup of log and keyring. State is
// built from the log. Until the last step the directory holds a mark with which
// nothing opens it; a restore into a directory with that mark begins again. From
// before the directory is looked at until it is whole, or empty again, it is locked.
func (o Offline) Restore(ctx context.Context, dir, logPath, keysPath string, progress func(done, total uint64)) (memory.RebuildReport, error) {
	var out memory.RebuildReport
	o.Config.setDefaults()
	fsys := o.Config.FS
	dir, err := filepath.Abs(dir)
	if err != nil {
		return out, memory.Errorf(memory.CodeInvalid, "%v", err)
	}
	// Nothing is made in somebody's folder, and nothing of a log that is not whole.
	if err := restorable(fsys, dir); err != nil {
		return out, err
	}
	keys, err := readKinds(ctx, fsys, logPath, keysPath)
	if err != nil {
		return out, err
	}
	defer clear(keys)
	from, err := checkBackup(fsys, logPath)
	if err != nil {
		return out, err
	}
	lock, err := lockDataDir(fsys, dir)
	if err != nil {
		return out, publicError(err)
	}
	shards, err := o.restoreLocked(ctx, lock, from, keys, progress)
	if err = errors.Join(err, lock.unlock()); err != nil {
		return out, err
	}
	out.Shards = shards
	return out, nil
}

func (o Offline) restoreLocked(ctx context.Context, lock *dirLock, from logBackup, keys []byte, progress func(done, total uint64)) ([]memory.RebuildShard, error) {
	fsys, dir := lock.fs, lock.path
	if err := restorable(fsys, dir); err != nil { // until here it was not locked
		return nil, err
	}
	if err := beginRestore(fsys, dir); err != nil {
		return nil, restoreError(dir, memory.Errorf(memory.CodeInvalid, "%v", err).WithCause(err))
	}
	report, err := o.restore(ctx, lock, from, keys, progress)
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
// restore left, or a lock.
func restorable(fsys vfs.FS, dir string) error {
	entries, err := fsys.List(dir)
	if err != nil || slices.Contains(entries, restoringMark) || !slices.ContainsFunc(entries, func(name string) bool { return name != lockFile }) {
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

// emptyRestore removes everything but the mark and the lock, which the caller holds.
func emptyRestore(fsys vfs.FS, dir string) error {
	entries, err := fsys.List(dir)
	for _, name := range entries {
		if name != restoringMark && name != lockFile {
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

// logBackup is what a backup of the log is found to be.
type logBackup struct {
	path   string
	shards []section
	epochs []uint32 // the last one of each
	frames uint64   // of all
}

// readKinds reads the keys, and says which of the two files is which when they were
// mixed up: each would be a damaged one where the other belongs. The keys are read once,
// so that they may come from a pipe, and never be in a file in clear.
func readKinds(ctx context.Context, fsys vfs.FS, logPath, keysPath string) (keys []byte, err error) {
	log, err := logHead(fsys, logPath)
	var kerr error
	if err == nil {
		keys, kerr = readKeys(ctx, fsys, keysPath)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err = errors.Join(err, kerr); err != nil {
		return nil, memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("name the two files of a backup that can be read")
	}
	keysAsLog, logAsKeys := keyring.IsBackup(log), isLogBackup(keys)
	switch {
	case keysAsLog && logAsKeys:
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of the keys and %s that of the log", logPath, keysPath).
			WithHint("it is the other way round: --log %s --keys %s", keysPath, logPath)
	case keysAsLog:
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of the keys, not of the log", logPath).WithHint("give the log's file to --log")
	case logAsKeys:
		return nil, memory.Errorf(memory.CodeInvalid, "%s is the backup of the log, not of the keys", keysPath).WithHint("give the keys' file to --keys")
	}
	return keys, nil
}

func isLogBackup(b []byte) bool { return bytes.HasPrefix(b, []byte(backupMagic)) }

// logHead reads what tells one sort of backup from the other. The log is read more than
// once, so it may not come from a pipe.
func logHead(fsys vfs.FS, path string) ([]byte, error) {
	if info, err := fsys.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeCharDevice) != 0 {
		return nil, fmt.Errorf("%s is no file: the log is read twice", path)
	}
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	head, err := readHead(f)
	return head, errors.Join(err, f.Close())
}

// readHead reads as many bytes as a magic has; of a shorter file all.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, len(backupMagic))
	n, err := io.ReadFull(r, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // it is neither of them
	}
	return head[:n], err
}

// readKeys reads the backup of the keys, of that of a log only the beginning. Opening and
// reading a pipe wait for whoever writes into it, and nothing but the end of ctx ends
// that: then they are left to the end of the process.
func readKeys(ctx context.Context, fsys vfs.FS, path string) ([]byte, error) {
	type result struct {
		keys []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		f, err := fsys.Open(path)
		if err != nil {
			read <- result{err: err}
			return
		}
		keys, err := readHead(f)
		if err == nil && !isLogBackup(keys) {
			var rest []byte
			rest, err = io.ReadAll(f)
			keys = append(keys, rest...)
			clear(rest)
		}
		read <- result{keys, errors.Join(err, f.Close())}
	}()
	select {
	case r := <-read:
		return r.keys, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// checkBackup reads a backup of the log as a whole.
func checkBackup(fsys vfs.FS, path string) (logBackup, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return logBackup{}, memory.Errorf(memory.CodeInvalid, "%v", err)
	}
	defer f.Close()
	at := map[uint16]*projections.Cursor{}
	shards, err := readBackup(f, func(shard uint16, _ uint64, data []byte) error {
		if at[shard] == nil {
			at[shard] = &projections.Cursor{Shard: shard}
		}
		_, _, err := at[shard].Follow(data)
		return err
	})
	if events.IsForeign(err) {
		return logBackup{}, publicError(startError(path, err))
	}
	if err != nil {
		return logBackup{}, memory.Errorf(memory.CodeLogDiverged, "%s cannot be restored: %v", path, err).WithHint("use another copy of the backup")
	}
	out := logBackup{path: path, shards: shards, epochs: make([]uint32, len(shards))}
	for i, s := range shards {
		out.frames += s.frames
		if c := at[s.shard]; c != nil {
			out.epochs[i] = c.Epoch
		}
	}
	return out, nil
}

func (o Offline) restore(ctx context.Context, lock *dirLock, from logBackup, keys []byte, progress func(done, total uint64)) ([]memory.RebuildShard, error) {
	cfg := o.Config
	cfg.DataDir, cfg.NATSAddr, cfg.NATSURL = lock.path, "127.0.0.1:0", ""
	err := keyring.Import(keyring.Options{Dir: lock.path, Master: cfg.MasterKey, FS: cfg.FS, Log: cfg.Logger}, bytes.NewReader(keys))
	if err != nil {
		return nil, publicError(startError("keyring", err))
	}
	c := &core{cfg: cfg, restoring: lock}
	shards, err := c.restoreFrom(ctx, from, progress)
	return shards, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
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
	f, err := c.cfg.FS.Open(from.path)
	if err != nil {
		return nil, err
	}
	done := uint64(0)
	_, err = readBackup(f, func(shard uint16, seq uint64, data []byte) error {
		if done++; progress != nil {
			progress(done, 2*from.frames)
		}
		return c.shards[shard].stream.Append(ctx, data, seq-1)
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var out []memory.RebuildShard
	for _, s := range c.shards {
		one, err := s.restoreState(ctx, from.path)
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
func (s *shard) restoreState(ctx context.Context, path string) (out memory.RebuildShard, err error) {
	started := time.Now()
	s.state, err = replica.OpenState(ctx, s.replicaOptions())
	if errors.Is(err, keyring.ErrNoKey) {
		return out, &StartError{Kind: StartLostKey, Message: fmt.Sprintf("the keys given do not open %s: %v", path, err),
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

// restoreNode writes node.json with the backup's cluster id and number of shards.
func (c *core) restoreNode(from logBackup) error {
	d := &dataDir{fs: c.cfg.FS, path: c.cfg.DataDir, node: nodeFile{Format: nodeFormat, NodeID: newNodeID(c.cfg.Now), ClusterID: from.shards[0].cluster.String(), Mode: modeStandalone}}
	if len(from.shards) > 1 {
		d.node.Shards = len(from.shards)
	}
	return d.writeNode()
}
