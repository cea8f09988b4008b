package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
	"mneme/memory"
)

// upkeep is the work that keeps log and state whole: it compares them, rebuilds
// one from the other, and writes backups.
type upkeep struct {
	*core
	one   turn // one rebuild, repair or verification at a time
	scrub *logScrub
	// yields reports that whoever holds the lock gives it back soon.
	yields func() bool
	// background runs work until the node closes, which ends its context.
	background func(work func(context.Context))
	copying    atomic.Pointer[memory.Progress] // of the repair that is under way
	finding    sync.Mutex                      // while a divergence is set, or ended by a repair
}

func newUpkeep(c *core, yields func() bool) *upkeep {
	u := &upkeep{core: c, yields: yields, one: make(turn, 1)}
	u.scrub = newLogScrub(u)
	return u
}

// turn is a lock that can be waited for as long as a context lasts. It is held
// while it has an element.
type turn chan struct{}

func (t turn) end() { <-t }

func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t turn) wait(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exclusive runs administrative work that replaces the log or the state; one at
// a time.
func (u *upkeep) exclusive(ctx context.Context, f func() error) error {
	if u.one.try() {
		defer u.one.end()
		defer u.scrub.hold()()
		return notNow(f())
	}
	if u.copying.Load() == nil && u.yields() {
		return u.inTurn(ctx, f)
	}
	return memory.Errorf(memory.CodeConflict, "a rebuild, repair or verification is already running").WithHint("wait for it to end")
}

// inTurn is exclusive for work that is not refused but waits.
func (u *upkeep) inTurn(ctx context.Context, f func() error) error {
	if err := u.one.wait(ctx); err != nil {
		return err
	}
	defer u.one.end()
	defer u.scrub.hold()()
	return notNow(f())
}

// notNow says that work which met an election can be done again soon.
func notNow(err error) error {
	if !errors.Is(err, eventlog.ErrNoLeader) && !errors.Is(err, raftfsm.ErrNotLeader) || memory.CodeOf(err) != memory.CodeInternal {
		return err
	}
	return memory.Errorf(memory.CodeUnavailable, "%v", err).WithCause(err).
		WithHint("the nodes elect, which takes a second or two: do the same again; if it stays so, memctl cluster status says which nodes are there")
}

// Rebuild builds the state again from the log beside the present one and swaps
// last. Reads and writes go on.
func (u *upkeep) Rebuild(ctx context.Context, progress func(done, total uint64)) (memory.RebuildReport, error) {
	var report memory.RebuildReport
	err := u.exclusive(ctx, func() error {
		started := time.Now()
		if d := u.replica.Diverged(); d != nil {
			return memory.Errorf(memory.CodeLogDiverged, "the log does not hold all that the state holds: %v", d).WithHint("%s", d.Hint)
		}
		rebuilt, err := u.replica.Rebuild(ctx, progress)
		if storage.IsNoSpace(err) {
			return memory.Errorf(memory.CodeNoSpace, "the state was not built again: %v", err).
				WithHint("free some space on the disk of %s, then run memctl rebuild again; the state that was there goes on", u.dir.path).WithCause(err)
		}
		if err != nil {
			return u.explain(ctx, err)
		}
		report.Shards = []memory.RebuildShard{{ID: shard0, Position: rebuilt.At.Position().String(),
			StateHash: rebuilt.After.String(), Before: rebuilt.Before.String(),
			Events: rebuilt.At.Events, TookMS: time.Since(started).Milliseconds()}}
		return nil
	})
	return report, err
}

// explain says what is wrong with the log if that is why a rebuild failed.
func (u *upkeep) explain(ctx context.Context, failed error) error {
	v := u.state.View()
	defer v.Close()
	var report memory.VerifyShard
	err := u.stopOver(func() (d *eventlog.DivergedError, err error) {
		report, d, err = verifyLog(ctx, u.stream, v, nil)
		return d, err
	})
	if err != nil || report.OK {
		return failed
	}
	return damagedLog("rebuild", report).WithCause(failed)
}

func (u *upkeep) stateHash() (projections.StateHash, error) {
	v := u.state.View()
	return v.Hash(), v.Close()
}
