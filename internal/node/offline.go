package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/storage"
	"mneme/memory"
)

// Offline does administrative work on the data directory of a stopped node.
// While it works the directory is locked.
type Offline struct{ Config Config }

// open brings up log and state without serving anything.
func (o Offline) open(ctx context.Context, dir string) (*core, error) {
	cfg := o.Config
	cfg.DataDir, cfg.NATSAddr, cfg.NATSURL = dir, "127.0.0.1:0", ""
	cfg.setDefaults()
	c := &core{cfg: cfg}
	err := c.openDir(true)
	if err == nil {
		err = c.openLog(ctx, func(_, _, _ string) bool { return false })
	}
	if err != nil {
		return nil, errors.Join(err, c.close(ctx))
	}
	return c, nil
}

// with runs f between open and close.
func (o Offline) with(ctx context.Context, dir string, f func(c *core) error) error {
	c, err := o.open(ctx, dir)
	if err != nil {
		return publicError(err)
	}
	return errors.Join(f(c), c.close(context.WithoutCancel(ctx)))
}

// publicError gives a start failure a code of the public contract.
func publicError(err error) error {
	var s *StartError
	if !errors.As(err, &s) {
		return err
	}
	code := memory.CodeInternal
	switch s.Kind {
	case StartUsage, StartReadOnly:
		code = memory.CodeInvalid
	case StartInUse, StartAddress, StartUnreachable:
		code = memory.CodeUnavailable
	case StartDamaged, StartNewer, StartLostKey:
		code = memory.CodeLogDiverged
	}
	return memory.Errorf(code, "%s", s.Message).WithHint("%s", s.Hint).WithCause(err)
}

// Doctor looks at a stopped node.
func (o Offline) Doctor(ctx context.Context, dir string) (memory.DoctorReport, error) {
	var checks []memory.Check
	err := o.with(ctx, dir, func(c *core) error {
		checks = append(checks, memory.Check{Name: "data directory", State: "ok", Detail: c.dir.path},
			memory.Check{Name: "keys", State: "ok", Detail: "keyring and master key are there"})
		info, err := c.stream.Info(ctx)
		checks = append(checks, check("log", err == nil && len(info.Lost) == 0, fmt.Sprintf("%d frames", info.Messages),
			fmt.Sprintf("%d frames are lost; %v", len(info.Lost), err), "memctl log verify --data-dir "+dir))
		state, err := projections.Open(projections.Options{Dir: c.dir.state(shard0), Logger: c.cfg.Logger, ReadOnly: true})
		if err != nil {
			checks = append(checks, memory.Check{Name: "state", State: "warn", Detail: err.Error(), Hint: "memnode builds it again from the log when it starts"})
			return nil
		}
		v := state.View()
		cur := v.Cursor()
		checks = append(checks, memory.Check{Name: "state", State: "ok", Detail: "stands at " + cur.Position().String()})
		verified, err := verifyLog(ctx, c.stream, v, nil)
		if err == nil {
			checks = append(checks, check("log against state", verified.OK, fmt.Sprintf("%d frames agree", verified.Frames), fmt.Sprint(verified.Problems), verified.Hint))
		}
		return errors.Join(err, v.Close(), state.Close())
	})
	if err != nil && len(checks) == 0 {
		e := memory.AsError(err)
		return report([]memory.Check{{Name: "data directory", State: "fail", Detail: e.Message, Hint: e.Hint}}), nil
	}
	return report(checks), err
}

// VerifyLog reads the log of a stopped node against its state.
func (o Offline) VerifyLog(ctx context.Context, dir string, progress func(done, total uint64)) (memory.VerifyReport, error) {
	var out memory.VerifyReport
	err := o.with(ctx, dir, func(c *core) error {
		state, err := projections.Open(projections.Options{Dir: c.dir.state(shard0), Logger: c.cfg.Logger, ReadOnly: true})
		if err != nil {
			return publicError(startError("state", err))
		}
		v := state.View()
		shard, err := verifyLog(ctx, c.stream, v, progress)
		out.Shards = []memory.VerifyShard{shard}
		return errors.Join(err, v.Close(), state.Close())
	})
	return out, err
}

// Backup writes the log and, with its master key, the keyring of a stopped node
// into two files.
func (o Offline) Backup(ctx context.Context, dir, logPath, keysPath string, progress func(done, total uint64)) (memory.BackupReport, error) {
	var out memory.BackupReport
	err := o.with(ctx, dir, func(c *core) error {
		if logPath != "" {
			err := createFile(logPath, func(w io.Writer) (err error) {
				out, err = backupLog(ctx, c.stream, c.dir.node.ClusterID, w, progress)
				return err
			})
			if err != nil {
				return err
			}
			out.Log = logPath
		}
		if keysPath == "" {
			return nil
		}
		out.Keys = keysPath
		return createFile(keysPath, c.keys.ExportWithMaster)
	})
	return out, err
}

