package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// nodeService is the service of the peer port at which a node says how it is.
const nodeService = "node"

// What it answers to.
const (
	callReport = "report"
	callFit    = "fit to lead"
	callDraw   = "lead the log too"
	callGiveTo = "hand over"
	callDrain  = "drain"
	callCease  = "take captures no more"

	callQuarantine = "put in quarantine"
	callClock      = "clock"
	callApplied    = "applied"
	callRaise      = "raise level"
	callCheckCopy  = "check your copy of the log"
)

// statusWait bounds how long another node is waited for.
const statusWait = time.Second

// nodeReport is what a node says of itself to another one.
type nodeReport struct {
	Node    memory.NodeStatus `json:"node"`
	Shards  []shardReport     `json:"shards"` // by number
	Drained bool              `json:"drained,omitempty"`
	// Copy is its own copy of the log.
	Copy copyReport `json:"copy,omitzero"`
	// Level is the highest feature level of the log that its program knows.
	Level uint16 `json:"level,omitempty"`
	// Unfit is why it should lead nothing, as far as that lies on its machine.
	Unfit string `json:"unfit,omitempty"`
}

// shardReport is what a node says of its replica of one shard.
type shardReport struct {
	Replica memory.ClusterReplica `json:"replica"`
	// Applied is the index of Raft's log up to which the replica has come.
	Applied uint64 `json:"applied,omitempty"`
	Halted  bool   `json:"halted,omitempty"`
	// Poison is the position of the event at which it has stopped.
	Poison string `json:"poison,omitempty"`
	// Stopped is why the shard takes no writes, where this node leads it.
	Stopped *memory.WritesStopped `json:"stopped,omitempty"`
	// Repair is how far it is with writing the log from its state.
	Repair *memory.Progress `json:"repair,omitempty"`
}

// of is what it says of a shard; a zero value where it says nothing.
func (r *nodeReport) of(shard uint16) shardReport {
	if int(shard) < len(r.Shards) {
		return r.Shards[shard]
	}
	return shardReport{}
}

// openReports lets this node ask the others how they are, and answers them.
func (n *Node) openReports() error {
	p := n.peers
	p.reports = rpc.NewClient(p.port, nodeService)
	n.onClose("questions to other nodes", func(context.Context) error { p.reports.Close(); return nil })
	server, err := rpc.Serve(p.port, nodeService, map[string]rpc.Method{
		callReport: rpc.Handle(func(context.Context, peer.Identity, struct{}) (nodeReport, error) { return n.operator.report(), nil }),
		callFit:    rpc.Handle(leading{n}.fit),
		callDraw:   rpc.Handle(leading{n}.drawn),
		callGiveTo: rpc.Handle(leading{n}.giveTo),
		callDrain:  rpc.Handle(leading{n}.drain),

		callQuarantine: rpc.Handle(n.operator.quarantineHere),
		callRaise:      rpc.Handle(n.operator.raiseHere),
		callCheckCopy:  rpc.Handle(n.upkeep.copy.asked),

		callCease:   rpc.Handle(p.taking.cease),
		callApplied: rpc.Handle(lags{n}.applied),
		callClock: rpc.Handle(func(context.Context, peer.Identity, struct{}) (ingest.ClockReading, error) {
			return n.clock.Reading(), nil
		}),
	}, n.cfg.Logger)
	if err != nil {
		return err
	}
	n.onClose("answers to other nodes", server.Close)
	return nil
}

func (o *operator) report() nodeReport {
	out := nodeReport{Node: o.here(), Level: events.FeatureLevel, Copy: o.n.upkeep.copy.report()}
	for _, s := range o.n.served {
		out.Shards = append(out.Shards, s.report())
	}
	if o.n.peers != nil {
		out.Drained = o.n.peers.drained.Load()
		if err := (leading{o.n}).eligible(); err != nil {
			out.Unfit = err.Error()
		}
	}
	return out
}

func (s *served) report() shardReport {
	v := s.state.View()
	defer v.Close()
	at := v.Cursor()
	r := memory.ClusterReplica{Node: s.dir.node.NodeID, Position: at.Position().String(), StateHash: v.Hash().String()}
	r.Log.Last, r.Log.Current = s.nats.Holds(events.StreamName(s.id, at.Epoch))
	if st := s.n.upkeep.copy.Status(); st != nil {
		r.Log.CheckedAt, r.Log.Damage = st.CheckedAt, st.Damage
	}
	group := s.replica.Group()
	out := shardReport{Replica: r, Applied: group.Stats().AppliedIndex, Stopped: s.stopped(), Repair: s.copying.Load()}
	if halted := group.Halted(); halted != nil {
		out.Halted, out.Replica.Halted = true, halted.Error()
	}
	if poison := s.replica.Poison(); poison != nil {
		out.Poison = poison.At.String()
	}
	return out
}

// here is this node among the cluster's.
func (o *operator) here() memory.NodeStatus {
	return memory.NodeStatus{ID: o.n.dir.node.NodeID, Role: o.role(), Address: o.n.HTTPAddr(), Version: o.n.cfg.Version}
}

// leader is the id of the node that leads a shard, "" if none is known.
func (o *operator) leader(s *shard) string {
	name, _ := s.replica.Group().Leader()
	if o.n.peers == nil || name == "" {
		return name
	}
	for _, m := range o.n.peers.cluster.Facts().Members {
		if m.Name == name {
			return m.ID
		}
	}
	return name
}

