package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"mneme/internal/cluster"
	"mneme/internal/peer"
	"mneme/internal/replica"
	"mneme/memory"
)

// An init makes the data directory of a node on its own the first node of a cluster. It is
// a recovery from a node that has everything, so it ends where a recovery would warn:
//
//  1. complete  the state takes in what Raft's log and the log hold behind it, as at a start,
//     and the whole log is compared with it
//  2. mark      node.json: from now on no memnode opens the directory
//  3. state     the next stream is reserved; flush
//  4. aside     the log, which nats-server would delete in a cluster, and the Raft files
//  5. found     node.json: the only member of a cluster, which it has yet to found
//
// The keyring stays: it founds the group of keys as it is.

// InitOptions of Offline.Init.
type InitOptions struct {
	NodeID string // what the node is called in the cluster
	Certs  string // the folder with its certificate
	DryRun bool   // only look
}

// Init makes the data directory of a stopped node on its own the first node of a cluster.
// It may be repeated.
func (o Offline) Init(ctx context.Context, dir string, opt InitOptions, progress func(done, total uint64)) (memory.InitReport, error) {
	c, err := o.openAnyDir(dir)
	if err != nil {
		return memory.InitReport{}, publicError(errors.Join(err, c.close(ctx)))
	}
	r := initiation{recovery{core: c, step: o.step}}
	report, err := r.run(ctx, opt, progress)
	return report, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
}

// initiation is one call of Init.
type initiation struct{ recovery }

func (r *initiation) run(ctx context.Context, opt InitOptions, progress func(done, total uint64)) (memory.InitReport, error) {
	d := r.dir
	out := memory.InitReport{Node: opt.NodeID, Shards: []memory.InitShard{}}
	if d.node.Cluster != nil {
		return r.already(out)
	}
	if err := r.refuse(opt); err != nil {
		return out, err
	}
	var err error
	if d.node.Recovering == nil {
		if out.Shards, err = r.complete(ctx, progress); err != nil || opt.DryRun {
			return out, err
		}
	}
	if opt.DryRun {
		return out, nil
	}
	if err := r.openParts(); err != nil {
		return out, err
	}
	now, err := r.carryOut(opt)
	out.ClusterID, out.Aside, out.Done = now.Cluster, r.report.Aside, err == nil
	return out, err
}

// already answers for the directory of a node of a cluster.
func (r *initiation) already(out memory.InitReport) (memory.InitReport, error) {
	d := r.dir
	facts := d.node.Cluster
	switch {
	case d.node.Recovering != nil:
		return out, d.halfDone()
	case facts.ID == out.Node && facts.Founder && facts.Former == nil && len(facts.Members) == 1:
		out.Done, out.Before, out.ClusterID, out.Aside = true, true, facts.Cluster, filepath.Join(d.path, "aside")
		return out, nil
	}
	return out, usage(fmt.Sprintf("%s belongs to node %s of the cluster %s already", d.path, facts.ID, cmp.Or(facts.Cluster, "that it has yet to find")),
		"start memnode with the options of the cluster; other nodes join it with empty data directories")
}

// refuse says what an init cannot begin from.
func (r *initiation) refuse(opt InitOptions) error {
	d := r.dir
	if err := memory.CheckName("node", opt.NodeID); err != nil {
		return usage(err.Error(), "a node's id is like n1")
	}
	if _, err := peer.OpenCertificates(opt.Certs, opt.NodeID, r.cfg.Logger); err != nil {
		return usage(err.Error(), peer.CertificatesHint(opt.Certs, opt.NodeID))
	}
	switch {
	case d.node.Recovering != nil && d.node.Recovering.NodeID != opt.NodeID:
		return usage(fmt.Sprintf("an init of %s as node %s was begun and not finished", d.path, d.node.Recovering.NodeID), "give that --node-id")
	case d.node.LogURL != "":
		return usage(fmt.Sprintf("the log of %s is not in it but on an external NATS, %s", d.path, d.node.LogURL),
			"memctl backup of the running node, memctl restore into a new data directory, and then this; before it is started with that NATS, delete the streams that are there, or give it another account")
	case d.fresh:
		return usage(fmt.Sprintf("nothing was ever written to %s", d.path), "start all nodes with empty data directories and the options of the cluster: they found one together")
	}
	return nil
}

