package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/hashicorp/raft"
)

// Group is one replica of one Raft group. All methods may be called from any
// goroutine.
type Group struct {
	opt      Options
	log      *slog.Logger
	lock     *flock.Flock
	store    *logStore
	members  *memberFile
	snaps    *snapshotStore
	fsm      *fsm
	raft     *raft.Raft
	proposer *proposer
	leads    *leadership
	verifier *verifier
	repaired Repair

	alone    atomic.Bool   // no peer could be misled by a stand-in entry
	grown    chan struct{} // the log asks for a snapshot
	renewing sync.Mutex    // one Renew at a time
	stopWork context.CancelFunc
	work     sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	closing   chan struct{}
	ops       sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Open recovers the group from its directory and starts it. The machine must be
// open. On an error nothing runs and the machine may have been restored from a
// snapshot, but is otherwise as it was. Errors: ErrLocked, ErrDamaged,
// ErrStateLost, ErrNoSync, ErrOtherNode, ErrMembersUnknown, ErrCorruptSnapshot, of
// options and I/O.
func Open(opt Options) (*Group, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	g := &Group{
		opt: opt, log: opt.Logger.With("raft_id", opt.ID),
		leads: newLeadership(), grown: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	if err := g.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("raftfsm open %s: %w", opt.Dir, err), g.release())
	}
	g.start()
	return g, nil
}

// open makes the parts up to and including raft.
func (g *Group) open() error {
	if g.opt.Transport == nil {
		g.opt.Transport = newLocalTransport(g.opt.ID)
	} else {
		g.opt.Transport = newAnnouncer(g.opt.Transport, g)
	}
	rec := &recovery{opt: g.opt, log: g.log, events: g}
	if err := rec.run(); err != nil {
		g.lock, g.store = rec.lock, rec.store
		return err
	}
	g.lock, g.store, g.members, g.snaps, g.fsm, g.repaired = rec.lock, rec.store, rec.members, rec.snaps, rec.fsm, rec.repaired
	g.fsm.kept, g.fsm.resumed = g.store.GetLog, g.leads.wake
	g.store.boundary, g.snaps.unsound = g.snaps.boundary, func(id string) { replaceSnapshot(g, id) }
	g.alone.Store(rec.single)
	conf := g.raftConfig()
	err := guard(func() (err error) {
		g.raft, err = raft.NewRaft(conf, g.fsm, g.store, g.store.stable, g.snaps, g.opt.Transport)
		return err
	})
	if err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	if rec.single {
		// A follower whose heartbeat timeout shrinks looks for a leader at once:
		// a single voter leads within milliseconds and its timers stay slow.
		rc := g.raft.ReloadableConfig()
		rc.HeartbeatTimeout -= time.Millisecond
		if err := g.raft.ReloadConfig(rc); err != nil {
			hangUp(g.opt.Transport)
			return errors.Join(fmt.Errorf("start raft: %w", err), g.raft.Shutdown().Error())
		}
	}
	return nil
}

func (g *Group) raftConfig() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(g.opt.ID)
	conf.HeartbeatTimeout = g.opt.HeartbeatTimeout
	conf.ElectionTimeout = g.opt.ElectionTimeout
	conf.LeaderLeaseTimeout = g.opt.HeartbeatTimeout / 2
	conf.BatchApplyCh = true
	conf.CommitTimeout = g.opt.commitTimeout
	conf.ShutdownOnRemove = false
	conf.SnapshotThreshold = g.opt.SnapshotThreshold
	conf.TrailingLogs = uint64(g.opt.TrailingLogs)
	conf.Logger = newHclogBridge(g.log, "raft")
	// recovery has brought the machine to the newest snapshot or beyond.
	conf.NoSnapshotRestoreOnStart = true
	conf.NoLegacyTelemetry = true
	return conf
}

// start begins the group's own goroutines; Close ends and waits for them.
func (g *Group) start() {
	ctx, cancel := context.WithCancel(context.Background())
	g.stopWork = cancel
	g.proposer = newProposer(g.raft)
	verify := func() error { return g.raft.VerifyLeader().Error() }
	if a, ok := g.opt.Transport.(*announcer); ok {
		unhurried := verify
		verify = func() error { return a.beats.hurry(unhurried) }
	}
	g.verifier = newVerifier(verify)
	g.observeRaft()
	g.work.Go(func() { g.beginTerms(ctx) })
	g.work.Go(func() { g.leads.deliver(ctx) })
	g.work.Go(func() { g.verifier.run(ctx) })
	g.work.Go(func() { g.watchGrowth(ctx) })
	if a, ok := g.opt.Transport.(*announcer); ok {
		g.work.Go(func() { a.run(ctx) })
	}
}

