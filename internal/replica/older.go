package replica

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/storage"
)

const (
	nextSuffix  = ".next"
	olderSuffix = ".older"
)

// buildOlder builds the state anew that another version of Mneme left: rows of
// two pipeline versions are never mixed. The old one stays until the new one is
// complete and has come by the same log. A crash in between leaves one of them,
// or none, which is built from the log like any that is missing. The new one
// stands at the end of Raft's log, whose commands hold what the older version
// derived: none of them is applied to it.
func (o *Options) buildOlder(ctx context.Context, older *projections.OlderError) error {
	cannot := func(why string) error {
		return &DamagedError{Message: fmt.Sprintf("the state is of pipeline version %d and has to be built anew, but %s", older.Cursor.Pipeline, why),
			Hint: "start the version of Mneme that wrote it and run memctl log repair; then this one", Err: older}
	}
	info, err := o.Stream.Info(ctx)
	if err != nil {
		return err
	}
	if len(info.Lost) > 0 || info.First > 1 || info.Last < older.Cursor.Seq {
		return cannot("the log does not hold all that it was built from")
	}
	o.Logger.Info("building the state of another version anew", "was", older.Cursor.Pipeline, "is", projections.PipelineVersion, "frames", info.Last)
	started, opt := time.Now(), o.StateOptions()
	opt.Dir, opt.Filling, opt.OnApply = opt.Dir+nextSuffix, true, nil
	if err := o.FS.RemoveAll(opt.Dir); err != nil {
		return err
	}
	next, err := projections.Open(opt)
	if err != nil {
		return err
	}
	err = o.fillNext(ctx, next, older, info, cannot)
	var gap *eventlog.GapError
	if errors.As(err, &gap) {
		err = cannot(fmt.Sprintf("the log is damaged: %v", gap))
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return errors.Join(err, o.FS.RemoveAll(opt.Dir))
	}
	if err := o.FS.Rename(o.stateDir(), o.stateDir()+olderSuffix); err != nil {
		return err
	}
	if err := o.FS.Rename(opt.Dir, o.stateDir()); err != nil {
		return err
	}
	if err := storage.SyncDir(o.FS, filepath.Dir(o.stateDir())); err != nil {
		return err
	}
	o.Logger.Info("state built", "took", time.Since(started).Round(time.Millisecond))
	return nil
}

// fillNext replays the log into next, which must pass where the older state stood.
func (o *Options) fillNext(ctx context.Context, next *projections.State, older *projections.OlderError, info eventlog.Info, cannot func(string) error) error {
	if older.Cursor.Seq > 0 {
		if _, err := replay(ctx, o.Stream, o.Keys, next, older.Cursor.Seq, nil); err != nil {
			return err
		}
		if next.Cursor().Chain != older.Cursor.Chain {
			return cannot("the log holds other messages than it was built from")
		}
	}
	if _, err := replay(ctx, o.Stream, o.Keys, next, 0, nil); err != nil {
		return err
	}
	if err := o.setOrigin(next, info); err != nil {
		return err
	}
	return next.Flush()
}

// sweepOlder removes what buildOlder leaves beside the state once that is open.
func (o *Options) sweepOlder() error {
	return errors.Join(o.FS.RemoveAll(o.stateDir()+nextSuffix), o.FS.RemoveAll(o.stateDir()+olderSuffix))
}
