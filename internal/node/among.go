package node

import (
	"context"
	"errors"
	"strings"

	"mneme/internal/cluster"
	"mneme/internal/ingest"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/internal/route"
	"mneme/internal/storage"
	"mneme/memory"
)

// share makes the shard's replica one of several.
func (s *shard) share(opt *replica.Options) error {
	p := s.peers
	if p == nil {
		return nil
	}
	if err := p.mayOpen(s.group(), opt.Dir); err != nil {
		return err
	}
	transport, err := p.transport(s.group())
	if err != nil {
		return err
	}
	opt.ID, opt.Transport = p.cluster.Self().Name, transport
	if !p.founds() {
		return nil
	}
	if opt.OpenGroup == nil {
		opt.OpenGroup = func(o raftfsm.Options) (replica.Group, error) { return raftfsm.Open(o) }
	}
	open := opt.OpenGroup
	opt.OpenGroup = func(o raftfsm.Options) (replica.Group, error) {
		o.Bootstrap, o.TermFloor = true, max(o.TermFloor, p.cluster.Facts().TermFloor)
		return open(o)
	}
	return nil
}

// beginAmong lets the shards of a node of several follow, and waits until it has what was
// acknowledged before its start.
func (n *Node) beginAmong(ctx, run context.Context) error {
	p := n.peers
	n.clock.Among()
	n.wg.Go(func() { n.compareClocks(run) })
	for _, s := range n.served {
		if err := s.start(ctx); err != nil {
			return err
		}
		p.cluster.Serve(s.group(), s.replica.Group().(*raftfsm.Group))
	}
	if err := p.cluster.Begun(); err != nil {
		return clusterError(err)
	}
	cluster.Witness{Cluster: p.cluster}.ServeReplacing(n.nats.RemoveServer)
	n.wg.Go(func() { lags{n}.watch(run) })
	var diverged error
	for _, s := range n.served {
		n.wg.Go(func() { leading{n}.watch(run, s) })
		switch err := s.follow(ctx, run); {
		case memory.CodeOf(err) == memory.CodeLogDiverged: // reads go on, and a person decides
			diverged = err
		case err != nil:
			return err
		}
	}
	if diverged != nil {
		n.cfg.Logger.Error("the log is not whole: the cluster serves reads and takes no writes", "err", diverged, "hint", memory.AsError(diverged).Hint)
		return nil
	}
	if len(n.served) > 1 {
		n.wg.Go(func() { leading{n}.balance(run) })
	}
	var other error
	err := p.until(ctx, "a leader that makes the first namespaces", func(ctx context.Context) error {
		err := n.firstNamespaces(ctx)
		switch memory.CodeOf(err) {
		case memory.CodeUnavailable, memory.CodeOutcomeUnknown, memory.CodeTimeout: // the leadership goes elsewhere
			return err
		}
		other = err
		return nil
	})
	return errors.Join(err, other)
}

// follow joins the shard's group and waits until this node has what was acknowledged
// before its start. Errors: with code log_diverged, where the log is not whole; the shard
// is served then.
func (s *served) follow(ctx, run context.Context) error {
	n, p := s.n, s.peers
	failed := make(chan error, 1)
	n.wg.Go(func() {
		if err := p.cluster.JoinGroup(run, s.group()); err != nil && run.Err() == nil {
			failed <- clusterError(err)
			n.end(clusterError(err))
		}
	})
	var diverged error
	err := p.until(ctx, "the shard's leader", func(ctx context.Context) error {
		select {
		case err := <-failed:
			failed <- err
			return nil
		default:
		}
		if halted := s.replica.Group().Halted(); storage.IsCorrupt(halted) { // the next attempt builds the state again
			failed <- halted
			return nil
		}
		// One that was away while an event was put in quarantine, and applied it, stops at the
		// command: the next attempt builds its state, too.
		unmended := (mender{s}).look(ctx)
		if errors.Is(unmended, ErrRestart) {
			failed <- unmended
			return nil
		}
		err := s.router.Linear(ctx)
		if err != nil && s.stoppedEverywhere(ctx) {
			n.cfg.Logger.Error("the shard has stopped, and goes on for reads as it stands", "shard", s.id, "err", s.replica.Group().Halted())
			return nil
		}
		if memory.CodeOf(err) == memory.CodeLogDiverged {
			diverged, err = err, nil
		}
		if err != nil {
			return errors.Join(err, unmended)
		}
		return nil
	})
	select {
	case err := <-failed:
		return err
	default:
	}
	if err != nil {
		return err
	}
	n.wg.Go(func() { mender{s}.run(run) })
	if err := s.checkKeys(s.state); err != nil {
		return err
	}
	return diverged
}

// openRouters let this node's writes go to the nodes that lead, and take those of the
// others where it does.
func (n *Node) openRouters(context.Context) error {
	for _, s := range n.served {
		if err := s.openRouter(); err != nil {
			return err
		}
	}
	n.changes = n.served[shard0].changes
	if len(n.served) > 1 {
		n.changes = spread{n}
	}
	if n.peers == nil {
		return nil
	}
	return n.openReports()
}

// openRouter lets this node's writes to the shard go to the one that leads it, and takes
// those of the others when it does.
func (s *served) openRouter() error {
	p := s.peers
	here := local{s.writes, s}
	if p == nil {
		s.changes = here
		return nil
	}
	service := route.ServiceOf(s.id)
	clients := route.NewClients(p.port, s.id)
	s.onClose("forwarded calls", func(context.Context) error { clients.Close(); return nil })
	opt := route.Options{Local: here, Clients: clients, Logger: s.log, Traces: s.cfg.recorder(),
		Open:      func() error { _, err := s.writes.writer(); return err },
		Unwritten: func(err error) bool { return errors.Is(err, ingest.ErrUnconfirmed) },
		Leader:    s.leader, Wait: s.replica.AwaitLeader,
		Stands: s.stands,
		Position: func(ctx context.Context) (string, error) {
			if err := s.replica.Linear(ctx); err != nil {
				return "", err
			}
			return s.stands(), nil
		},
		Reach: s.views.Reach,
	}
	s.router = route.New(opt)
	s.changes = s.router
	server, err := rpc.ServeLarge(p.port, service, route.Methods(opt), s.log)
	if err != nil {
		return err
	}
	s.onClose("calls of other nodes", server.Close)
	return nil
}

// leader is the node that leads the shard.
func (s *shard) leader() (to rpc.Target, self, known bool) {
	id, addr := s.replica.Group().Leader()
	_, hostport, known := strings.Cut(addr, "@") // raftfsm.Address
	return rpc.Target{Addr: hostport, Node: id}, id == s.peers.cluster.Self().Name, known && id != ""
}

// local is what is carried out on this node, for one shard.
type local struct {
	*writes
	of *served
}

// AcceptClock has writing go on with the clock as it stands, unless that is behind
// the last event.
func (l local) AcceptClock(context.Context) (memory.ClockReport, error) {
	w, err := l.of.replica.Writer()
	if err != nil {
		return memory.ClockReport{}, err
	}
	if err := w.AcceptClock(); err != nil {
		return memory.ClockReport{}, err
	}
	now := l.of.cfg.Now().UTC()
	l.of.log.Warn("an operator accepted the clock", "now", now)
	return memory.ClockReport{Now: now}, nil
}
