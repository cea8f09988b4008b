package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
)

// logWatch looks whether the node that leads the shard reaches the log. One that does
// not, for a second, hands the leadership over to another node, if another one does:
// where nobody reaches the log its servers elect, and that ends by itself.
type logWatch struct {
	leads    func() bool
	reach    func(ctx context.Context) error // asks the log's leader
	others   func(ctx context.Context) bool  // another node reaches it
	handOver func(ctx context.Context) error
	log      *slog.Logger

	failed int // looks in a row
}

const (
	logWatchEvery = 500 * time.Millisecond
	logWatchReach = 750 * time.Millisecond // for the answer of a log that is well
	logWatchFails = 2                      // so often in a row the log is not reached
)

func (w *logWatch) run(ctx context.Context) {
	tick := time.NewTicker(logWatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (w *logWatch) look(ctx context.Context) {
	if !w.leads() {
		w.failed = 0
		return
	}
	err := within(ctx, logWatchReach, w.reach)
	if err == nil || ctx.Err() != nil {
		w.failed = 0
		return
	}
	if w.failed++; w.failed < logWatchFails || !w.others(ctx) {
		return
	}
	w.failed = 0
	w.log.Warn("this node leads and does not reach the log, which another node does: the leadership is handed over", "err", err)
	err = within(ctx, handOverFor, w.handOver)
	if err != nil && !errors.Is(err, raftfsm.ErrNotLeader) && ctx.Err() == nil {
		w.log.Warn("the leadership was not handed over", "err", err)
	}
}

func within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}

// watchLogOfPeers is the logWatch of a node of several.
func (n *Node) watchLogOfPeers(ctx context.Context) {
	reach := func(ctx context.Context) error { _, err := n.stream.Info(ctx); return err }
	w := logWatch{leads: n.replica.Leads, reach: reach, others: n.peers.reachLog, handOver: n.replica.Group().TransferLeadership, log: n.cfg.Logger}
	w.run(ctx)
}

// answersLog is what a node answers that is asked whether it reaches the log.
func (c *core) answersLog(ctx context.Context, _ peer.Identity, _ struct{}) (bool, error) {
	err := within(ctx, logWatchReach, func(ctx context.Context) error { _, err := c.stream.Info(ctx); return err })
	return err == nil, nil
}

// reachLog reports whether another node reaches the log.
func (p *peers) reachLog(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	members := p.cluster.Facts().Members
	found := make(chan bool, len(members))
	for _, m := range members {
		go func(m cluster.Member) {
			var reached bool
			err := errors.New("itself")
			if m.Name != p.cluster.Self().Name {
				err = p.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, "reach log", struct{}{}, &reached)
			}
			found <- err == nil && reached
		}(m)
	}
	any := false
	for range members {
		any = <-found || any
	}
	return any
}
