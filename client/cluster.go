package client

import (
	"context"

	"mneme/memory"
)

// Cluster is what concerns the nodes of the cluster together.
type Cluster struct{ c *Client }

// Cluster returns what concerns the nodes of the cluster together.
func (c *Client) Cluster() Cluster { return Cluster{c} }

// Status describes the nodes of the cluster and the replicas of each shard, as the node
// sees them that is asked.
func (c Cluster) Status(ctx context.Context) (memory.ClusterStatus, error) {
	var st memory.ClusterStatus
	err := c.c.do(ctx, call{method: "GET", path: []string{"cluster"}}, &st)
	return st, err
}

// Transfer has a node lead. It may be asked for again.
func (c Cluster) Transfer(ctx context.Context, req memory.TransferLead) (memory.LeadTransfer, error) {
	var transfer memory.LeadTransfer
	err := c.c.do(ctx, call{method: "POST", path: []string{"admin", "cluster", "transfer"}, body: req, header: WriteOptions{}.header(c.c.opts.Agent), write: true}, &transfer)
	return transfer, err
}

// Drain has a node lead nothing until this is undone or it starts again. It may be asked
// for again.
func (c Cluster) Drain(ctx context.Context, req memory.DrainNode) (memory.NodeDrain, error) {
	var drain memory.NodeDrain
	err := c.c.do(ctx, call{method: "POST", path: []string{"admin", "cluster", "drain"}, body: req, header: WriteOptions{}.header(c.c.opts.Agent), write: true}, &drain)
	return drain, err
}

// Remove takes a node out of the cluster for ever. It may be asked for again, and
// carries on then.
func (c Cluster) Remove(ctx context.Context, req memory.RemoveNode) (memory.NodeRemoval, error) {
	var removal memory.NodeRemoval
	err := c.c.do(ctx, call{method: "POST", path: []string{"admin", "cluster", "remove"}, body: req, header: WriteOptions{}.header(c.c.opts.Agent), write: true}, &removal)
	return removal, err
}

// Upgrade says how far an upgrade of the nodes' programs has come.
func (c Cluster) Upgrade(ctx context.Context) (memory.UpgradeStatus, error) {
	return get[memory.UpgradeStatus](ctx, c.c, "admin", "upgrade")
}

// FinishUpgrade lets the logs use what all nodes know, from when on no node can be put back to
// a program that does not. It may be asked for again.
func (c Cluster) FinishUpgrade(ctx context.Context) (memory.UpgradeStatus, error) {
	var st memory.UpgradeStatus
	err := c.c.do(ctx, call{method: "POST", path: []string{"admin", "upgrade"}, header: WriteOptions{}.header(c.c.opts.Agent), write: true}, &st)
	return st, err
}

// Quarantine has a shard that has stopped at an event on most nodes go on without it. A node
// on its own is most of them. It may be asked for again.
func (c Cluster) Quarantine(ctx context.Context, req memory.PutInQuarantine) (memory.InQuarantine, error) {
	var out memory.InQuarantine
	err := c.c.do(ctx, call{method: "POST", path: []string{"admin", "quarantine"}, body: req, header: WriteOptions{}.header(c.c.opts.Agent), write: true}, &out)
	return out, err
}
