package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/antithesishq/antithesis-sdk-go/assert"

	"mneme/internal/cluster"
	"mneme/internal/events"
	"mneme/internal/peer"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// leadWatch looks whether this node is fit to lead, and gives away what it leads where
// it is not and another node is: one whose disk is full, or whose state does not go on,
// at once, one that does not reach the log after a second. Where nobody is fit nothing
// changes: the log's servers elect, and that ends by itself; a full disk needs a person.
//
// And it draws the leadership of the log to the node that leads the shard, when they have
// been apart for a while: then what happens to one node stops writes once and not twice.
type leadWatch struct {
	self   string
	groups []ledGroup                                // that have a leader each; the first one is the shard's
	unfit  func() error                              // why this node should lead nothing; nil = it may
	reach  func(ctx context.Context) (string, error) // asks the log's leader for its name
	heir   func(ctx context.Context) string
	draw   func(ctx context.Context) error // lets this node's server lead the log; nil where it has none
	log    *slog.Logger

	failed int // looks in a row that did not reach the log
	apart  int // looks in a row that found the log led by another node
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
	drawAfter      = 10                     // so often in a row another node leads the log
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
	if w.groups[0].Leads() {
		if err := w.lookAtLog(ctx); err != nil && unfit == nil {
			unfit = err
		}
	} else {
		w.failed, w.apart = 0, 0
	}
	switch {
	case unfit != nil:
		w.giveAway(ctx, unfit)
	case w.apart >= drawAfter && w.draw != nil:
		w.apart = 0
		if err := within(ctx, handOverFor, w.draw); err != nil && ctx.Err() == nil {
			w.log.Info("the log is led by another node than the shard", "err", err)
		}
	}
}

