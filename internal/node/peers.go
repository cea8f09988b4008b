package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"mneme/internal/auth"
	"mneme/internal/cluster"
	"mneme/internal/eventlog"
	"mneme/internal/keygroup"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
)

// peers is a node's part in its cluster: how it reaches the others, what it knows of
// them, and the group that keeps the keys.
type peers struct {
	c       *core
	certs   *peer.Certificates
	port    *peer.Port
	cluster *cluster.Cluster
	keys    *keygroup.Group
	reports *rpc.Client
	drained atomic.Bool // an operator wants this node to lead nothing
	waits   *waiting    // what it answers before it is ready
	taking  *taking     // nil unless the log is on an external NATS
}

// groupKeys is the name of the Raft group of the keys; a shard's is its number. Their
// connections are the peer services raft/<name>.
const groupKeys = "keys"

func (s *shard) group() string { return strconv.Itoa(int(s.id)) }

// defaultReplicas is how many copies the log of several nodes has as far as a node knows
// that does not found it: more than one, so that only the leader of the copies is asked.
// How many it gets later says wantedCopies.
const defaultReplicas = 3

// appendTimeout is how long an append to the log of several nodes waits for its ack
// before its outcome counts as unknown: an election of the stream's leader takes about
// as long, and a longer wait is lost when the ack is (reference: nats-server answers
// nobody while it elects).
const appendTimeout = time.Second

// facts is node.json as package cluster keeps it.
type facts struct{ d *dataDir }

// Load implements cluster.Store.
func (f facts) Load() (cluster.Facts, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return *f.d.node.Cluster, nil
}

// Save implements cluster.Store.
func (f facts) Save(now cluster.Facts) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	before := f.d.node
	f.d.node.Cluster = &now
	if f.d.node.ClusterID != now.Cluster { // else it may be read meanwhile
		f.d.node.ClusterID = now.Cluster
	}
	if err := f.d.writeNode(); err != nil {
		f.d.node = before
		return err
	}
	return nil
}

// identity is who the node is to its peers now.
func (f facts) identity() peer.Identity {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return peer.Identity{Cluster: f.d.node.ClusterID, Node: f.d.node.Cluster.Name()}
}

// admit refuses a node that was removed, whose certificate may still count: it hears so
// from the service that forms the cluster, and takes part in nothing else.
func (f facts) admit(from peer.Identity, service string) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if service != cluster.Service && slices.Contains(f.d.node.Cluster.Removed, from.Node) {
		return fmt.Errorf("the node %s was removed from the cluster", from.Node)
	}
	return nil
}

// replaces reports whether this node's cluster was recovered from the data of another one.
func (f facts) replaces(cluster string) bool {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return slices.Contains(f.d.node.Cluster.Former, cluster)
}

// openPeers opens the peer port and waits until this node knows its cluster, which it
// may found together with the others.
func (n *Node) openPeers(ctx context.Context) error {
	cfg := n.cfg.Cluster
	if cfg == nil {
		return nil
	}
	if err := errors.Join(n.keysThere(), n.checkToken()); err != nil {
		return err
	}
	certs, err := peer.OpenCertificates(cfg.Certs, cfg.NodeID, n.cfg.Logger)
	if err != nil {
		return certificateError(err, peer.CertificatesHint(cfg.Certs, cfg.NodeID))
	}
	if until := certs.Expires(); n.cfg.Now().After(until) {
		n.cfg.Logger.Warn("this node's certificate has ended, and no other node takes it", "file", filepath.Join(cfg.Certs, cfg.NodeID+".crt"), "ended", until.UTC().Format(time.RFC3339), "hint", renewHint)
	}
	own := facts{n.dir}
	port, err := peer.Listen(peer.Options{Addr: cfg.PeerAddr, Certificates: certs, Self: own.identity, Admit: own.admit, Replaces: own.replaces, Logger: n.cfg.Logger})
	if err != nil {
		return addressError(cfg.PeerAddr, err)
	}
	n.onClose("peer port", func(context.Context) error { return port.Close() })
	if err := n.cfg.portsFree(); err != nil {
		return err
	}
	n.peers = &peers{c: n.core, certs: certs, port: port, waits: n.front.waiting}
	if n.cfg.NATSURL != "" {
		n.peers.taking = newTaking(n)
	}
	if l, ok := n.front.listener.(lent); ok {
		n.front.waiting.at(l, n.front.secure)
	}
	if err := n.lookAtExternal(ctx, ""); err != nil {
		return err
	}
	n.peers.waitsFor(waitsForNodes, "", waitsForNodesHint)
	n.cfg.Logger.Info("looking for the other nodes", "join", cfg.Join)
	n.peers.cluster, err = cluster.Form(ctx, cluster.Options{Port: port, Store: own, Memory: remembered{n.dir, n.cfg.Logger}, Peer: cfg.peer(), Route: cfg.route(),
		Join: cfg.Join, Expect: cfg.Expect, AllowTwo: cfg.AllowTwo, ReplaceLost: cfg.ReplaceLost, Shards: n.cfg.Shards, Logger: n.cfg.Logger,
		NewCluster: func() (string, error) {
			id := newNodeID(n.cfg.Now)
			return id, n.lookAtExternal(ctx, id)
		},
		Token: n.sharedToken, TakeToken: n.takeToken,
		Waiting: func(why, hint string) {
			n.peers.waitsFor(waitsForNodes, why, cmp.Or(hint, waitsForNodesHint))
		},
		Removed: func(err error) { n.end(clusterError(err)) }})
	if err != nil {
		return n.otherToken(err)
	}
	n.onClose("cluster", func(context.Context) error { return n.peers.cluster.Close() })
	return clusterError(cluster.Returning{Cluster: n.peers.cluster}.Replace(ctx))
}