// createFile writes a new file whole or not at all.
func createFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return memory.Errorf(memory.CodeInvalid, "%v", err).WithCause(err)
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return storage.SyncDir(nil, filepath.Dir(path))
}

// Restore makes a new data directory from a backup of log and keyring. State is
// built from the log.
func (o Offline) Restore(ctx context.Context, dir, logPath, keysPath string, progress func(done, total uint64)) (memory.RebuildReport, error) {
	var out memory.RebuildReport
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return out, memory.Errorf(memory.CodeConflict, "%s is not empty", dir).WithHint("restore into a new directory, then start memnode with it")
	}
	// The log is checked as a whole before anything is made of it.
	total, err := checkBackup(logPath)
	if err != nil {
		return out, err
	}
	made := filepath.Join(dir, nodeJSON)
	report, err := o.restore(ctx, dir, logPath, keysPath, total, progress)
	if err != nil {
		if _, serr := os.Stat(made); serr == nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return out, err
	}
	out.Shards = []memory.RebuildShard{report}
	return out, nil
}

func checkBackup(logPath string) (uint64, error) {
	f, err := os.Open(logPath)
	if err != nil {
		return 0, memory.Errorf(memory.CodeInvalid, "%v", err)
	}
	defer f.Close()
	_, frames, err := readBackup(f, func(uint64, []byte) error { return nil })
	if err != nil {
		return 0, memory.Errorf(memory.CodeLogDiverged, "%s cannot be restored: %v", logPath, err).WithHint("use another copy of the backup")
	}
	return frames, nil
}

func (o Offline) restore(ctx context.Context, dir, logPath, keysPath string, total uint64, progress func(done, total uint64)) (memory.RebuildShard, error) {
	cfg := o.Config
	cfg.DataDir, cfg.NATSAddr, cfg.NATSURL = dir, "127.0.0.1:0", ""
	cfg.setDefaults()
	keys, err := os.Open(keysPath)
	if err != nil {
		return memory.RebuildShard{}, memory.Errorf(memory.CodeInvalid, "%v", err)
	}
	err = errors.Join(keyring.Import(keyring.Options{Dir: dir, Log: cfg.Logger}, keys), keys.Close())
	if err != nil {
		return memory.RebuildShard{}, publicError(startError("keyring", err))
	}
	c := &core{cfg: cfg}
	started := time.Now()
	report, err := c.restoreFrom(ctx, logPath, total, progress)
	report.TookMS = time.Since(started).Milliseconds()
	return report, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
}

func (c *core) restoreFrom(ctx context.Context, logPath string, total uint64, progress func(done, total uint64)) (memory.RebuildShard, error) {
	var out memory.RebuildShard
	if err := c.restoreNode(logPath); err != nil {
		return out, err
	}
	if err := c.openDir(true); err != nil {
		return out, err
	}
	if err := c.openLog(ctx, func(_, _, _ string) bool { return false }); err != nil {
		return out, err
	}
	f, err := os.Open(logPath)
	if err != nil {
		return out, err
	}
	_, _, err = readBackup(f, func(seq uint64, data []byte) error {
		if progress != nil {
			progress(seq, 2*total)
		}
		return c.stream.Append(ctx, data, seq-1)
	})
	if err = errors.Join(err, f.Close()); err != nil {
		return out, err
	}
	if err := c.openState(ctx); err != nil {
		return out, err
	}
	if progress != nil {
		progress(2*total, 2*total)
	}
	v := c.state.View()
	defer v.Close()
	h, err := v.Hash()
	cur := v.Cursor()
	return memory.RebuildShard{ID: shard0, Position: cur.Position().String(), StateHash: h.String(), Events: cur.Events}, err
}

// restoreNode writes node.json with the backup's cluster id.
func (c *core) restoreNode(logPath string) error {
	f, err := os.Open(logPath)
	if err != nil {
		return err
	}
	defer f.Close()
	stop := errors.New("enough")
	cluster, _, err := readBackup(f, func(uint64, []byte) error { return stop })
	if err != nil && !errors.Is(err, stop) {
		return err
	}
	d := &dataDir{fs: c.cfg.FS, path: c.cfg.DataDir, node: nodeFile{Format: nodeFormat, NodeID: newNodeID(c.cfg.Now), ClusterID: cluster.String(), Mode: modeStandalone}}
	return d.writeNode()
}
