package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/cluster"
	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keygroup"
	"mneme/internal/peer"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/replica"
	"mneme/internal/storage"
	"mneme/memory"
)

// A recovery makes another cluster of the data directory of one node, when the majority of
// a cluster is lost. The directory holds all that the node ever had: keys and state, with
// every frame of the log up to where the state stands; behind it what Raft's log holds and
// what the node's copy of the log holds. Its steps:
//
//  1. mark      node.json: from now on no memnode opens the directory; what the new
//     cluster is called stands there too, so that each step may be repeated
//  2. keys      take in what their group's log holds
//  3. state     takes in what Raft's log holds, then the rest of the log; the next stream
//     is reserved, far above all epochs; flush
//  4. aside     the log and the Raft files of the former cluster
//  5. found     node.json: the only member of the new cluster, which it has yet to found
//
// The next start begins the Raft groups with keys and state as they are, in terms far above
// the former ones, and writes the log again from the state, as a repair that was interrupted.

// RecoverOptions of Offline.Recover.
type RecoverOptions struct {
	Certs  string // the folder of certificates that the node has
	DryRun bool   // only look
}

// recovering is what a recovery, or an init, that has begun is about.
type recovering struct {
	NodeID      string `json:"node_id,omitempty"` // of an init: what the node is to be called
	Cluster     string `json:"cluster"`           // the new one, and the identity of its streams
	Incarnation string `json:"incarnation"`
	TermFloor   uint64 `json:"term_floor"`
}

// termsAbove is how far the terms of a cluster that was recovered lie above the highest one
// that its node knew of: others may have led in terms of which it never heard.
const termsAbove = 1 << 20

// Recover makes the data directory of a stopped node of a cluster the only member of a new
// one. It may be repeated.
func (o Offline) Recover(ctx context.Context, dir string, opt RecoverOptions) (memory.RecoverReport, error) {
	c, err := o.openClusterDir(dir)
	if err != nil {
		return memory.RecoverReport{}, publicError(errors.Join(err, c.close(ctx)))
	}
	r := recovery{core: c, step: o.step}
	err = r.run(ctx, opt)
	return r.report, errors.Join(publicError(err), c.close(context.WithoutCancel(ctx)))
}

// openClusterDir opens keys and facts of a stopped node of a cluster.
func (o Offline) openClusterDir(path string) (*core, error) {
	c, err := o.openAnyDir(path)
	if err != nil {
		return c, err
	}
	switch d := c.dir; {
	case d.node.Cluster == nil:
		return c, usage(fmt.Sprintf("%s belongs to a node on its own: there are no others that it could be recovered from", d.path),
			"memctl doctor --data-dir DIR says what is wrong with it")
	case d.node.Cluster.Cluster == "":
		return c, usage(fmt.Sprintf("the node %s has no cluster yet, so nothing was ever written to %s", d.node.NodeID, d.path), "start it with the others")
	}
	return c, c.openParts()
}

// openParts opens the keys of a stopped node, and names its shards.
func (c *core) openParts() error {
	if err := c.makeShards(); err != nil {
		return err
	}
	c.space = &space{fs: c.cfg.FS, dir: c.dir.path, reserve: uint64(max(c.cfg.ReserveBytes, 0)), now: c.cfg.Now}
	return c.openKeys(true)
}

// openAnyDir locks the data directory of a stopped node, on its own or of a cluster, also
// one that a recovery or an init has left half done.
func (o Offline) openAnyDir(path string) (*core, error) {
	cfg := o.Config
	cfg.setDefaults()
	c := &core{cfg: cfg}
	path, err := filepath.Abs(path)
	if err != nil {
		return c, usage(fmt.Sprintf("data directory %q: %v", path, err), "")
	}
	c.cfg.DataDir = path
	if !hasAny(cfg.FS, path, nodeJSON, nodeCopy, restoringMark) {
		return c, usage(fmt.Sprintf("%s is not a data directory", path), "give the --data-dir that memnode used")
	}
	lock, err := lockDataDir(cfg.FS, path)
	if err != nil {
		return c, err
	}
	c.onClose("data directory", func(context.Context) error { return lock.unlock() })
	if err := refuseHalfRestored(cfg.FS, path); err != nil {
		return c, err
	}
	d := &dataDir{fs: cfg.FS, path: path, lock: lock, recovers: true, id: memberOf(cfg.FS, path)}
	if err := d.readNode(events.NewIDSource(cfg.Now, nil)); err != nil {
		return c, err
	}
	c.dir = d
	return c, nil
}

