package node

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
)

// A node learns from the others whether a replica of its own stays behind. Two things are
// decided by that. An event that no node can apply stops a shard on all of them: none is
// fitter than another to lead it, and that is no reason to lead nothing else. And the leader
// of a shard asks this node's copy of the directory which namespaces there are: where that
// copy stays behind those of other nodes, one of them had better lead.

const (
	lagEvery = time.Second
	// lagFor is how long a replica may take to come to where another one was, before it
	// counts as staying behind.
	lagFor = 5 * time.Second
)

var errDirectoryLags = errors.New("its copy of shard 0, which lists the namespaces, stays behind those of other nodes")

// lag says whether a replica stays behind those of other nodes. The zero value says no.
type lag struct {
	stays  atomic.Bool // for lagFor it has not come to where another one was
	passed atomic.Bool // it has stopped at an entry that another one has applied

	mu       sync.Mutex
	target   uint64 // where another one was
	since    time.Time
	patience time.Duration // 0 = lagFor; longer only in tests that want a replica that stays behind
}

// look compares the index that the replica has applied with the furthest one of the others;
// stopped is the index at which it has stopped, 0 if it goes on.
func (l *lag) look(own, stopped, others uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed.Store(stopped != 0 && others >= stopped)
	if own >= l.target {
		l.target, l.since = others, now
		l.stays.Store(false)
	} else if now.Sub(l.since) >= cmp.Or(l.patience, lagFor) {
		l.stays.Store(true)
	}
}

// lags are those of the replicas of a node.
type lags struct{ n *Node }

// watch looks at every replica of this node until ctx ends.
func (l lags) watch(ctx context.Context) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (l lags) look(ctx context.Context) {
	n := l.n
	poison := false
	for _, s := range n.served {
		poison = poison || s.replica.Poison() != nil
	}
	if len(n.served) == 1 && !poison {
		return // nothing depends on it
	}
	others := l.furthest(ctx)
	now := time.Now()
	for i, s := range n.served {
		var stopped uint64
		if halted := (*raftfsm.HaltError)(nil); errors.As(s.replica.Group().Halted(), &halted) {
			stopped = halted.Index
		}
		s.lag.look(s.replica.Group().Stats().AppliedIndex, stopped, others[i], now)
	}
}

// applied answers another node: the index of Raft's log up to which each of its replicas has
// come, 0 for one that has stopped.
func (l lags) applied(context.Context, peer.Identity, struct{}) ([]uint64, error) {
	out := make([]uint64, len(l.n.served))
	for i, s := range l.n.served {
		if s.replica.Group().Halted() == nil {
			out[i] = s.replica.Group().Stats().AppliedIndex
		}
	}
	return out, nil
}

// furthest is for each shard the highest index that another node says it has applied.
func (l lags) furthest(ctx context.Context) []uint64 {
	n := l.n
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	out := make([]uint64, len(n.served))
	var mu sync.Mutex
	var asking sync.WaitGroup
	ask := func(m cluster.Member) {
		var there []uint64
		if err := n.peers.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, callApplied, struct{}{}, &there); err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range min(len(out), len(there)) {
			out[i] = max(out[i], there[i])
		}
	}
	for _, m := range n.peers.cluster.Facts().Members {
		if m.Name != n.dir.name() {
			asking.Go(func() { ask(m) })
		}
	}
	asking.Wait()
	return out
}

// halted says why the shard has stopped here, where another node may go on with it. What
// stops at an event that no other node is known to have applied is nil.
func (s *served) halted() error {
	err := s.replica.Group().Halted()
	if err != nil && s.replica.Poison() != nil && !s.lag.passed.Load() {
		return nil
	}
	return err
}
