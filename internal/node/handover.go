package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

const (
	// transferFor bounds what an operator asks for: the leadership moves in a fraction of
	// it, unless who is to lead has to catch up first.
	transferFor   = 5 * time.Second
	transferEvery = 20 * time.Millisecond
	// farBehind is how many entries a node may lack that is to lead: Raft sends it those
	// before it hands over.
	farBehind = 1000
)

// errDrained is why a drained node leads nothing.
var errDrained = errors.New("it is drained")

// TransferLead has a node lead the shards, the keys, and the logs: each node that leads one
// of them hands it over. A log may follow a few seconds later, see leadWatch.
func (o *operator) TransferLead(ctx context.Context, req memory.TransferLead) (memory.LeadTransfer, error) {
	if o.n.peers == nil {
		return memory.LeadTransfer{}, memory.Errorf(memory.CodeInvalid, "this node is on its own: there is no other node that could lead")
	}
	to, err := o.n.peers.cluster.Named(req.Node)
	if err != nil {
		return memory.LeadTransfer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferFor)
	defer cancel()
	out := memory.LeadTransfer{Leader: to.ID}
	why := memory.Errorf(memory.CodeUnavailable, "nobody is known to lead").WithHint("memctl cluster status shows which nodes answer; ask again when most of them do")
	for {
		leaders := o.n.leaders()
		if !slices.ContainsFunc(leaders, func(name string) bool { return name != to.Name }) {
			return out, nil
		}
		for _, name := range leaders {
			if name == "" || name == to.Name {
				continue
			}
			out.Moved = true
			from, err := o.n.peers.cluster.Named(name)
			switch {
			case err != nil:
			case name == o.n.dir.name():
				_, err = leading{o.n}.giveTo(ctx, peer.Identity{}, to.Name)
			default:
				err = o.ask(ctx, from, callGiveTo, to.Name, nil)
			}
			if err != nil && ctx.Err() == nil {
				if why = memory.AsError(err); why.Code != memory.CodeUnavailable {
					return memory.LeadTransfer{}, err
				}
			}
		}
		select {
		case <-time.After(transferEvery):
		case <-ctx.Done():
			return memory.LeadTransfer{}, why
		}
	}
}

// leaders are the names of the nodes that lead a shard or the keys, each once; "" is
// among them where nobody is known to lead one.
func (n *Node) leaders() []string {
	keys, _ := n.peers.keys.Leader()
	out := []string{keys}
	for _, s := range n.served {
		name, _ := s.replica.Group().Leader()
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// DrainNode has a node give up what it leads, and lead nothing from then on, or undoes that.
func (o *operator) DrainNode(ctx context.Context, req memory.DrainNode) (out memory.NodeDrain, err error) {
	if o.n.peers == nil {
		return out, memory.Errorf(memory.CodeInvalid, "this node is on its own: there is no other node that could lead")
	}
	if req.Node == "" {
		req.Node = o.n.dir.name()
	}
	m, err := o.n.peers.cluster.Named(req.Node)
	if err != nil {
		return out, err
	}
	if m.Name == o.n.dir.name() {
		return leading{o.n}.drain(ctx, peer.Identity{}, req.Undo)
	}
	err = o.ask(ctx, m, callDrain, req.Undo, &out)
	return out, err
}

// ask calls a method of another node. Errors: *memory.Error.
func (o *operator) ask(ctx context.Context, m cluster.Member, method string, in, out any) error {
	err := o.n.peers.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, method, in, out)
	if errors.Is(err, rpc.ErrNotReached) || errors.Is(err, rpc.ErrNoAnswer) {
		return memory.Errorf(memory.CodeUnavailable, "the node %s does not answer", m.ID).WithHint("memctl cluster status shows which nodes do").WithCause(err)
	}
	return err
}

// giveTo hands over what this node leads to a node that is fit to lead.
func (l leading) giveTo(ctx context.Context, _ peer.Identity, to string) (struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, transferFor)
	defer cancel()
	if err := l.mayLead(ctx, to); err != nil {
		return struct{}{}, err
	}
	if err := l.handOver(ctx, to); err != nil {
		return struct{}{}, memory.Errorf(memory.CodeUnavailable, "%s did not hand over everything: %v", l.n.dir.node.NodeID, err).
			WithHint("memctl cluster status shows who leads; ask again").WithCause(err)
	}
	return struct{}{}, nil
}

