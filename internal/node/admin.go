package node

import (
	"context"
	"slices"
	"time"

	"mneme/internal/embed"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/memory"
)

// operator runs the node: it implements rest.Admin.
type operator struct {
	*upkeep
	*doctor
	n *Node
}

// Status describes the node and its shard, and, unless local, names the others of the
// cluster.
func (o *operator) Status(ctx context.Context, local bool) (memory.Status, error) {
	nodes, reports := []memory.NodeStatus{o.here()}, []nodeReport(nil)
	if !local {
		nodes, reports = o.everywhere(ctx)
	}
	shards := make([]memory.ShardStatus, 0, len(o.n.served))
	for _, s := range o.n.served {
		shard := o.shardStatus(ctx, s)
		shard.WritesStopped = o.stopped(s, reports)
		if shard.Log.Repair == nil {
			shard.Log.Repair = repairAt(shard.Leader, s.id, reports)
		}
		shards = append(shards, shard)
	}
	return memory.Status{
		ClusterID: o.n.dir.node.ClusterID,
		Nodes:     nodes,
		Shards:    shards,
		Copy:      o.n.upkeep.copy.Status(),
		Embedder:  o.defaultEmbedder(ctx),
		Vector:    o.n.vectorStatus(),
		Auth:      o.n.cfg.Auth,

		AdminSocket:  o.n.front.socket,
		Certificates: o.certificates(),

		Version: o.n.cfg.Version,
		Dev:     o.n.cfg.Dev,
		UptimeS: time.Since(o.n.started).Seconds(),
	}, nil
}

// role says whether this node takes writes.
func (o *operator) role() string {
	if slices.ContainsFunc(o.n.served, func(s *served) bool { return s.replica.Leads() }) {
		return "leader"
	}
	return "follower"
}

func (o *operator) shardStatus(ctx context.Context, s *served) memory.ShardStatus {
	v := s.state.View()
	defer v.Close()
	records, pending := v.Totals()
	c := v.Cursor()
	out := memory.ShardStatus{ID: int(s.id), Leader: o.leader(s.shard), Epoch: c.Epoch, Position: c.Position().String(), StateHash: v.Hash().String(),
		PipelineVersion: projections.PipelineVersion, Records: records, PendingVectors: pending}
	if s.id == shard0 { // it is of all shards
		out.Erasing = o.n.eraser.Status()
	}
	out.Lacks, _ = s.lacking()
	if err := s.replica.Group().Halted(); err != nil {
		out.Halted = err.Error()
	}
	if poison := s.replica.Poison(); poison != nil {
		out.StoppedAt = poison.At.String()
	}
	if info, err := s.stream.Info(ctx); err == nil {
		out.Log = memory.LogStatus{First: info.First, Last: info.Last, Lost: uint64(len(info.Lost))}
	} else {
		out.Log.Unreachable = err.Error()
	}
	out.Log.Scrub, out.Log.Repair = s.scrub.Status(), s.copying.Load()
	out.Log.Void = s.followers.voids.Load()
	if d := s.replica.Diverged(); d != nil {
		out.Log.Diverged = d.Error()
	}
	return out
}

// vectorStatus is that of the shard whose recall was worst.
func (n *Node) vectorStatus() memory.VectorStatus {
	worst := n.served[0].views.VectorStatus()
	for _, s := range n.served[1:] {
		if next := s.views.VectorStatus(); worseGuard(next.RecallGuard, worst.RecallGuard) {
			worst = next
		}
	}
	return worst
}

func worseGuard(a, b memory.GuardStatus) bool {
	rank := map[string]int{string(vector.GuardNone): 0, string(vector.GuardOK): 1, string(vector.GuardTripped): 2}
	return rank[a.State] > rank[b.State] || a.State == b.State && a.Recall < b.Recall
}

// defaultEmbedder describes what new namespaces get. It never asks a server.
func (o *operator) defaultEmbedder(ctx context.Context) memory.EmbedderInfo {
	cfg := o.n.cfg.Embedder
	if !embed.IsBuiltin(cfg.Provider) {
		return memory.EmbedderInfo{Provider: cfg.Provider, Model: cfg.Model, Dimensions: cfg.Dimensions}
	}
	s, err := o.n.embedders.choose(ctx, cfg)
	if err != nil {
		return memory.EmbedderInfo{Provider: cfg.Provider}
	}
	return memory.EmbedderInfo{Provider: s.Provider, Model: s.Model, Dimensions: s.Dimensions, Space: s.ID()}
}

// Rejected lists messages that were refused before the log.
func (o *operator) Rejected(_ context.Context, limit int) (memory.RejectedList, error) {
	if limit <= 0 {
		limit = 100
	}
	return o.n.rejections.List(limit), nil
}

// Version is the program's version.
func (o *operator) Version() string { return o.n.cfg.Version }

// AcceptClock accepts the clock of the node that writes.
func (o *operator) AcceptClock(ctx context.Context) (memory.ClockReport, error) {
	return o.n.changes.AcceptClock(ctx)
}
