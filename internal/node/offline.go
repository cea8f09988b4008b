package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/backup"
	"mneme/internal/projections"
	"mneme/internal/replica"
	"mneme/internal/storage"
	"mneme/memory"
)

// Offline does administrative work on the data directory of a stopped node.
// While it works the directory is locked.
type Offline struct {
	Config Config

	step func(name string) error // tests end a recovery before each of its steps
}

// open brings up log and state without serving anything.
func (o Offline) open(ctx context.Context, dir string) (*core, error) {
	cfg := o.Config
	cfg.DataDir, cfg.NATSAddr, cfg.NATSURL = dir, "127.0.0.1:0", ""
	cfg.setDefaults()
	c := &core{cfg: cfg}
	err := c.openDir(true)
	if err == nil {
		err = c.openLog(ctx, nobody)
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
	return errors.Join(publicError(f(c)), c.close(context.WithoutCancel(ctx)))
}

// stopped is a shard of a stopped node.
type stopped struct{ *shard }

// open opens the state of a stopped node, to be read only, and the stream
// that goes with it. A kill has left its newest commands in Raft's log alone: they
// are applied first, if there is room; else behind says so. For a state that cannot be opened it is the stream from which
// it can be built again.
func (s stopped) open(ctx context.Context) (state *projections.State, stateErr, err error) {
	opt := s.replicaOptions()
	only := projections.Options{Dir: s.dir.state(s.id), FS: s.files, Logger: s.log, ReadOnly: true}
	state, stateErr = projections.Open(only)
	behind := false
	if stateErr == nil {
		behind, err = opt.Behind(state.Cursor())
	}
	if behind {
		s.behind = s.roomToApply()
	}
	if behind && s.behind == nil {
		if err := state.Close(); err != nil {
			return nil, nil, err
		}
		if state, stateErr = projections.Open(opt.StateOptions()); stateErr == nil {
			err = opt.CatchUp(state)
		}
	}
	if stateErr != nil {
		return nil, stateErr, streams{s.shard}.Choose(ctx, projections.Cursor{}, nil)
	}
	opened := state // the result may become nil
	s.onClose("state", func(context.Context) error { return opened.Close() })
	if storage.IsCorrupt(err) {
		return nil, err, streams{s.shard}.Choose(ctx, projections.Cursor{}, nil)
	}
	if err != nil {
		return nil, nil, startError("state", err)
	}
	return state, nil, streams{s.shard}.chooseFor(ctx, state)
}

// publicError gives a start failure a code of the public contract.
func publicError(err error) error {
	var s *StartError
	if !errors.As(err, &s) {
		return err
	}
	code, hint := memory.CodeInternal, s.Hint
	switch s.Kind {
	case StartUsage, StartReadOnly:
		code = memory.CodeInvalid
	case StartInUse: // exit code 5, as of memnode
		code = memory.CodeConflict
	case StartAddress, StartUnreachable:
		code = memory.CodeUnavailable
	case StartDamaged, StartNewer, StartLostKey:
		code = memory.CodeLogDiverged
	case StartOther:
		if storage.IsNoSpace(err) {
			code, hint = memory.CodeNoSpace, "free some space on that disk, then do the same again"
		}
	}
	return memory.Errorf(code, "%s", s.Message).WithHint("%s", hint).WithCause(err)
}

// Doctor looks at a stopped node.
func (o Offline) Doctor(ctx context.Context, dir string) (memory.DoctorReport, error) {
	var checks []memory.Check
	err := o.with(ctx, dir, func(c *core) error {
		checks = append(checks, memory.Check{Name: "data directory", State: "ok", Detail: c.dir.path})
		for _, s := range c.shards {
			more, err := stopped{s}.doctor(ctx)
			checks = append(checks, more...)
			if err != nil {
				return s.metDamage(err)
			}
		}
		return nil
	})
	inUse := (*StartError)(nil)
	if code := memory.CodeOf(err); code == memory.CodeInvalid || code == memory.CodeUnavailable || errors.As(err, &inUse) && inUse.Kind == StartInUse {
		return memory.DoctorReport{}, err // nothing was looked at
	}
	if err != nil {
		name := "data directory"
		if len(checks) > 0 {
			name = "log"
		}
		e := memory.AsError(err)
		checks = append(checks, memory.Check{Name: name, State: "fail", Detail: e.Message, Hint: e.Hint})
	}
	return report(checks), ctx.Err()
}

// doctor looks at the shard.
func (s stopped) doctor(ctx context.Context) ([]memory.Check, error) {
	checks := []memory.Check{s.checkGroup()}
	state, stateErr, err := s.open(ctx)
	checks = append(checks, s.doctorKeys(state))
	if err != nil {
		return checks, err
	}
	info, err := s.stream.Info(ctx)
	checks = append(checks, check(s.named("log"), err == nil && len(info.Lost) == 0, fmt.Sprintf("%d frames", info.Messages),
		fmt.Sprintf("%d frames are lost; %v", len(info.Lost), err), "memctl log verify"))
	if stateErr != nil {
		checks = append(checks, s.checkClosedState(stateErr))
		return checks, s.refuseShortLog(ctx, projections.Cursor{})
	}
	v := state.View()
	cur := v.Cursor()
	damage := state.CheckTables(ctx)
	if damage != nil {
		checks = append(checks, memory.Check{Name: s.named("state"), State: "fail", Detail: damage.Error(), Hint: damagedHint})
	} else {
		checks = append(checks, s.checkStanding(cur, info.Last))
	}
	if err := s.refuseShortLog(ctx, cur); err != nil {
		return checks, errors.Join(err, v.Close())
	}
	verified, _, err := s.verifyLog(ctx, v, nil)
	if storage.IsCorrupt(damage) && storage.IsCorrupt(err) {
		return checks, v.Close() // the log cannot be compared with that
	}
	if err == nil {
		checks = append(checks, check(s.named("log against state"), verified.OK, fmt.Sprintf("%d frames agree", verified.Frames), problems(verified), verified.Hint))
	}
	return checks, errors.Join(err, v.Close())
}

// checkGroup says whether a stopped node's Raft files let it start.
func (s stopped) checkGroup() memory.Check {
	name := s.named("raft files")
	if err := s.replicaOptions().CheckGroup(); err != nil {
		e := memory.AsError(publicError(startError("shard", err)))
		return memory.Check{Name: name, State: "fail", Detail: e.Message, Hint: e.Hint}
	}
	return memory.Check{Name: name, State: "ok", Detail: "of this node"}
}

// checkClosedState says of a state that does not open what memnode does about it.
func (s stopped) checkClosedState(stateErr error) memory.Check {
	opt := s.replicaOptions()
	if opt.MayBuild(stateErr) == nil {
		return memory.Check{Name: s.named("state"), State: "warn", Detail: stateErr.Error(), Hint: "memnode builds it again from the log when it starts"}
	}
	e := memory.AsError(publicError(s.closedState(stateErr)))
	return memory.Check{Name: s.named("state"), State: "fail", Detail: e.Message, Hint: e.Hint}
}

// checkStanding says where the state of a stopped node stands beside a log that ends at
// a sequence.
func (s stopped) checkStanding(at projections.Cursor, last uint64) memory.Check {
	out := memory.Check{Name: s.named("state"), State: "ok", Detail: "stands at " + at.Position().String()}
	if s.behind != nil {
		opt := s.replicaOptions()
		end, _ := opt.RaftEnd() // it was read when behind was found
		out.State, out.Hint = "warn", memory.AsError(s.behind).Hint
		out.Detail += fmt.Sprintf(" and lacks %d frames; %v", max(end, last, at.Seq)-at.Seq, s.behind)
	}
	return out
}

// VerifyLog reads the log of a stopped node against its state.
func (o Offline) VerifyLog(ctx context.Context, dir string, progress func(done, total uint64)) (memory.VerifyReport, error) {
	var out memory.VerifyReport
	err := o.with(ctx, dir, func(c *core) error {
		for _, s := range c.shards {
			one, err := stopped{s}.verify(ctx, progress)
			if err != nil {
				return s.metDamage(err)
			}
			out.Shards = append(out.Shards, one)
		}
		return nil
	})
	return out, err
}

func (s stopped) verify(ctx context.Context, progress func(done, total uint64)) (out memory.VerifyShard, err error) {
	state, stateErr, err := s.open(ctx)
	if err != nil {
		return out, err
	}
	if stateErr != nil {
		return out, s.closedState(stateErr)
	}
	v := state.View()
	out, _, err = s.verifyLog(ctx, v, progress)
	if err == nil {
		err = s.refuseShortLog(ctx, v.Cursor())
	}
	return out, errors.Join(err, v.Close())
}

// Backup writes the log and, with its master key, the keyring of a stopped node
// into two files, in place of older ones. Of a node of a cluster it holds what that node
// has, see backupMember.
func (o Offline) Backup(ctx context.Context, dir, logPath, keysPath string, progress func(done, total uint64)) (memory.BackupReport, error) {
	cfg := o.Config
	if cfg.setDefaults(); memberOf(cfg.FS, dir) != "" {
		return o.backupMember(ctx, dir, logPath, keysPath, progress)
	}
	var out memory.BackupReport
	err := o.with(ctx, dir, func(c *core) (err error) {
		if logPath == "" {
			for _, s := range c.shards {
				if _, _, err := (stopped{s}).openForBackup(ctx); err != nil {
					return s.metDamage(err)
				}
			}
		}
		out, err = c.writeBackup(logPath, keysPath, func(s *shard, w io.Writer) (memory.BackupReport, error) {
			one, err := stopped{s}.backup(ctx, w, backup.Mark{Shard: s.id}, progress)
			return one, s.metDamage(err)
		})
		return err
	})
	return out, err
}

// writeBackup writes the two files. The log takes its place last: if that fails, the
// older log has newer keys, which open it.
func (c *core) writeBackup(logPath, keysPath string, log func(s *shard, w io.Writer) (memory.BackupReport, error)) (out memory.BackupReport, err error) {
	keys := func() error {
		if keysPath == "" {
			return nil
		}
		return replaceFile(c.cfg.FS, keysPath, c.keys.ExportWithMaster)
	}
	if logPath == "" {
		err = keys()
	} else {
		err = replaceFile(c.cfg.FS, logPath, func(w io.Writer) error {
			for _, s := range slices.Backward(c.shards) {
				one, err := log(s, w)
				if err != nil {
					return err
				}
				out = together(one, out)
			}
			return keys()
		})
	}
	out.Log, out.Keys = logPath, keysPath
	return out, err
}

// openForBackup refuses where the keyring lacks keys that the state knows: with it the
// log that is backed up could not be restored.
func (s stopped) openForBackup(ctx context.Context) (state *projections.State, stateErr, err error) {
	state, stateErr, err = s.open(ctx)
	if err == nil && stateErr == nil {
		err = s.checkKeys(state)
	}
	return state, stateErr, publicError(err)
}

// backup compares the log with the state, if there is one that opens;
// one that does not is built from the log anyway.
func (s stopped) backup(ctx context.Context, w io.Writer, after backup.Mark, progress func(done, total uint64)) (memory.BackupReport, error) {
	state, stateErr, err := s.openForBackup(ctx)
	if err != nil {
		return memory.BackupReport{}, err
	}
	if stateErr != nil {
		if err := s.refuseShortLog(ctx, projections.Cursor{}); err != nil {
			return memory.BackupReport{}, err
		}
		s.log.Warn("the log is written without comparing it with the state, which cannot be opened", "err", stateErr)
		return s.backupLog(ctx, nil, math.MaxUint64, after, w, progress)
	}
	if s.behind != nil {
		s.log.Warn("the log is compared with a state that lacks what Raft's log holds", "err", s.behind)
	}
	v := state.View()
	if err := s.refuseShortLog(ctx, v.Cursor()); err != nil {
		return memory.BackupReport{}, errors.Join(err, v.Close())
	}
	report, err := s.backupLog(ctx, v, math.MaxUint64, after, w, progress)
	return report, errors.Join(err, v.Close())
}

// refuseShortLog refuses a log that ends before what Raft's log holds, where the state
// does not hold all of that either; a zero cursor is one that does not open. A state
// that does tells by itself how far the log went.
func (s stopped) refuseShortLog(ctx context.Context, at projections.Cursor) error {
	opt := s.replicaOptions()
	end, err := opt.RaftEnd()
	if err != nil || at.Seq >= end {
		return err
	}
	if last, err := opt.LogGoesTo(ctx, at.Seq, end); err != nil || last >= end {
		return err
	}
	fills, err := opt.RaftFills()
	if err != nil {
		return err
	}
	const builds = "start memnode: it builds the state from Raft's log; then memctl log repair writes the log again from it"
	hint := replica.LostEndHint
	switch {
	case s.behind != nil:
		hint = memory.AsError(s.behind).Hint
	case fills && at.RaftIndex > 0:
		hint = fmt.Sprintf("move %s out of the data directory and %s", s.dir.state(s.id), builds)
	case fills:
		hint = builds
	}
	return memory.Errorf(memory.CodeLogDiverged, "the log has lost its end: what was applied went to %d at least", end).WithHint("%s", hint)
}

// replaceFile writes a file whole or not at all, also if the machine loses its
// power meanwhile.
func replaceFile(fsys vfs.FS, path string, write func(io.Writer) error) error {
	var failed error // of write, which has a code of its own
	err := storage.ReplaceWith(fsys, path, 0o600, func(w io.Writer) error {
		failed = write(w)
		return failed
	})
	if err != nil && failed == nil {
		return memory.Errorf(memory.CodeInvalid, "%v", err).WithHint("name a file in a directory that exists and can be written").WithCause(err)
	}
	return err
}