// mayLead says why another node should not lead now: with CodeConflict where a person has
// to do something about it, with CodeUnavailable where that may pass.
func (l leading) mayLead(ctx context.Context, to string) error {
	o := l.n.operator
	m, err := o.n.peers.cluster.Named(to)
	if err != nil {
		return err
	}
	groups := []*raftfsm.Group{l.keys().Group}
	for _, s := range l.n.served {
		groups = append(groups, s.candidacy().Group)
	}
	for _, g := range groups {
		replicas, _ := g.Members()
		if !slices.ContainsFunc(replicas, func(r raftfsm.Member) bool { return r.ID == to && r.Voter }) {
			return memory.Errorf(memory.CodeConflict, "the node %s has no vote yet", m.ID).WithHint("ask again when memctl cluster status shows it as a voter")
		}
	}
	r := o.reports(ctx, []cluster.Member{m})[0]
	var fit bool
	lacks := l.missingAt(r)
	switch {
	case r.Node.ID == "":
		return memory.Errorf(memory.CodeConflict, "the node %s does not answer", m.ID).WithHint("start it, or choose another one: memctl cluster status shows which nodes answer")
	case r.Drained:
		return memory.Errorf(memory.CodeConflict, "the node %s is drained", m.ID).WithHint("memctl cluster drain %s --undo", m.ID)
	case r.Unfit != "":
		return memory.Errorf(memory.CodeConflict, "the node %s cannot lead: %s", m.ID, r.Unfit).WithHint("mend that first, or choose another node")
	case lacks > farBehind:
		return memory.Errorf(memory.CodeUnavailable, "the node %s is %d entries behind", m.ID, lacks).WithHint("ask again when memctl cluster status shows it up to date")
	}
	if err := o.ask(ctx, m, callFit, struct{}{}, &fit); err != nil {
		return err
	}
	if !fit {
		return memory.Errorf(memory.CodeUnavailable, "the node %s does not reach the log", m.ID).WithHint("ask again when it does, or choose another node")
	}
	return nil
}

// missingAt is how many entries of Raft's logs another node lacks that this one has applied,
// of the shard of which it lacks most.
func (l leading) missingAt(r nodeReport) (most uint64) {
	for _, s := range l.n.served {
		here, there := s.replica.Group().Stats().AppliedIndex, r.of(s.id).Applied
		most = max(most, here-min(here, there))
	}
	return most
}

// drain has this node lead nothing until undo, or its next start. It is refused where no
// other node is fit to lead.
func (l leading) drain(ctx context.Context, _ peer.Identity, undo bool) (memory.NodeDrain, error) {
	p, o := l.n.peers, l.n.operator
	out := memory.NodeDrain{Node: l.n.dir.node.NodeID, Drained: !undo}
	if undo {
		p.drained.Store(false)
		out.Leader = o.leader(l.n.directory())
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, transferFor)
	defer cancel()
	before := p.drained.Swap(true) // from now on nobody hands over to this node
	for {
		heir := p.heir(ctx)
		if heir == "" && ctx.Err() == nil {
			p.drained.Store(before)
			return memory.NodeDrain{}, memory.Errorf(memory.CodeConflict, "no other node is fit to lead: without %s nobody could", out.Node).
				WithHint("memctl cluster status shows which nodes answer and which are drained; memctl cluster drain NODE --undo takes one back")
		}
		err := l.handOver(ctx, heir)
		if leaders := l.n.leaders(); !slices.Contains(leaders, "") && !slices.Contains(leaders, l.n.dir.name()) {
			out.Leader = o.leader(l.n.directory())
			return out, nil
		}
		select {
		case <-time.After(transferEvery):
		case <-ctx.Done():
			p.drained.Store(before)
			return memory.NodeDrain{}, memory.Errorf(memory.CodeUnavailable, "%s did not hand over everything and is not drained", out.Node).
				WithHint("memctl cluster status shows which nodes answer; ask again").WithCause(err)
		}
	}
}
