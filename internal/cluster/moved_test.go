package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// knows checks where a node knows another one, also on its disk.
func (n *testNode) knows(t *testing.T, other *testNode, version uint64) {
	t.Helper()
	saved, _ := n.disk.Load()
	name := other.disk.identity().Node
	for _, facts := range []Facts{n.formed(t).Facts(), saved} {
		i := slices.IndexFunc(facts.Members, func(m Member) bool { return m.Name == name })
		if i < 0 || facts.Members[i].Peer != other.addr || facts.Members[i].Version != version {
			t.Errorf("%s knows %+v, not %s at %s with version %d", n.id, facts.Members, name, other.addr, version)
		}
	}
}

// at is a member that is known elsewhere.
func (f Facts) at(name, addr string, version uint64) Facts {
	f.Members = slices.Clone(f.Members)
	for i, m := range f.Members {
		if m.Name == name {
			f.Members[i].Peer, f.Members[i].Version = addr, version
		}
	}
	return f
}

// A copy of a data directory that is started on other addresses is refused, and nobody
// looks for the node at the copy's address.
func TestACopyMovesNoAddress(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	n1 := nodes[0]
	for _, n := range nodes {
		n.start(t)
	}
	one(t, nodes...)
	facts, _ := n1.disk.Load()
	for name, tc := range map[string]struct {
		join []string
		move bool
	}{
		"it is told of the node":      {join: []string{n1.addr, nodes[1].addr}},
		"it knows where the node was": {join: []string{nodes[1].addr}},
		"the others know":             {join: nil, move: true}, // it has settled while nobody else was there
	} {
		twin := &testNode{id: "n1", dir: n1.dir, addr: testaddr.Reserve(t, 1)[0], opt: n1.opt, disk: &disk{facts: facts}}
		twin.opt.Join = tc.join
		if tc.move {
			twin.disk.facts = facts.at(facts.Name(), twin.addr, 2)
		}
		twin.start(t).refused(t, KindDuplicate, "a copy of it, is in use by the node n1 at "+n1.addr)
		twin.stop(t)
		for _, n := range nodes {
			if n.knows(t, n1, 1); t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// A node that is told to be found where another one is ends: the others took the address,
// and looked for it there.
func TestAnAddressOfAnotherNodeIsRefused(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n2.stop(t)
	n2.opt.Peer = n1.addr
	n2.start(t).refused(t, KindAddress, n1.addr+", reaches the node n1")
	n2.stop(t)
	n1.knows(t, n2, 1)
	n2.opt.Peer = testaddr.Reserve(t, 1)[0] // nobody listens: others may reach it there
	n2.start(t).formed(t)
}

// All nodes come back at other addresses at once. They know each other there, and replicas
// reach each other, though their groups have yet to hear of it.
func TestAllNodesMoveAtOnce(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	for _, n := range nodes {
		n.start(t)
	}
	one(t, nodes...)
	var join, left []string
	for _, n := range nodes {
		n.stop(t)
		left = append(left, n.addr)
		n.addr = testaddr.Reserve(t, 1)[0]
		join = append(join, n.addr)
	}
	for _, n := range nodes {
		n.opt.Join = join
		n.start(t)
	}
	for _, n := range nodes {
		n.formed(t)
	}
	for _, n := range nodes {
		for i, other := range nodes {
			n.knows(t, other, 2)
			if other == n {
				continue
			}
			for _, addr := range []string{left[i], other.addr} {
				conn, err := Addresses{n.cluster}.Dial(limited(t), addr, other.disk.identity().Node, Service)
				if err != nil {
					t.Fatalf("%s reaches %s by %s: %v", n.id, other.id, addr, err)
				}
				_ = conn.Close()
			}
		}
	}
}

// A node comes back at another address, since its machine was lost without a word: whoever asks
// there waits, also over connections that were open. The others believe it, though that takes
// longer than it waits for them, and replicas reach it beside an address at which nothing is.
func TestANodeWhoseMachineWasLostIsFound(t *testing.T) {
	t.Parallel()
	nodes, net := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3"), newHoles()
	for _, n := range nodes {
		n.net, n.opt.News = net, inquiryTimeout/3 // nobody waits until it was looked into
		n.start(t)
	}
	one(t, nodes...)
	moved, left := nodes[2], nodes[2].addr
	net.set(left, true)
	moved.stop(t)
	moved.addr = testaddr.Reserve(t, 1)[0]
	moved.start(t).formed(t)
	for _, n := range nodes[:2] {
		n.log.await(t, "a node has another address than before")
		n.knows(t, moved, 2)
	}
	for known, group := range map[string]string{moved.addr: left, left: moved.addr} {
		nodes[0].cluster.mu.Lock()
		nodes[0].cluster.forming.facts = nodes[0].cluster.forming.facts.at(moved.disk.identity().Node, known, 2)
		nodes[0].cluster.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // a port waits longer for one address
		conn, err := Addresses{nodes[0].cluster}.Dial(ctx, group, moved.disk.identity().Node, Service)
		cancel()
		if err != nil {
			t.Fatalf("known at %s, in the group at %s: %v", known, group, err)
		}
		_ = conn.Close()
	}
}

// A recovery finds a node that has moved where the group has it, though its own facts do not
// tell.
func TestANodeThatRunsIsFoundWhereTheGroupHasIt(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	facts, name := n1.cluster.Facts(), n2.disk.identity().Node
	facts = facts.at(name, testaddr.Reserve(t, 1)[0], 1)
	if said := Running(limited(t), n1.port, facts, nil); len(said) != 0 {
		t.Errorf("at an address that nobody has: %q", said)
	}
	n1.net.set(n2.addr, true)
	if said := Running(limited(t), n1.port, n1.cluster.Facts(), nil); len(said) != 0 {
		t.Errorf("a machine that is lost: %q", said)
	}
	n1.net.set(n2.addr, false)
	replicas := []raftfsm.Member{{ID: name, Addr: raftfsm.Address(name, n2.addr)}}
	if said := Running(limited(t), n1.port, facts, replicas); len(said) != 1 || !strings.HasPrefix(said[0], "n2 at "+n2.addr+" ") {
		t.Errorf("it is there: %q", said)
	}
	facts, _ = facts.without(name)
	if said := Running(limited(t), n1.port, facts, replicas); len(said) != 0 {
		t.Errorf("it was removed, and the group does not know yet: %q", said)
	}
}

// What others were told wrong of a node's address, the node puts right: while it runs, and
// when it starts.
func TestANodePutsItsAddressRight(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	nowhere := testaddr.Reserve(t, 1)[0]
	wrong := func(version uint64) {
		facts, _ := n2.disk.Load()
		n2.disk.facts = facts.at(n1.disk.identity().Node, nowhere, version)
	}
	n2.stop(t)
	wrong(2)
	n2.start(t).formed(t)
	n2.log.await(t, "a node has another address than before")
	n1.knows(t, n1, 3)
	n2.knows(t, n1, 3)

	n1.stop(t)
	n2.stop(t)
	wrong(7)
	n2.opt.Join = nil
	n2.start(t).formed(t)
	n1.start(t).formed(t)
	n1.knows(t, n1, 8)
	n2.knows(t, n1, 8)
}

// No group takes another address of a replica while its node answers at the one it has.
func TestACopyMovesNoReplica(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	n := others[0].node
	certs, err := peer.OpenCertificates(n.dir, n.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Self: n.disk.identity})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	copied := rpc.NewClient(port, Service)
	defer copied.Close()
	addr := raftfsm.Address(n.disk.identity().Node, port.Addr().String())
	var a leaderAnswer
	for to := founder.node.cluster.Self(); err == nil && !a.Done; {
		err = copied.Call(limited(t), target(to), "join", joinCall{Group: "0", Addr: addr}, &a)
		if name, at, known := strings.Cut(a.Leader, "@"); known { // another one was elected
			to = Member{Name: name, Peer: at}
		}
	}
	if memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "in use by the node n") {
		t.Errorf("a place at %s: %+v, %v", addr, a, err)
	}
	if v := voters(founder)[n.id]; !strings.HasSuffix(v, "@"+n.addr) {
		t.Errorf("it is at %s, not %s", v, n.addr)
	}
}

// The node that leads is listed at an address where it is not. It answers at the one that
// the group has, so it is not removed; by force it is, and ends.
func TestALeaderThatIsListedElsewhereIsAskedBeforeItsRemoval(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	n, c := founder.node, others[0].node.cluster
	name, nowhere := n.disk.identity().Node, testaddr.Reserve(t, 1)[0]
	for _, r := range others {
		r.node.cluster.mu.Lock()
		r.node.cluster.forming.facts = r.node.cluster.forming.facts.at(name, nowhere, 7)
		r.node.cluster.mu.Unlock()
	}
	refusedRemoval(t, c, n.id, false, memory.CodeConflict, "answers at "+n.addr, "stop it first")
	if saved, _ := others[0].node.disk.Load(); len(saved.Removed) != 0 {
		t.Errorf("it was refused and stored: %v", saved.Removed)
	}
	ctx, cancel := context.WithCancel(limited(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Remove(ctx, n.id, true, func(context.Context, string) error { return nil })
		ended <- err
	}()
	select {
	case err := <-n.removed:
		var e *Error
		if !errors.As(err, &e) || e.Kind != KindRemoved {
			t.Error(err)
		}
		cancel() // that the others elect and go on is the group's business
		<-ended
	case err := <-ended:
		t.Errorf("it was not told: the removal ended with %v", err)
	}
}

// joinedTwo are a node that has founded a cluster and one that has joined it; both run.
func joinedTwo(t *testing.T) (n1, n2 *testNode) {
	t.Helper()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2"), "n1", "n2")
	n1, n2 = nodes[0], nodes[1]
	n1.net = newHoles()
	n2.net = n1.net
	n1.opt.Expect, n1.opt.Join = 1, nil
	n2.opt.Expect, n2.opt.Join = 0, []string{n1.addr}
	n1.start(t).formed(t)
	n2.start(t).formed(t)
	return n1, n2
}