// lookAtLog counts how often in a row the log was not reached, or was led elsewhere. It is
// an error that the log was not reached too often.
func (w *leadWatch) lookAtLog(ctx context.Context) error {
	var leader string
	err := within(ctx, logReach, func(ctx context.Context) (err error) {
		leader, err = w.reach(ctx)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		w.apart = 0
		if w.failed++; w.failed < logFails {
			return nil
		}
		w.failed = 0
		return fmt.Errorf("it does not reach the log: %w", err)
	}
	w.failed = 0
	if w.apart++; leader == w.self {
		w.apart = 0
	}
	return nil
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
		assert.Sometimes(err == nil, "a node gives away what another one is fitter to lead", nil)
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

// leading is what a node of several does about what it leads.
type leading struct{ n *Node }

// candidacy is the node's in the group of the shard.
func (s *served) candidacy() raftfsm.Candidacy {
	return raftfsm.Candidacy{Group: s.replica.Group().(*raftfsm.Group)}
}

func (l leading) keys() raftfsm.Candidacy { return raftfsm.Candidacy{Group: l.n.peers.keys.Raft()} }

// watch watches a shard, and with the first one the keys.
func (l leading) watch(ctx context.Context, s *served) {
	p := l.n.peers
	w := leadWatch{self: p.cluster.Self().Name, groups: []ledGroup{s.candidacy()}, unfit: s.unfit, reach: s.reach, heir: p.heir, log: l.n.cfg.Logger}
	if p.server() != "" {
		w.draw = s.draw
	}
	if s.id == shard0 {
		w.groups = append(w.groups, l.keys())
	}
	w.run(ctx)
}

// reach asks the log's leader for its name.
func (s *shard) reach(ctx context.Context) (string, error) {
	info, err := s.stream.Info(ctx)
	return info.Leader, err
}

// drawCall names the shard whose log is to be drawn to its leader.
type drawCall struct {
	Shard uint16 `json:"shard,omitempty"`
}

// drawn answers another node, which leads the log of a shard that this one leads.
func (l leading) drawn(ctx context.Context, _ peer.Identity, in drawCall) (none struct{}, err error) {
	if int(in.Shard) >= len(l.n.served) {
		return none, memory.Errorf(memory.CodeInvalid, "there is no shard %d", in.Shard)
	}
	return none, l.n.served[in.Shard].draw(ctx)
}

// draw lets this node's server lead the shard's log, between two terms of its writer.
func (s *served) draw(ctx context.Context) error {
	if !s.candidacy().Leads() {
		return nil
	}
	self := s.peers.cluster.Self().Name
	if leader, err := s.reach(ctx); err == nil && leader == self {
		return nil // who asks again and again ends no writer
	}
	switch last, current := s.nats.Holds(events.StreamName(s.id, s.stream.Ref().Epoch)); {
	case last == 0 && !current:
		return nil // it has no copy, as one of four nodes
	case !current:
		return errors.New("this node's copy of the log is not whole")
	}
	return s.replica.WithoutWriter(ctx, func() error { return s.stream.LeadBy(ctx, self) })
}

// handOver gives everything that this node leads to another one.
func (l leading) handOver(ctx context.Context, heir string) error {
	var errs []error
	for _, s := range l.n.served {
		errs = append(errs, s.handOver(ctx, heir))
	}
	if l.keys().Leads() {
		errs = append(errs, l.keys().TransferTo(ctx, heir))
	}
	return errors.Join(errs...)
}

// handOver gives the shard to another node, its log first: what was admitted is written
// before.
func (s *served) handOver(ctx context.Context, heir string) error {
	self := s.peers.cluster.Self().Name
	if s.candidacy().Leads() {
		return s.replica.WithoutWriter(ctx, func() error {
			err := within(ctx, logReach, func(ctx context.Context) error {
				leader, err := s.reach(ctx)
				if err == nil && leader == self {
					err = s.stream.LeadBy(ctx, heir)
				}
				return err
			})
			return errors.Join(err, s.candidacy().TransferTo(ctx, heir))
		})
	}
	if leader, err := s.reach(ctx); err != nil || leader != self {
		return nil
	}
	to, _, known := s.leader() // its writer is elsewhere
	if !known {
		return nil
	}
	return s.peers.reports.Call(ctx, to, callDraw, drawCall{s.id}, &struct{}{})
}

// retire hands over what this node leads before it closes, while it still takes requests:
// it forwards them. Where nobody is fit to lead, or nobody answers, the others elect.
func (n *Node) retire(ctx context.Context) {
	if n.peers == nil || n.peers.reports == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverFor)
	defer cancel()
	heir := n.peers.heir(ctx)
	if heir == "" {
		return
	}
	if err := (leading{n}).handOver(ctx, heir); err != nil {
		n.cfg.Logger.Warn("not everything was handed over before the end; the others elect", "to", heir, "err", err)
	}
}

// unfit says why the node should not lead the shard, as far as that lies on this machine.
func (s *served) unfit() error {
	if err := s.halted(); err != nil {
		return err
	}
	if directory := s.n.served[shard0]; s != directory {
		if err := directory.halted(); err != nil {
			return fmt.Errorf("shard 0, which lists the namespaces, has stopped on this node: %w", err)
		}
		if directory.lag.stays.Load() {
			return errDirectoryLags
		}
	}
	if full := s.noRoom(); full != nil {
		return full
	}
	if damaged := s.n.upkeep.copy.unfit(); damaged != nil {
		return damaged
	}
	if wrong := s.clock.Wrong(s.state.Cursor().SealedAt); wrong != nil {
		return wrong
	}
	if s.peers.drained.Load() {
		return errDrained
	}
	return nil
}

// eligible says why the node should not be handed a leadership, as far as that lies on
// this machine.
func (l leading) eligible() error {
	for _, s := range l.n.served {
		if err := s.unfit(); err != nil {
			return err
		}
	}
	if !l.n.space.ample() {
		return errors.New("its disk is almost full")
	}
	return nil
}

// fit is what a node answers that is asked whether it could lead.
func (l leading) fit(ctx context.Context, _ peer.Identity, _ struct{}) (bool, error) {
	if l.n.draining.Load() || l.eligible() != nil {
		return false, nil
	}
	return within(ctx, logReach, func(ctx context.Context) error {
		for _, s := range l.n.served {
			if _, err := s.reach(ctx); err != nil {
				return err
			}
		}
		return nil
	}) == nil, nil
}

// heir is another node that could lead, "" if none is known.
func (p *peers) heir(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	members := p.cluster.Facts().Members
	answers := make(chan string, len(members))
	for _, m := range members {
		go func(m cluster.Member) {
			if m.Name == p.cluster.Self().Name || !p.fit(ctx, m) {
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