// removed says that this node was removed from its cluster, as far as it knows one.
func (p *peers) removed() error {
	if p.cluster == nil {
		return nil
	}
	return p.cluster.SelfRemoved()
}

// checkToken refuses a token's file that cannot be used before other nodes are told anything.
func (c *core) checkToken() error {
	if _, err := c.cfg.FS.Stat(c.dir.tokenFile()); err != nil || c.cfg.AuthToken != "" {
		return nil
	}
	if _, _, err := auth.LoadOrCreateToken(c.cfg.FS, c.dir.tokenFile(), nil); err != nil {
		return tokenError(err)
	}
	return nil
}

// sharedToken is the operator token of the cluster as this node has it. The node that
// founds draws it, whether or not it asks callers for it: others may.
func (c *core) sharedToken() (string, error) {
	if c.cfg.AuthToken != "" {
		return c.cfg.AuthToken, nil
	}
	token, _, err := auth.LoadOrCreateToken(c.cfg.FS, c.dir.tokenFile(), nil)
	return token, err
}

// takeToken keeps the operator token that the cluster has. One that this node was given is
// another one never: callers would be let in by some nodes and not by others. What a node
// held before it joined is replaced.
func (c *core) takeToken(token string) error {
	own, where := c.cfg.AuthToken, "MNEME_AUTH_TOKEN"
	if _, err := c.cfg.FS.Stat(c.dir.tokenFile()); own == "" && err == nil && (facts{c.dir}).identity().Cluster != "" {
		if own, _, err = auth.LoadOrCreateToken(c.cfg.FS, c.dir.tokenFile(), nil); err != nil {
			return err
		}
		where = c.dir.tokenFile()
	}
	switch {
	case token == "" || own == token:
		return nil
	case own != "":
		return fmt.Errorf("%w: %s", cluster.ErrOtherToken, where)
	}
	if err := storage.MkdirAll(c.cfg.FS, filepath.Dir(c.dir.tokenFile()), 0o700); err != nil {
		return err
	}
	return storage.ReplaceFile(c.cfg.FS, c.dir.tokenFile(), []byte(token+"\n"), 0o600)
}

// clusterError says for people why a node has no cluster.
func clusterError(err error) error {
	var e *cluster.Error
	if !errors.As(err, &e) {
		return err
	}
	s := &StartError{Kind: StartOther, Message: e.Message, Hint: e.Hint, Err: err}
	switch e.Kind {
	case cluster.KindUsage, cluster.KindCertificates, cluster.KindDuplicate, cluster.KindAddress, cluster.KindOtherCluster:
		s.Kind = StartUsage
	case cluster.KindRefused, cluster.KindRemoved:
		s.Kind = StartDamaged
	case cluster.KindWaiting:
		s.Kind = StartUnreachable
	}
	return s
}

// founds reports whether this node is to found the Raft groups of its cluster.
func (p *peers) founds() bool { return p != nil && p.cluster.Facts().Founder }

// mayOpen refuses to open a Raft group in which this node has a vote, and of which
// nothing is left in dir: it would vote a second time in a term.
func (p *peers) mayOpen(group, dir string) error {
	exists := false
	for _, name := range []string{"raft.db", "membership"} {
		_, err := os.Stat(filepath.Join(dir, name))
		exists = exists || err == nil
	}
	return clusterError(p.cluster.CheckGroup(group, exists))
}

// transport reaches the other replicas of a Raft group.
func (p *peers) transport(group string) (raftfsm.Transport, error) {
	service := "raft/" + group
	l, err := p.port.Service(service)
	if err != nil {
		return nil, err
	}
	self := p.cluster.Self()
	return raftfsm.NewTransport(raftfsm.Network{ID: self.Name, Addr: self.Peer, Listener: l, Logger: p.c.cfg.Logger, Saw: cluster.Witness{Cluster: p.cluster}.Saw(group),
		Dial: func(ctx context.Context, addr, id string) (net.Conn, error) {
			return cluster.Addresses{Cluster: p.cluster}.Dial(ctx, addr, id, service)
		}}), nil
}

