package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// With peers a replica owes them its Raft log, its votes and what its newest snapshot
// stands for. None of these is the state, which follows from them: so a state that cannot
// be used is set aside, and another one is folded from the event log up to where that
// snapshot stands, whose files share damage with the state's. Raft applies the rest.

// asideSuffix names the one state that a replica with peers keeps for inspection.
const asideSuffix = ".damaged-1"

// AsideDir is where a replica with peers keeps the last state that it could not use.
func (o *Options) AsideDir() string { return o.stateDir() + asideSuffix }

// buildAmongPeers sets the state aside and folds another one. It refuses where Raft's log
// is damaged, too.
func (o *Options) buildAmongPeers(ctx context.Context, cause error) (*projections.State, error) {
	found, err := raftfsm.Inspect(o.groupOptions())
	if err != nil {
		return nil, err
	}
	if found.Damage != nil {
		return nil, &DamagedError{Message: fmt.Sprintf("the state in %s cannot be used: %v; Raft's log neither: %v", o.stateDir(), cause, found.Damage), Hint: rejoinHint, Err: errors.Join(ErrPeers, cause)}
	}
	if err := o.setAside(cause); err != nil {
		return nil, errors.Join(cause, err)
	}
	o.Logger.Error("the state cannot be used and is built again from the log and Raft's", "err", cause, "kept", o.AsideDir())
	return o.foldAmongPeers(ctx, found)
}

// setAside keeps the present state instead of the one that was kept before, and why.
func (o *Options) setAside(cause error) error {
	if _, err := o.FS.Stat(o.stateDir()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := errors.Join(o.FS.RemoveAll(o.AsideDir()), o.FS.Rename(o.stateDir(), o.AsideDir()), storage.SyncDir(o.FS, filepath.Dir(o.stateDir()))); err != nil {
		return err
	}
	return storage.ReplaceFile(o.FS, o.FS.PathJoin(o.AsideDir(), "why"), []byte(cause.Error()+"\n"), 0o600)
}

// foldAmongPeers brings a state that has no origin to where the newest snapshot stands.
// One that was cut short goes on from what was flushed.
func (o *Options) foldAmongPeers(ctx context.Context, found raftfsm.Inspection) (*projections.State, error) {
	opt := o.StateOptions()
	opt.Filling, opt.OnApply = true, nil
	state, err := projections.Open(opt)
	if err != nil {
		return nil, err
	}
	at := state.Cursor()
	started := time.Now()
	if err = o.choose(ctx, at, nil); err == nil {
		err = o.foldToMark(ctx, state, found.Mark)
	}
	if err == nil {
		err = state.SetOrigin(found.SnapshotIndex, found.SnapshotTerm, o.origin(state.Cursor(), eventlog.Info{}))
	}
	if err = errors.Join(err, state.Close()); err != nil {
		return nil, fmt.Errorf("build the state again: %w", err)
	}
	o.Logger.Info("state built up to where Raft's snapshot stands", "sequence", found.Mark, "took", time.Since(started).Round(time.Millisecond))
	return projections.Open(o.StateOptions())
}

// foldToMark folds the log up to where the snapshot stands, and further where that is needed
// to know of each event in quarantine before it comes to it: what Raft's log holds of such an
// event lies in front of the command that says so, and a program that can apply it would.
// Frames of the log that the state holds already change nothing when Raft brings them.
func (o *Options) foldToMark(ctx context.Context, state *projections.State, mark uint64) error {
	last, err := o.settledEnd(ctx, mark)
	if err != nil {
		return err
	}
	seq, err := ingest.LastQuarantined(ctx, o.Stream, state, last)
	if err != nil {
		return err
	}
	to := max(mark, seq)
	for state.Cursor().Seq < to {
		if err := o.foldTo(ctx, state, to); err != nil {
			return err
		}
		if state.Cursor().Seq < to { // another leader tells less than the one before
			if _, err := o.settledEnd(ctx, to); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	settlePause = 100 * time.Millisecond
	settleSay   = 5 * time.Second
)

// settledEnd waits until the log has a leader whose word has not only just begun to count
// (eventlog.Info.Passing) and that tells of a sequence, and returns the log's last one. That
// there is no such leader ends nothing: the other nodes may be about to write the log again.
func (o *Options) settledEnd(ctx context.Context, seq uint64) (uint64, error) {
	leader, since, said := "", time.Now(), time.Now()
	for {
		info, err := o.Stream.Info(ctx)
		switch {
		case errors.Is(err, eventlog.ErrNoLeader):
			leader = ""
		case err != nil:
			return 0, err
		default:
			if info.Leader != leader {
				leader, since = info.Leader, time.Now()
			}
			if info.Last >= seq && time.Since(since) >= info.Passing {
				return info.Last, nil
			}
			err = fmt.Errorf("the log's leader %q tells of %d messages, Raft's snapshot stands at %d", info.Leader, info.Last, seq)
		}
		if time.Since(said) >= settleSay {
			said = time.Now()
			o.Logger.Info("waiting for a log that holds what the state is built from", "why", err)
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), err)
		}
	}
}

// goOnAmongPeers goes on with what a kill left.
func (o *Options) goOnAmongPeers(ctx context.Context, state *projections.State) (*projections.State, error) {
	if err := state.Close(); err != nil {
		return nil, err
	}
	found, err := raftfsm.Inspect(o.groupOptions())
	if err != nil {
		return nil, err
	}
	return o.foldAmongPeers(ctx, found)
}

// foldTo folds the log into the state up to a sequence. While the log has no leader,
// as when all nodes start at once, it waits.
func (o *Options) foldTo(ctx context.Context, state *projections.State, seq uint64) error {
	for {
		_, err := replay(ctx, o.Stream, o.Keys, state, seq, nil)
		if !errors.Is(err, eventlog.ErrNoLeader) {
			if gap := (*eventlog.GapError)(nil); errors.As(err, &gap) {
				return &DamagedError{Message: fmt.Sprintf("the state in %s cannot be used, and the log does not hold all of it: %v", o.stateDir(), err), Hint: rejoinHint, Err: errors.Join(ErrPeers, err)}
			}
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
