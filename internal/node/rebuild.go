package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
	"mneme/memory"
)

// upkeep is the work that keeps logs and states whole: it compares them, rebuilds
// one from the other, and writes backups.
type upkeep struct {
	n   *Node
	one turn // one rebuild, repair or verification at a time
	// copy is this node's own one of the log; nil where it keeps none beside others.
	copy *ownCopy
	// background runs work until the node closes, which ends its context.
	background func(work func(context.Context))
}

func newUpkeep(n *Node) *upkeep { return &upkeep{n: n, one: make(turn, 1), copy: newOwnCopy(n)} }

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
		defer u.holdScrubs()()
		return notNow(f())
	}
	if !u.repairs() && u.n.eraser.holdsLock() { // that is over soon
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
	defer u.holdScrubs()()
	return notNow(f())
}

// holdScrubs keeps the slow readings from going on until the returned function is called.
func (u *upkeep) holdScrubs() (release func()) {
	var held []func()
	for _, s := range u.n.served {
		held = append(held, s.scrub.hold())
	}
	return func() {
		for _, release := range held {
			release()
		}
	}
}

// repairs reports whether a repair is under way.
func (u *upkeep) repairs() bool {
	return slices.ContainsFunc(u.n.served, func(s *served) bool { return s.copying.Load() != nil })
}

// notNow says that work which met an election can be done again soon.
func notNow(err error) error {
	if !errors.Is(err, eventlog.ErrNoLeader) && !errors.Is(err, raftfsm.ErrNotLeader) || memory.CodeOf(err) != memory.CodeInternal {
		return err
	}
	return memory.Errorf(memory.CodeUnavailable, "%v", err).WithCause(err).
		WithHint("the nodes elect, which takes a second or two: do the same again; if it stays so, memctl cluster status says which nodes are there")
}

// Rebuild builds the states again from the logs beside the present ones and swaps
// last. Reads and writes go on.
func (u *upkeep) Rebuild(ctx context.Context, progress func(done, total uint64)) (memory.RebuildReport, error) {
	var report memory.RebuildReport
	err := u.exclusive(ctx, func() error {
		for _, s := range u.n.served {
			one, err := s.rebuild(ctx, progress)
			if err != nil {
				return err
			}
			report.Shards = append(report.Shards, one)
		}
		return nil
	})
	return report, err
}

// rebuild builds the shard's state again, while nothing else replaces it or the log.
func (s *served) rebuild(ctx context.Context, progress func(done, total uint64)) (memory.RebuildShard, error) {
	started := time.Now()
	if d := s.replica.Diverged(); d != nil {
		return memory.RebuildShard{}, memory.Errorf(memory.CodeLogDiverged, "the log does not hold all that the state holds: %v", d).WithHint("%s", d.Hint)
	}
	rebuilt, err := s.replica.Rebuild(ctx, progress)
	if storage.IsNoSpace(err) {
		return memory.RebuildShard{}, memory.Errorf(memory.CodeNoSpace, "the state was not built again: %v", err).
			WithHint("free some space on the disk of %s, then run memctl rebuild again; the state that was there goes on", s.dir.path).WithCause(err)
	}
	if err != nil {
		return memory.RebuildShard{}, s.explain(ctx, err)
	}
	return memory.RebuildShard{ID: int(s.id), Position: rebuilt.At.Position().String(),
		StateHash: rebuilt.After.String(), Before: rebuilt.Before.String(),
		Events: rebuilt.At.Events, TookMS: time.Since(started).Milliseconds()}, nil
}

// explain says what is wrong with the log if that is why a rebuild failed.
func (s *served) explain(ctx context.Context, failed error) error {
	v := s.state.View()
	defer v.Close()
	var report memory.VerifyShard
	err := s.stopOver(func() (d *eventlog.DivergedError, err error) {
		report, d, err = s.verifyLog(ctx, v, nil)
		return d, err
	})
	if err != nil || report.OK {
		return failed
	}
	return damagedLog("rebuild", report).WithCause(failed)
}