// shareLog makes the server of the log one of several, and the stream one that begins with
// a copy at each of those that found the cluster.
func (p *peers) shareLog(server *eventlog.ServerOptions, stream *eventlog.StreamConfig) {
	if p == nil {
		return
	}
	facts := p.cluster.Facts()
	routes := []string{p.cluster.Self().Route}
	for _, m := range facts.Members {
		if m.Name != facts.Name() {
			routes = append(routes, m.Route)
		}
	}
	server.Name = facts.Name()
	server.Cluster = &eventlog.ClusterOptions{Name: facts.Cluster, Addr: p.c.cfg.Cluster.RouteAddr, Advertise: p.c.cfg.Cluster.RouteAdvertise,
		Peers: routes, TLS: p.certs.Both()}
	stream.Replicas, stream.AnyReplicas, stream.AckTimeout = p.firstCopies(), true, appendTimeout
}

// firstCopies is how many copies the first stream of a cluster has: those that as many
// nodes call for as found it.
func (p *peers) firstCopies() int {
	founders := p.c.cfg.Cluster.Expect
	if founders == 2 {
		return 2
	}
	return wantedCopies(founders, 0)
}

// server is the name of this node's log server among several; "" if it is alone, or
// somebody else's.
func (p *peers) server() string {
	if p == nil || p.c.cfg.NATSURL != "" {
		return ""
	}
	return p.cluster.Self().Name
}

// openKeyGroup opens the group that keeps the keys, joins it, and takes in what it has
// agreed on while this node was away.
func (n *Node) openKeyGroup(ctx context.Context) error {
	p := n.peers
	if p == nil {
		return nil
	}
	if err := p.mayOpen(groupKeys, n.dir.keyGroup()); err != nil {
		return err
	}
	transport, err := p.transport(groupKeys)
	if err != nil {
		return err
	}
	client := rpc.NewClient(p.port, keygroup.Service)
	p.keys, err = keygroup.Open(keygroup.Options{Dir: n.dir.keyGroup(), FS: n.files, Sealer: n.keyGroupSealer(),
		ID: p.cluster.Self().Name, Keys: n.keys, Found: p.founds(), TermFloor: p.cluster.Facts().TermFloor, Transport: transport, Call: client.Call, Logger: n.cfg.Logger})
	if err != nil {
		client.Close()
		return startError("group of keys", err)
	}
	n.onClose("group of keys", func(ctx context.Context) error {
		client.Close()
		p.handOver(ctx, p.keys.Raft())
		return p.keys.Close()
	})
	server, err := rpc.Serve(p.port, keygroup.Service, p.keys.Methods(), n.cfg.Logger)
	if err != nil {
		return err
	}
	n.onClose("calls for keys", server.Close)
	p.cluster.Serve(groupKeys, p.keys.Raft())
	if err := p.cluster.JoinGroup(ctx, groupKeys); err != nil {
		return clusterError(err)
	}
	return p.until(ctx, "the keys that the other nodes have", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, sayEvery) // to say why, which it does at its end
		defer cancel()
		return p.keys.CatchUp(ctx)
	})
}

// sayEvery is how often a node that waits says for what.
const sayEvery = 5 * time.Second

// until tries f until it succeeds or this node hears that it was removed, and says every
// now and then what it waits for.
func (p *peers) until(ctx context.Context, what string, f func(context.Context) error) error {
	const every = 100 * time.Millisecond
	for said, told := time.Now(), ""; ; {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if gone := p.cluster.SelfRemoved(); gone != nil {
			return clusterError(gone)
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			why, hint := strings.ReplaceAll(err.Error(), "\n", "; "), waitsForNodesHint
			if alone, helps := (cluster.Returning{Cluster: p.cluster}).Alone(ctx); alone != "" {
				if why, hint = alone, helps; alone != told {
					p.c.cfg.Logger.Warn("waiting for "+what+": "+why, "hint", hint)
				}
				told = alone
			} else {
				p.c.cfg.Logger.Info("waiting for "+what, "why", why)
			}
			p.waitsFor("this node waits for "+what, why, hint)
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

// handOverFor bounds the handing over of a group, for which two round trips are enough.
const handOverFor = 2 * time.Second

// handOver gives a group to another node before this one leaves it.
func (p *peers) handOver(ctx context.Context, g interface {
	Leader() (id, addr string)
	TransferLeadership(ctx context.Context) error
}) {
	if p == nil {
		return
	}
	if id, _ := g.Leader(); id != p.cluster.Self().Name {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverFor)
	defer cancel()
	if err := g.TransferLeadership(ctx); err != nil && !errors.Is(err, raftfsm.ErrNoPeer) && !errors.Is(err, raftfsm.ErrNotLeader) {
		p.c.cfg.Logger.Warn("the leadership was not handed over; the others elect", "err", err)
	}
}

// renewKeys begins a new raft.db of the group of keys, under the present storage key.
func (p *peers) renewKeys(ctx context.Context) error {
	if p == nil {
		return nil
	}
	return p.keys.Raft().Renew(ctx)
}