// complete brings the states to the end of the log, as a start does, and compares the whole
// log with them. The directory is a node's on its own afterwards, as it was before.
func (r *initiation) complete(ctx context.Context, progress func(done, total uint64)) ([]memory.InitShard, error) {
	cfg := r.cfg
	cfg.NATSAddr, cfg.NATSURL = "127.0.0.1:0", ""
	c := &core{cfg: cfg, restoring: r.dir.lock}
	err := c.openDir(true)
	if err == nil {
		err = c.openLog(ctx, nobody)
	}
	out := []memory.InitShard{}
	for _, s := range c.shards {
		if err != nil {
			break
		}
		var one memory.InitShard
		var term uint64
		if one, term, err = (stopped{s}).complete(ctx, progress); err != nil {
			err = s.metDamage(err)
		}
		out, r.terms = append(out, one), max(r.terms, term)
	}
	return out, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
}

// complete brings the state to the end of the log, compares the two, and gives the highest
// Raft term that is known.
func (s stopped) complete(ctx context.Context, progress func(done, total uint64)) (out memory.InitShard, term uint64, err error) {
	if err := s.roomToApply(); err != nil {
		return out, 0, err
	}
	opt := s.replicaOptions()
	found, _, err := replica.Survivor{Options: opt}.Inspect()
	if err == nil {
		err = errors.Join(opt.CheckGroup(), found.Damage)
	}
	if err != nil {
		return out, 0, startError("Raft files", err)
	}
	state, err := openExisting(opt.StateOptions())
	if err != nil {
		return out, 0, s.closedState(err)
	}
	if at := state.Cursor(); at.Seq == 0 || at.RaftIndex == 0 { // a kill came before any of it was on the disk
		if err := state.Close(); err != nil {
			return out, 0, err
		}
		if state, err = replica.OpenState(ctx, opt); err != nil {
			return out, 0, startError("state", err)
		}
	}
	s.state = state
	s.onClose("state", func(context.Context) error { return state.Close() })
	if err := errors.Join(opt.CatchUp(state), streams{s.shard}.chooseFor(ctx, state)); err != nil {
		return out, 0, startError("state", err)
	}
	// The log goes away with which a damaged table is healed.
	if err := state.CheckTables(ctx); err != nil {
		return out, 0, s.closedState(err)
	}
	if err := s.refuseShortLog(ctx, state.Cursor()); err != nil {
		return out, 0, err
	}
	r := &repair{shard: s.shard}
	if r.unfinished() {
		return out, 0, memory.Errorf(memory.CodeLogDiverged, "a repair of the log was interrupted").WithHint("memctl log repair --data-dir %s goes on with it", s.dir.path)
	}
	if err := r.adopt(ctx); err != nil {
		return out, 0, err
	}
	v := state.View()
	defer v.Close()
	at := v.Cursor()
	verified, _, err := s.verifyLog(ctx, v, progress)
	switch {
	case err != nil:
		return out, 0, err
	case !verified.OK || verified.Last != at.Seq:
		return out, 0, damagedLog("nothing was changed", verified)
	}
	out = memory.InitShard{ID: s.id, Position: at.Position().String(), Events: at.Events}
	return out, max(found.Term, found.Promise.Term, at.Term, at.RaftTerm), nil
}

// carryOut does the steps behind complete.
func (r *initiation) carryOut(opt InitOptions) (cluster.Facts, error) {
	d := r.dir
	if err := r.mark(recovering{NodeID: opt.NodeID, TermFloor: r.terms}); err != nil {
		return cluster.Facts{}, err
	}
	as := *d.node.Recovering
	for _, s := range r.shards {
		if err := r.before("state"); err != nil {
			return cluster.Facts{}, err
		}
		if _, err := (recovered{s}).hand(as, func() error { return nil }); err != nil {
			return cluster.Facts{}, s.metDamage(err)
		}
	}
	r.report.Aside = d.aside(d.name())
	if err := r.setAside(); err != nil {
		return cluster.Facts{}, readOnly(d.path, err)
	}
	if err := r.before("found"); err != nil {
		return cluster.Facts{}, err
	}
	origin := append(d.former(), d.node.ClusterID)
	now := cluster.First(opt.NodeID, as.Incarnation, as.Cluster, origin, d.node.Shards, as.TermFloor)
	return now, r.found(now)
}
