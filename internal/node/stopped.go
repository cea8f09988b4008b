package node

import (
	"cmp"
	"context"
	"strings"

	"mneme/internal/ingest"
	"mneme/memory"
)

// Where the node that leads a shard takes no writes, whoever asks another node is told so,
// with what helps.

// stopped says why the shard takes no writes, where this node leads it; nil where it takes
// them, or another node leads.
func (s *served) stopped() *memory.WritesStopped {
	if leader, _ := s.replica.Group().Leader(); leader != s.dir.name() {
		return nil
	}
	out := &memory.WritesStopped{Node: s.dir.node.NodeID}
	if d := s.replica.Diverged(); d != nil {
		out.Why, out.Hint = d.Error(), d.Hint
		return out
	}
	w, err := s.replica.Writer()
	if err == nil {
		refused := ingest.RefusalOf(w)
		if refused == nil {
			return nil
		}
		err = refused
	}
	e := memory.AsError(err)
	out.Why, out.Hint = strings.TrimPrefix(e.Message, "writes are stopped: "), e.Hint
	return out
}

const electsHint = "it ends by itself where most nodes answer, for they elect; memctl doctor names those that do not"

// stopped is why a shard takes no writes, as the reports of nodes say; nil where it takes
// them, or the one that leads was not asked. Without reports nobody was.
func (o *operator) stopped(s *served, reports []nodeReport) *memory.WritesStopped {
	leader := o.leader(s.shard)
	switch leader {
	case "":
		return &memory.WritesStopped{Why: "no node leads the shard", Hint: electsHint}
	case o.n.dir.node.NodeID:
		return s.stopped()
	}
	for _, r := range reports {
		if r.Node.ID == leader {
			return r.of(s.id).Stopped
		}
	}
	if reports == nil {
		return nil
	}
	return &memory.WritesStopped{Node: leader, Why: "the node that leads does not answer", Hint: electsHint}
}

// repairAt is how far the node that leads a shard is with writing its log from the state;
// nil where that is not under way, or was not asked.
func repairAt(leader string, shard uint16, reports []nodeReport) *memory.Progress {
	for _, r := range reports {
		if r.Node.ID == leader {
			return r.of(shard).Repair
		}
	}
	return nil
}

// Led says of each shard of a node of several which node leads it, and whether that takes
// writes. It asks the others, for not longer than statusWait.
func (d *doctor) Led(ctx context.Context) (out []memory.Check) {
	if d.n.peers == nil {
		return nil
	}
	_, reports := d.n.operator.everywhere(ctx)
	for _, s := range d.n.served {
		c := memory.Check{Name: s.named("leader"), State: "ok", Detail: d.n.operator.leader(s.shard) + " leads, and takes writes"}
		if no := d.n.operator.stopped(s, reports); no != nil {
			c.State, c.Hint = "warn", no.Hint
			c.Detail = cmp.Or(no.Node, "nobody") + " leads; writes are stopped: " + no.Why
		}
		out = append(out, c)
	}
	return out
}
