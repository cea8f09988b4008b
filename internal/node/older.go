package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/storage"
)

// buildOlder builds the state anew that another version of Mneme left: rows of
// two pipeline versions are never mixed. The old one stays until the new one is
// complete and has come by the same log. A crash in between leaves one of them,
// or none, which is built from the log like any that is missing.
func (c *core) buildOlder(ctx context.Context, older *projections.OlderError) error {
	cannot := func(why string) error {
		return &StartError{Kind: StartDamaged, Message: fmt.Sprintf("the state is of pipeline version %d and has to be built anew, but %s", older.Cursor.Pipeline, why),
			Hint: "start the version of Mneme that wrote it and run memctl log repair; then this one"}
	}
	info, err := c.stream.Info(ctx)
	if err != nil {
		return err
	}
	if len(info.Lost) > 0 || info.First > 1 || info.Last < older.Cursor.Seq {
		return cannot("the log does not hold all that it was built from")
	}
	c.cfg.Logger.Info("building the state of another version anew", "was", older.Cursor.Pipeline, "is", projections.PipelineVersion, "frames", info.Last)
	started, opt := time.Now(), c.stateOptions()
	opt.Dir += nextSuffix
	if err := c.files.RemoveAll(opt.Dir); err != nil {
		return err
	}
	next, err := projections.Open(opt)
	if err != nil {
		return err
	}
	err = c.fillNext(ctx, next, older, info.Identity, cannot)
	var gap *eventlog.GapError
	if errors.As(err, &gap) {
		err = cannot(fmt.Sprintf("the log is damaged: %v", gap))
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return errors.Join(err, c.files.RemoveAll(opt.Dir))
	}
	if err := c.forgetRaft(); err != nil {
		return err
	}
	dir := c.dir.state(shard0)
	if err := c.files.Rename(dir, dir+olderSuffix); err != nil {
		return err
	}
	if err := c.files.Rename(opt.Dir, dir); err != nil {
		return err
	}
	if err := storage.SyncDir(c.files, filepath.Dir(dir)); err != nil {
		return err
	}
	c.cfg.Logger.Info("state built", "took", time.Since(started).Round(time.Millisecond))
	return nil
}

// forgetRaft removes Raft's log and snapshots, whose commands hold what an older
// version derived, before a state takes their place that they do not fit.
func (c *core) forgetRaft() error {
	dir := c.dir.shard(shard0)
	return errors.Join(vfs.Default.RemoveAll(filepath.Join(dir, "raft.db")), c.files.RemoveAll(filepath.Join(dir, "snapshots")),
		storage.SyncDir(nil, dir), storage.SyncDir(c.files, dir))
}

const (
	nextSuffix  = ".next"
	olderSuffix = ".older"
)

// fillNext replays the log into next, which must pass where the older state stood.
func (c *core) fillNext(ctx context.Context, next *projections.State, older *projections.OlderError, identity string, cannot func(string) error) error {
	if older.Cursor.Seq > 0 {
		if _, err := replayInto(ctx, c.stream, c.keys, next, older.Cursor.Seq, nil); err != nil {
			return err
		}
		if next.Cursor().Chain != older.Cursor.Chain {
			return cannot("the log holds other messages than it was built from")
		}
	}
	if _, err := replayInto(ctx, c.stream, c.keys, next, 0, nil); err != nil {
		return err
	}
	if err := c.setOrigin(next, identity); err != nil {
		return err
	}
	return next.Flush()
}

// sweepOlder removes what buildOlder leaves beside the state once that is open.
func (c *core) sweepOlder() error {
	dir := c.dir.state(shard0)
	return errors.Join(c.files.RemoveAll(dir+nextSuffix), c.files.RemoveAll(dir+olderSuffix))
}
