package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
)

// Recovered are the facts of a node whose data become another cluster, of which it is the
// only member and which it has yet to found: no name of the former cluster is one of it, and
// no term of it up to the floor is used again.
func (f Facts) Recovered(cluster, incarnation string, termFloor uint64) Facts {
	now := Facts{ID: f.ID, Incarnation: incarnation, Cluster: cluster, Founder: true, Shards: f.Shards,
		Former: append(slices.Clone(f.Former), f.Cluster), Origin: f.Origin, TermFloor: max(termFloor, f.TermFloor)}
	self := Member{Name: now.Name(), ID: f.ID, Version: 1}
	names := append(slices.Clone(f.Removed), f.Name())
	for _, m := range f.Members {
		if m.Name == f.Name() {
			self.Peer, self.Route, self.Version = m.Peer, m.Route, m.Version
		}
		names = append(names, m.Name)
	}
	now.Members = []Member{self}
	now, _ = now.without(names...)
	return now
}

// First are the facts of a node that was on its own and becomes the only member of a
// cluster, which it has yet to found, with the shards and the terms that it has. Origin are the
// clusters that it was of.
func First(id, incarnation, cluster string, origin []string, shards int, termFloor uint64) Facts {
	return Facts{ID: id, Incarnation: incarnation, Cluster: cluster, Founder: true, Shards: shards, Origin: origin, TermFloor: termFloor,
		Members: []Member{{Name: Name(id, incarnation), ID: id, Version: 1}}}
}

// Running asks the other members that a node which does not run knows of, also where its Raft
// groups have their replicas, and returns what those say that are there, whatever they say.
// Nobody is there where no connection is made: a process that takes one and says nothing may be
// a node that stands still.
func Running(ctx context.Context, port *peer.Port, facts Facts, replicas []raftfsm.Member) (said []string) {
	client := rpc.NewClient(port, Service)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var targets []rpc.Target
	for _, m := range facts.Members {
		targets = append(targets, target(m))
	}
	for _, r := range replicas {
		if to := (rpc.Target{Addr: hostport(r), Node: r.ID}); !facts.removed(r.ID) && !slices.Contains(targets, to) {
			targets = append(targets, to)
		}
	}
	for _, to := range targets {
		if to.Node == facts.Name() || to.Addr == "" {
			continue
		}
		wg.Go(func() {
			var f Forgotten
			conn, err := port.Dial(ctx, to.Addr, to.Node, Service) // of a call that ends in a hole nothing tells how far it came
			if err == nil {
				_ = conn.Close()
				err = client.Call(ctx, to, "returns", nil, &f)
			}
			text := "waits to take part"
			switch {
			case err == nil && f.Serves:
				text = "runs and serves"
			case err != nil && !reached(err):
				return
			case err != nil:
				text, _ = explain(err)
			}
			mu.Lock()
			defer mu.Unlock()
			said = append(said, fmt.Sprintf("%s at %s %s", idOf(to.Node), to.Addr, text))
		})
	}
	wg.Wait()
	slices.Sort(said)
	return said
}

// reached reports whether an error came after a connection was made.
func reached(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return !errors.As(err, &dns) && (!errors.As(err, &op) || op.Op != "dial")
}