// everywhere asks all nodes of the cluster. One that does not answer has no version, and an
// empty report.
func (o *operator) everywhere(ctx context.Context) ([]memory.NodeStatus, []nodeReport) {
	if o.n.peers == nil {
		return []memory.NodeStatus{o.here()}, []nodeReport{o.report()}
	}
	members := o.n.peers.cluster.Facts().Members
	out, reports, voting := make([]memory.NodeStatus, len(members)), o.reports(ctx, members), voters(o.n)
	for i, r := range reports {
		out[i] = r.Node
		if r.Node.ID == "" {
			out[i] = memory.NodeStatus{ID: members[i].ID, Role: memory.RoleUnreachable, Address: members[i].Peer}
		}
		out[i].Name, out[i].Learner = members[i].Name, !slices.Contains(voting, members[i])
	}
	return out, reports
}

// reports asks members how they are, all at once; zero values are of those that do not
// answer in time.
func (o *operator) reports(ctx context.Context, members []cluster.Member) []nodeReport {
	reports, _ := o.reportsWithin(ctx, statusWait, members)
	return reports
}

// reportsWithin is reports with another limit, and with why there is none of a node.
func (o *operator) reportsWithin(ctx context.Context, limit time.Duration, members []cluster.Member) ([]nodeReport, []error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, errs := make([]nodeReport, len(members)), make([]error, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		if m.Name == o.n.dir.name() {
			out[i] = o.report()
			continue
		}
		asking.Go(func() {
			var r nodeReport
			if errs[i] = o.n.peers.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, callReport, struct{}{}, &r); errs[i] == nil {
				out[i] = r
			}
		})
	}
	asking.Wait()
	return out, errs
}

// look asks the nodes of the cluster whether they answer, and these members how they are,
// all at once. A node that answers and does not say how it is has a reason, too.
func (o *operator) look(ctx context.Context, members []cluster.Member) ([]cluster.NodeStatus, []nodeReport) {
	var nodes []cluster.NodeStatus
	var asking sync.WaitGroup
	asking.Go(func() { nodes = o.n.peers.cluster.Status(ctx) })
	reports, errs := o.reportsWithin(ctx, cluster.StatusWait, members)
	asking.Wait()
	for i := range nodes {
		at := slices.IndexFunc(members, func(m cluster.Member) bool { return m.Name == nodes[i].Name })
		if at < 0 || !nodes[i].Reachable {
			continue
		}
		err := errs[at]
		if err == nil {
			continue
		}
		nodes[i].Why, nodes[i].Runs = "does not say how it is", true
		if why, kind := cluster.Explain(err); kind == cluster.KindCertificates { // it answers over a connection from before
			nodes[i].Why, nodes[i].Kind = why, kind
		} else if errors.Is(err, peer.ErrNoService) {
			nodes[i].Why = "is not ready yet"
		}
	}
	return nodes, reports
}

// Cluster describes the nodes and replicas of the cluster; a node on its own is one.
func (o *operator) Cluster(ctx context.Context) (memory.ClusterStatus, error) {
	out := memory.ClusterStatus{ClusterID: o.n.dir.node.ClusterID, Nodes: []memory.ClusterNode{}, Shards: []memory.ClusterShard{}}
	reports := []nodeReport{}
	if p := o.n.peers; p == nil {
		out.Nodes = append(out.Nodes, memory.ClusterNode{ID: o.n.dir.node.NodeID, Role: memory.RoleVoter, Reachable: true})
		reports = append(reports, o.report())
	} else {
		members := p.cluster.Facts().Members
		var nodes []cluster.NodeStatus
		nodes, reports = o.look(ctx, members)
		for _, s := range nodes {
			at := slices.IndexFunc(members, func(m cluster.Member) bool { return m.Name == s.Name })
			out.Nodes = append(out.Nodes, memory.ClusterNode{ID: s.ID, Name: s.Name, Address: s.Address, Role: s.Role, Reachable: s.Reachable, Why: s.Why,
				Drained: at >= 0 && reports[at].Drained})
		}
	}
	asking, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	for _, s := range o.n.served {
		out.Shards = append(out.Shards, memory.ClusterShard{ID: int(s.id), Leader: o.leader(s.shard), Term: s.replica.Group().Term(), Copies: replication{s}.logCopies(asking, reports), Replicas: behind(reports, s.id),
			WritesStopped: o.stopped(s, reports)})
	}
	return out, nil
}

// RemoveNode takes another node out of the cluster for ever.
func (o *operator) RemoveNode(ctx context.Context, req memory.RemoveNode) (memory.NodeRemoval, error) {
	if o.n.peers == nil {
		return memory.NodeRemoval{}, memory.Errorf(memory.CodeInvalid, "this node is on its own: there is no cluster to remove a node from")
	}
	names, err := o.n.peers.cluster.Remove(ctx, req.Node, req.Force, o.n.nats.RemoveServer)
	return memory.NodeRemoval{Removed: names}, err
}

// behind compares the replicas of a shard with the one that has most.
func behind(reports []nodeReport, shard uint16) []memory.ClusterReplica {
	out := []memory.ClusterReplica{}
	var most uint64
	seqs := make([]uint64, 0, len(reports))
	for _, r := range reports {
		replica := r.of(shard).Replica
		at, err := events.ParsePosition(replica.Position)
		if err != nil {
			continue
		}
		out, seqs = append(out, replica), append(seqs, at.Seq)
		most = max(most, at.Seq)
	}
	for i := range out {
		out[i].Behind = most - seqs[i]
	}
	return out
}