// begin registers an operation that Close waits for.
func (g *Group) begin(op string) (end func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("raftfsm %s: %w", op, ErrClosed)
	}
	g.ops.Add(1)
	return g.ops.Done, nil
}

// Propose hands a command to the group and returns at once, unless the queue is
// full; ctx bounds only that. Commands proposed one after the other by one
// goroutine are applied in that order, if at all. data must not be changed
// afterwards. See Future.Wait for the errors.
func (g *Group) Propose(ctx context.Context, data []byte) *Future {
	end, err := g.begin("propose")
	if err != nil {
		return failedFuture(fmt.Errorf("%w: %w", err, ErrRefused))
	}
	defer end()
	if len(data) > g.opt.MaxCommandBytes {
		return failedFuture(fmt.Errorf("raftfsm propose: %w: %w: %d of at most %d bytes", ErrRefused, ErrTooLarge, len(data), g.opt.MaxCommandBytes))
	}
	if err := g.fsm.progress.haltedErr(); err != nil {
		return failedFuture(fmt.Errorf("raftfsm propose: %w: %w", ErrRefused, err))
	}
	return g.proposer.propose(ctx, raft.Log{Data: data})
}

// Barrier returns when everything that was proposed before has been applied on
// this replica, which must lead. Errors as of Future.Wait.
func (g *Group) Barrier(ctx context.Context) error {
	end, err := g.begin("barrier")
	if err != nil {
		return err
	}
	defer end()
	_, _, err = g.proposer.propose(ctx, raft.Log{Extensions: markerExtension}).Wait(ctx)
	return err
}

// WaitApplied returns when this replica has applied everything up to index.
// Errors: ErrHalted, ErrClosed, ctx's.
func (g *Group) WaitApplied(ctx context.Context, index uint64) error {
	for {
		done, changed, err := g.fsm.progress.poll(index)
		if done {
			return nil
		}
		if err != nil {
			return fmt.Errorf("raftfsm wait applied %d: %w", index, err)
		}
		select {
		case <-changed:
		case <-g.closing:
			return fmt.Errorf("raftfsm wait applied %d: %w", index, ErrClosed)
		case <-ctx.Done():
			return fmt.Errorf("raftfsm wait applied %d: %w", index, ctx.Err())
		}
	}
}

// Snapshot takes a snapshot now and truncates the log. It returns nil when there
// is nothing new.
func (g *Group) Snapshot() error {
	end, err := g.begin("snapshot")
	if err != nil {
		return err
	}
	defer end()
	return g.snapshot()
}

func (g *Group) snapshot() error {
	if err := g.fsm.progress.haltedErr(); err != nil {
		return fmt.Errorf("raftfsm snapshot: %w", err)
	}
	trail(g)
	err := g.raft.Snapshot().Error()
	if err == nil || errors.Is(err, raft.ErrNothingNewToSnapshot) {
		err = cutFirst(g)
	}
	return raftErr("snapshot", err)
}

// watchGrowth takes a snapshot whenever the log has grown enough. raft itself
// looks only every two to four minutes, and never at bytes.
func (g *Group) watchGrowth(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.grown:
			g.store.compacted() // after a failure the next try comes with as much again
			if err := g.snapshot(); err != nil && ctx.Err() == nil {
				g.log.Warn("snapshot failed", "error", err)
			}
		}
	}
}

// trail sets how many entries the next snapshot leaves in the log, by their size. A replica
// that was away for no longer is sent those that it lacks; behind them it is sent a snapshot,
// the whole state.
func trail(g *Group) {
	if !g.opt.trails {
		return
	}
	conf := g.raft.ReloadableConfig()
	conf.TrailingLogs = max(g.store.within(mostTrailingBytes), defaultTrailingLogs)
	if err := g.raft.ReloadConfig(conf); err != nil {
		g.log.Warn("what a snapshot leaves of the log could not be set", "error", err)
	}
}

// cutFirst cuts off the first entry of a log that is kept as a whole otherwise: a replica that
// has nothing is sent a snapshot then, which takes less than thousands of entries.
func cutFirst(g *Group) error {
	end, _ := g.snaps.boundary()
	if first := g.store.firstIndex(); g.opt.trails && first == 1 && end > first && g.raft.LastIndex() > defaultTrailingLogs {
		return g.store.DeleteRange(first, first)
	}
	return nil
}