// recovery is one call of Recover.
type recovery struct {
	*core
	report memory.RecoverReport
	step   func(name string) error
	terms  uint64 // the highest that is known

	replicas []raftfsm.Member // of the group of keys, which every node has
}

func (r *recovery) before(step string) error {
	if r.step == nil {
		return nil
	}
	return r.step(step)
}

func (r *recovery) run(ctx context.Context, opt RecoverOptions) error {
	facts := r.dir.node.Cluster
	r.report = memory.RecoverReport{Node: r.dir.node.NodeID, ClusterID: facts.Cluster, Others: []string{}, Shards: []memory.RecoverShard{}}
	for _, m := range facts.Members {
		if m.Name != facts.Name() {
			r.report.Others = append(r.report.Others, m.ID)
		}
	}
	if facts.Founder && facts.Former != nil && r.dir.node.Recovering == nil {
		r.report.Recovered, r.report.Before, r.report.NewCluster = true, true, facts.Cluster
		r.report.Aside = filepath.Join(r.dir.path, "aside")
	}
	if err := errors.Join(r.look(ctx), ctx.Err()); err != nil {
		return err
	}
	if err := r.ask(ctx, opt.Certs); err != nil {
		return err
	}
	if opt.DryRun || r.report.Before {
		return nil
	}
	if len(r.report.Running) > 0 {
		return memory.Errorf(memory.CodeConflict, "nothing was recovered, for other nodes of the cluster are there: %s", strings.Join(r.report.Running, "; ")).
			WithHint("where most of them can run, start this one and they go on together; else stop all, and recover from one of them")
	}
	if err := r.cannot(); err != nil {
		return err
	}
	return r.carryOut(ctx)
}

// cannot says why nothing can be recovered from this directory.
func (r *recovery) cannot() error {
	if len(r.report.Shards) == len(r.shards) {
		return nil
	}
	return memory.Errorf(memory.CodeLogDiverged, "nothing was recovered: %s", strings.Join(r.report.Damage, "; ")).
		WithHint("recover from another node's data directory; where none has a state that is whole, memctl backup --data-dir %s writes what this one still holds, if its copy of the log has what the state lost, and memctl restore and memctl cluster init make a cluster of that", r.dir.path)
}

// look reads what the directory holds, and changes nothing.
func (r *recovery) look(ctx context.Context) error {
	damaged := func(what string, err error) {
		r.report.Damage = append(r.report.Damage, fmt.Sprintf("%s: %v", what, err))
	}
	keys, err := raftfsm.Inspect(raftfsm.Options{Dir: r.dir.keyGroup(), FS: r.files, ID: r.dir.name(), Sealer: r.keyGroupSealer()})
	if err != nil {
		return startError("group of keys", err)
	}
	if keys.Damage != nil {
		damaged("the Raft files of the keys, which are taken from the keyring alone", keys.Damage)
	}
	r.replicas = keys.Members
	index, term := r.keys.Machine().AppliedIndex()
	r.report.Keys = max(index, keys.Index)
	r.terms = max(r.terms, term, keys.Term, keys.Promise.Term)
	switch rot, err := eventlog.CopyDamage(vfs.Default, r.dir.nats()); { // NATS has files of its own
	case err != nil:
		return startError("copy of the log", err)
	case rot != nil:
		damaged("the copy of the log, of which what lies behind that is left out", rot)
	}
	for _, s := range r.shards {
		one, err := recovered{s}.look(ctx, !r.report.Before, damaged)
		if errors.Is(err, raftfsm.ErrLocked) {
			return startError("shard", err)
		}
		if err != nil {
			damaged(fmt.Sprintf("the state of shard %d", s.id), err)
			continue
		}
		r.terms = max(r.terms, one.Term)
		r.report.Shards = append(r.report.Shards, one)
	}
	return nil
}

// ask fills in which other members are there.
func (r *recovery) ask(ctx context.Context, certs string) error {
	if len(r.report.Others) == 0 {
		return nil
	}
	facts := *r.dir.node.Cluster
	c, err := peer.OpenCertificates(certs, facts.ID, r.cfg.Logger)
	if err != nil {
		return usage(err.Error(), "give the --peer-certs that memnode has: the other nodes are asked whether they run")
	}
	self := peer.Identity{Cluster: facts.Cluster, Node: facts.Name()}
	port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: c, Self: func() peer.Identity { return self }, Logger: r.cfg.Logger})
	if err != nil {
		return err
	}
	r.report.Running = cluster.Running(ctx, port, facts, r.replicas)
	return port.Close()
}

