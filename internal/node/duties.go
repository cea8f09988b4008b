package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"mneme/internal/ingest"
	"mneme/internal/peer"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// duties is what a shard's leader of several owes at the beginning of its term: a node on its
// own does it at its start.
type duties struct{ of *served }

// Work implements replica.Worker.
func (d duties) Work(ctx context.Context, w *ingest.Writer) {
	if err := w.Erasing().DestroyEnded(); err != nil {
		d.of.log.Warn("keys that have ended could not be destroyed yet", "err", err)
	}
	d.of.n.eraser.Wake()
	if w.Diverged() != nil && (&repair{shard: d.of.shard}).unfinished() {
		d.of.n.upkeep.goOnWithRepairs(repairAgain, d.of)
	}
	<-ctx.Done()
}

// repairAgain is how long the node that leads waits before it goes on with a repair that
// another one began, or that it could not finish itself.
const repairAgain = time.Second

// finishRepair goes on with repairs that were killed, while reads are served. Of several
// nodes the one that leads does, see duties.
func (n *Node) finishRepair(context.Context) error {
	var of []*served
	for _, s := range n.served {
		if n.peers == nil && (&repair{shard: s.shard}).unfinished() {
			s.copying.Store(&memory.Progress{})
			of = append(of, s)
		}
	}
	if of != nil {
		n.upkeep.goOnWithRepairs(0, of...)
	}
	return nil
}

// goOnWithRepairs carries repairs that were interrupted to their end, in the background.
func (u *upkeep) goOnWithRepairs(after time.Duration, of ...*served) {
	if slices.ContainsFunc(of, func(s *served) bool { return streams{s.shard}.first() }) {
		u.n.cfg.Logger.Info(firstLog + ": that begins when enough of the log's servers are there")
	} else {
		u.n.cfg.Logger.Info("a repair of the log was interrupted and goes on")
	}
	u.background(func(ctx context.Context) {
		if sleep(ctx, after) != nil {
			return
		}
		for _, s := range of {
			s.copying.Store(&memory.Progress{})
		}
		j := u.beginRepair(u.inTurn, of...)
		<-j.done
		err := j.err
		if err == nil {
			err = u.n.firstNamespaces(ctx) // at the start nothing could be written
		}
		switch {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, raftfsm.ErrNotLeader):
			u.n.cfg.Logger.Info("the repair of the log goes on at the node that leads", "why", err)
		default:
			u.n.cfg.Logger.Error("the repair of the log could not be finished", "err", err)
		}
	})
}

// led are the shards, whose logs of several nodes the one repairs that leads them all: what
// it left out would be left out in silence. Else it is a conflict, which names a node that
// leads.
func (u *upkeep) led() ([]*served, error) {
	if u.n.peers == nil {
		return u.n.served, nil
	}
	var of []*served
	other, its, known := "", uint16(0), true
	for _, s := range u.n.served {
		to, self, someone := s.leader()
		switch {
		case self:
			of = append(of, s)
		case someone:
			other, its = peer.IDOf(to.Node), s.id
		default:
			known = false
		}
	}
	switch {
	case len(of) == len(u.n.served):
		return of, nil
	case other != "" && len(of) > 0:
		return nil, memory.Errorf(memory.CodeConflict, "the logs of a cluster are repaired by the node that leads its shards, and %s leads shard %d", other, its).
			WithHint("have this node lead all of them, then call it again: memctl cluster transfer %s", u.n.peers.cluster.Self().ID)
	case !known && other == "":
		return nil, memory.Errorf(memory.CodeUnavailable, "no node leads the shard now").WithHint("try again in a moment; memctl cluster status says which nodes are there")
	}
	return nil, memory.Errorf(memory.CodeConflict, "the log of a cluster is repaired by the node that leads, %s", other).
		WithHint("ask that one: memctl log repair --addr with its HTTP address; or memctl cluster transfer %s first", u.n.peers.cluster.Self().ID)
}
