package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
)

// leadWatch looks whether this node is fit to lead, and gives away what it leads where
// it is not and another node is: one whose disk is full, or whose state does not go on,
// at once, one that does not reach the log after a second. Where nobody is fit nothing
// changes: the log's servers elect, and that ends by itself; a full disk needs a person.
type leadWatch struct {
	groups []ledGroup                      // that have a leader each; the first one is the shard's
	unfit  func() error                    // why this node should lead nothing; nil = it may
	reach  func(ctx context.Context) error // asks the log's leader
	heir   func(ctx context.Context) string
	log    *slog.Logger

	failed int // looks in a row that did not reach the log
}

// ledGroup is a Raft group as leadWatch sees it.
type ledGroup interface {
	Leads() bool
	TransferTo(ctx context.Context, id string) error
}

const (
	leadWatchEvery = 500 * time.Millisecond
	logReach       = 750 * time.Millisecond // for the answer of a log that is well
	logFails       = 2                      // so often in a row the log is not reached
)

func (w *leadWatch) run(ctx context.Context) {
	tick := time.NewTicker(leadWatchEvery)
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

func (w *leadWatch) look(ctx context.Context) {
	unfit := w.unfit()
	if !w.groups[0].Leads() {
		w.failed = 0
	} else if err := within(ctx, logReach, w.reach); err == nil || ctx.Err() != nil {
		w.failed = 0
	} else if w.failed++; w.failed >= logFails && unfit == nil {
		unfit, w.failed = fmt.Errorf("it does not reach the log: %w", err), 0
	}
	if unfit != nil {
		w.giveAway(ctx, unfit)
	}
}

// giveAway hands over what this node leads to one that is fit, if there is one.
func (w *leadWatch) giveAway(ctx context.Context, why error) {
	var heir string
	for _, g := range w.groups {
		if !g.Leads() {
			continue
		}
		if heir == "" {
			if heir = w.heir(ctx); heir == "" {
				return
			}
			w.log.Warn("this node leads and another one is fitter to: the leadership is handed over", "to", heir, "why", why)
		}
		err := within(ctx, handOverFor, func(ctx context.Context) error { return g.TransferTo(ctx, heir) })
		if err != nil && !errors.Is(err, raftfsm.ErrNotLeader) && ctx.Err() == nil {
			w.log.Warn("the leadership was not handed over", "err", err)
		}
	}
}

func within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}

// leading says of a node of several whether it is fit to lead.
type leading struct{ n *Node }

func (l leading) watch(ctx context.Context) {
	p := l.n.peers
	w := leadWatch{groups: []ledGroup{raftfsm.Candidacy{Group: l.n.replica.Group().(*raftfsm.Group)}, raftfsm.Candidacy{Group: p.keys.Raft()}},
		unfit: l.unfit, reach: l.reach, heir: p.heir, log: l.n.cfg.Logger}
	w.run(ctx)
}

func (l leading) reach(ctx context.Context) error {
	_, err := l.n.stream.Info(ctx)
	return err
}

// unfit says why the node should not lead, as far as that lies on this machine.
func (l leading) unfit() error {
	if err := l.n.replica.Group().Halted(); err != nil {
		return err
	}
	if full := l.n.noRoom(); full != nil {
		return full
	}
	return nil
}

// fit is what a node answers that is asked whether it could lead.
func (l leading) fit(ctx context.Context, _ peer.Identity, _ struct{}) (bool, error) {
	if l.unfit() != nil || !l.n.space.ample() {
		return false, nil
	}
	return within(ctx, logReach, l.reach) == nil, nil
}

// heir is another node that could lead, "" if none is known.
func (p *peers) heir(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	members := p.cluster.Facts().Members
	answers := make(chan string, len(members))
	for _, m := range members {
		go func(m cluster.Member) {
			var fit bool
			if m.Name == p.cluster.Self().Name {
				answers <- ""
			} else if err := p.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, "fit to lead", struct{}{}, &fit); err != nil || !fit {
				answers <- ""
			} else {
				answers <- m.Name
			}
		}(m)
	}
	for range members {
		if name := <-answers; name != "" {
			return name
		}
	}
	return ""
}