// carryOut does the steps.
func (r *recovery) carryOut(ctx context.Context) error {
	d := r.dir
	if err := r.roomToApply(); err != nil {
		return err
	}
	if err := r.mark(recovering{TermFloor: r.terms + termsAbove}); err != nil {
		return err
	}
	if err := r.before("keys"); err != nil {
		return err
	}
	err := keygroup.CatchUp(keygroup.Options{Dir: d.keyGroup(), FS: r.files, Sealer: r.keyGroupSealer(), ID: d.name(), Keys: r.keys, Logger: r.cfg.Logger})
	if err != nil {
		return startError("group of keys", err)
	}
	for i, s := range r.shards {
		if err := r.before("state"); err != nil {
			return err
		}
		if r.report.Shards[i], err = (recovered{s}).bring(ctx, *d.node.Recovering); err != nil {
			return s.metDamage(err)
		}
	}
	r.report.Aside = d.aside(d.name())
	if err := r.setAside(); err != nil {
		return readOnly(d.path, err)
	}
	if err := r.before("found"); err != nil {
		return err
	}
	now := d.node.Cluster.Recovered(d.node.Recovering.Cluster, d.node.Recovering.Incarnation, d.node.Recovering.TermFloor)
	r.report.Recovered, r.report.NewCluster = true, now.Cluster
	return r.found(now)
}

// mark notes that from now on no memnode opens the directory, and what it becomes.
func (r *recovery) mark(as recovering) error {
	d := r.dir
	if d.node.Recovering != nil {
		return nil
	}
	as.Cluster, as.Incarnation = newNodeID(r.cfg.Now), newIncarnation(events.NewIDSource(r.cfg.Now, nil))
	d.node.Recovering = &as
	return errors.Join(r.before("mark"), d.writeNode())
}

// found makes the directory that of the only member of a cluster.
func (r *recovery) found(now cluster.Facts) error {
	d := r.dir
	d.node.NodeID, d.node.Mode, d.node.Shards, d.node.Former = now.ID, modeCluster, 0, nil
	d.node.Cluster, d.node.ClusterID, d.node.Recovering = &now, now.Cluster, nil
	return d.writeNode()
}