// replaceSnapshot puts another snapshot in the place of one that was found damaged while it
// was sent: the state that it was taken of is still there.
func replaceSnapshot(g *Group, id string) {
	end, err := g.begin("replace a damaged snapshot")
	if err != nil {
		return
	}
	go func() {
		defer end()
		g.renewing.Lock()
		defer g.renewing.Unlock()
		g.log.Error("a snapshot is damaged, and another one takes its place", "snapshot", id)
		err := g.fsm.progress.haltedErr()
		if err == nil {
			err = g.freshSnapshot()
		}
		if err != nil {
			g.log.Warn("the damaged snapshot stays; it is tried again when it is sent again", "snapshot", id, "err", err)
			return
		}
		g.snaps.discard(id)
	}()
}

// TransferLeadership hands over to the most advanced other voter. Errors:
// ErrNoPeer, ErrNotLeader, ctx's; after ctx's it may still happen.
func (g *Group) TransferLeadership(ctx context.Context) error {
	return g.await(ctx, "transfer leadership", func() error {
		if countVoters(g.configuration()) < 2 {
			return ErrNoPeer
		}
		return g.raft.LeadershipTransfer().Error()
	})
}

// await runs f, which cannot be cancelled, and returns early when ctx ends.
// Close waits for f.
func (g *Group) await(ctx context.Context, op string, f func() error) error {
	end, err := g.begin(op)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer end()
		done <- f()
	}()
	select {
	case err := <-done:
		return raftErr(op, err)
	case <-ctx.Done():
		return fmt.Errorf("raftfsm %s: %w", op, ctx.Err())
	}
}

// Halted returns nil, or a *HaltError that says at which index and why.
func (g *Group) Halted() error { return g.fsm.progress.haltedErr() }

// HaltedCh is closed when the group halts. One that goes on has another one, see Resumer.
func (g *Group) HaltedCh() <-chan struct{} { return g.fsm.progress.haltedCh() }

// Close resolves what is under way, flushes the machine and the log, and stops
// the group. The transport is closed; the machine is not. It may be called again.
func (g *Group) Close() error {
	g.closeOnce.Do(func() {
		if err := g.close(); err != nil {
			g.closeErr = fmt.Errorf("raftfsm close %s: %w", g.opt.Dir, err)
		}
	})
	return g.closeErr
}

func (g *Group) close() error {
	g.mu.Lock()
	g.closed = true
	close(g.closing)
	g.mu.Unlock()
	g.ops.Wait()
	g.stopWork()
	g.work.Wait()
	g.proposer.close()
	hangUp(g.opt.Transport)
	err := raftErr("shutdown", g.raft.Shutdown().Error())
	if a, ok := g.opt.Transport.(*announcer); ok {
		a.sends.Wait()
	}
	if g.fsm.progress.haltedErr() == nil {
		err = errors.Join(err, guard(g.opt.Machine.Flush))
	}
	if serr := g.store.sync(); serr != nil {
		err = errors.Join(err, fmt.Errorf("sync raft log: %w", serr))
	}
	return errors.Join(err, g.release())
}

// release gives back what open took, in reverse order.
func (g *Group) release() error {
	var err error
	if g.raft == nil { // raft closes it otherwise
		if t, ok := g.opt.Transport.(raft.WithClose); ok {
			err = t.Close()
		}
	}
	if g.store != nil {
		err = errors.Join(err, g.store.close())
	}
	if g.lock != nil {
		err = errors.Join(err, g.lock.Unlock())
	}
	return err
}

// storeFailed implements logEvents.
func (g *Group) storeFailed(index uint64, err error) {
	if g.fsm != nil {
		_ = g.fsm.halt(index, err)
	}
}

// entryUnreadable implements logEvents.
func (g *Group) entryUnreadable(index uint64, err error) bool {
	if g.fsm == nil || !g.alone.Load() {
		return false
	}
	_ = g.fsm.halt(index, err)
	return true
}

// logGrew implements logEvents.
func (g *Group) logGrew(entries uint64, bytes int64) {
	if entries < g.opt.SnapshotThreshold && bytes < g.opt.SnapshotBytes {
		return
	}
	select {
	case g.grown <- struct{}{}:
	default:
	}
}