// setAside moves what only the former cluster can use. What is there although it was moved
// before is an empty folder, made by looking for it.
func (r *recovery) setAside() error {
	d := r.dir
	to := d.aside(d.name())
	move := func(fsys vfs.FS, name string) error {
		if _, err := fsys.Stat(filepath.Join(d.path, name)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if _, err := fsys.Stat(filepath.Join(to, name)); err == nil {
			return fsys.RemoveAll(filepath.Join(d.path, name))
		}
		if err := r.before("aside " + name); err != nil {
			return err
		}
		if err := storage.MkdirAll(fsys, filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
			return err
		}
		if err := fsys.Rename(filepath.Join(d.path, name), filepath.Join(to, name)); err != nil {
			return err
		}
		return errors.Join(storage.SyncDir(fsys, filepath.Dir(filepath.Join(to, name))), storage.SyncDir(fsys, filepath.Dir(filepath.Join(d.path, name))))
	}
	names := []string{filepath.Join("keys", "raft"), filepath.Base(d.remembered())}
	for _, s := range r.shards {
		for _, name := range []string{"raft.db", "membership", "snapshots", "restore", divergedMark, "rebuild", "rebuilt"} {
			names = append(names, filepath.Join("shards", fmt.Sprint(s.id), name))
		}
	}
	for _, name := range names {
		if err := move(d.fs, name); err != nil {
			return err
		}
	}
	return move(vfs.Default, "nats") // NATS has files of its own
}

// recovered is a shard of a stopped node whose peers are lost.
type recovered struct{ *shard }

func (s recovered) survivor() replica.Survivor { return replica.Survivor{Options: s.replicaOptions()} }

// look says what the shard holds. Its state is only read, where it counts all of it: what is
// damaged in it would show when the log is written again from it.
func (s recovered) look(ctx context.Context, all bool, damaged func(what string, err error)) (out memory.RecoverShard, err error) {
	found, end, err := s.survivor().Inspect()
	if err != nil {
		return out, err
	}
	if found.Damage != nil {
		damaged(fmt.Sprintf("the Raft files of shard %d, whose newest entries are left out", s.id), found.Damage)
	}
	state, err := projections.Open(projections.Options{Dir: s.dir.state(s.id), FS: s.files, Logger: s.shard.log, ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer state.Close()
	if all {
		if err := state.CheckTables(ctx); err != nil {
			return out, err
		}
	}
	at := state.Cursor()
	log, err := s.log(&at)
	if err != nil {
		damaged(fmt.Sprintf("the copy of the log of shard %d, which is left out", s.id), err)
	}
	out = memory.RecoverShard{ID: s.id, State: at.Position().String(), Raft: end, Term: max(found.Promise.Term, found.Term, at.Term, at.RaftTerm),
		SealedAt: time.Unix(0, at.SealedAt).UTC()}
	if log != nil {
		info, err := log.Info(ctx)
		if err != nil {
			return out, err
		}
		out.Log = info.Last
	}
	out.Reaches = max(at.Seq, out.Raft, out.Log)
	return out, nil
}

// log is this node's copy of the log, as far as it goes on from a state; nil if there is none.
func (s recovered) log(at *projections.Cursor) (eventlog.Stream, error) {
	var longest eventlog.Stream
	var last uint64
	for _, ref := range []events.StreamRef{at.Stream(), at.Next} {
		if ref.IsZero() {
			continue
		}
		log, err := eventlog.OpenStopped(vfs.Default, s.dir.nats(), s.id, ref)
		if errors.Is(err, eventlog.ErrNotFound) {
			continue
		}
		if err != nil {
			return longest, err
		}
		if info, err := log.Info(context.Background()); err == nil && info.Last >= last { // it does not fail
			longest, last = log, info.Last
		}
	}
	return longest, nil
}

// bring has the state hold all that the node has, and reserves the new cluster's stream.
func (s recovered) bring(ctx context.Context, as recovering) (out memory.RecoverShard, err error) {
	if out, err = s.look(ctx, false, func(string, error) {}); err != nil {
		return out, err
	}
	at, err := s.hand(as, func() error {
		if err := s.catchUp(); err != nil {
			return startError("state", err)
		}
		if err := s.salvage(ctx); err != nil {
			s.shard.log.Warn("what this node's copy of the log holds behind its state is not all recovered", "err", err)
		}
		return nil
	})
	out.State, out.Reaches, out.SealedAt = at.Position().String(), at.Seq, time.Unix(0, at.SealedAt).UTC()
	return out, err
}

// hand has the state take in what is behind it, and reserves the new cluster's stream in it.
func (s recovered) hand(as recovering, take func() error) (at projections.Cursor, err error) {
	state, err := openExisting(s.survivor().StateOptions())
	if err != nil {
		return at, err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	s.state = state
	if err := errors.Join(take(), s.checkKeys(state)); err != nil {
		return at, err
	}
	if at = state.Cursor(); at.Next.Identity != as.Cluster {
		if err := s.reserve(as); err != nil {
			return at, err
		}
	}
	return at, state.Flush()
}

// catchUp brings the state to the end of Raft's log. One that was lost with a kill, since
// none of it had reached the disk, was fed from the first stream.
func (s recovered) catchUp() error {
	if at := s.state.Cursor(); at.Seq == 0 && at.Identity == "" {
		if err := s.state.SetOrigin(0, 0, streams{s.shard}.shared(at)); err != nil {
			return err
		}
	}
	return s.survivor().CatchUp(s.state)
}

// salvage brings into the state what this node's copy of the log holds behind it.
func (s recovered) salvage(ctx context.Context) error {
	at := s.state.Cursor()
	log, err := s.log(&at)
	if err != nil || log == nil {
		return err
	}
	info, err := log.Info(ctx)
	if err != nil || info.Last <= at.Seq {
		return err
	}
	if err := continues(ctx, log, &at); err != nil {
		return err
	}
	v := s.state.View()
	d, err := derive.New(s.keys, v)
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	_, err = ingest.Replay(ctx, log, s.state, d, info.Last, func(next *projections.Range) error {
		res, err := s.state.CommandLocal(next.Encode())
		if err != nil {
			return err
		}
		return replica.Continued(next, res)
	})
	return err
}

// reserve makes the stream of the new cluster the state's next one. Where a majority is
// lost, positions behind the state were given out, and nobody knows how many: its epoch is
// that of a restore. After an init, which has all, it is the next one.
func (s recovered) reserve(as recovering) error {
	at := s.state.Cursor()
	epoch := max(at.Epoch, at.Next.Epoch) + 1
	if as.NodeID == "" {
		var err error
		if epoch, err = restoredEpoch(epoch-1, s.cfg.Now(), rand.Uint32()); err != nil {
			return err
		}
	}
	command := projections.NewReserve(&at, epoch-1, as.Cluster)
	res, err := s.state.CommandLocal(command.Encode())
	if reserved, ok := res.(projections.ReserveResult); err == nil && (!ok || reserved.Next.Identity != as.Cluster) {
		err = errors.New("the state did not take it")
	}
	if err != nil {
		return fmt.Errorf("reserve the new cluster's log: %w", err)
	}
	return nil
}
