package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// copied is a copy of a node's data directory on an address of its own.
func (n *testNode) copied(t *testing.T) *testNode {
	t.Helper()
	facts, _ := n.disk.Load()
	twin := &testNode{id: n.id, dir: n.dir, addr: testaddr.Reserve(t, 1)[0], opt: n.opt, net: n.net, disk: &disk{facts: facts}}
	twin.opt.Join = nil
	return twin
}

// ends waits until a node is told to end since another one has its place.
func (n *testNode) ends(t *testing.T, other *testNode) {
	t.Helper()
	var e *Error
	if err := n.wasRemoved(t); !errors.As(err, &e) || e.Kind != KindDuplicate || !strings.Contains(err.Error(), "in use by the node "+n.id+" at "+other.addr) {
		t.Error(err)
	}
}

// asks waits until a node has asked the others that it knows once more.
func (n *testNode) asks(t *testing.T) {
	t.Helper()
	told := func(is bool) bool {
		n.cluster.mu.Lock()
		defer n.cluster.mu.Unlock()
		n.cluster.forming.told = is && n.cluster.forming.told
		return n.cluster.forming.told
	}
	told(false)
	for ctx := limited(t); !told(true); {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s asks nobody", n.id)
		}
	}
}

// stays checks that a node was not told to end.
func (n *testNode) stays(t *testing.T) {
	t.Helper()
	select {
	case err := <-n.removed:
		t.Error(err)
	default:
	}
}

// A process that is far away, or waits for its disk, holds its address.
func TestAProcessThatIsSlowHoldsItsAddress(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	elsewhere := claim{Member{Name: n1.disk.identity().Node, Peer: testaddr.Reserve(t, 1)[0], Version: 2}, n1.addr}
	held := func(why string) {
		t.Helper()
		if p, err := (Addresses{n2.cluster}).heldBy(limited(t), elsewhere); err != nil || p == nil {
			t.Errorf("%s: held by %+v, %v", why, p, err)
		}
	}
	n1.cluster.mu.Lock() // as while facts are written to a disk that stalls
	held("a disk that stalls")
	n1.cluster.mu.Unlock()
	n1.net.far(n1.addr, 300*time.Millisecond)
	held("a far node")
	n1.net.far(n1.addr, time.Second)
	held("a node at the other end of nowhere")
	n1.net.far(n1.addr, 0)
	n1.net.set(n1.addr, true)
	if p, err := (Addresses{n2.cluster}).heldBy(limited(t), elsewhere); err != nil || p != nil {
		t.Errorf("a hole is held by %+v, %v", p, err)
	}
}

// A process that took a connection and does not answer holds its address, also where the network
// loses the next one: only who refuses it is gone.
func TestAProcessThatWasReachedHoldsItsAddress(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n1.stop(t)
	certs, err := peer.OpenCertificates(n1.dir, n1.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := peer.Listen(peer.Options{Addr: n1.addr, Certificates: certs, Self: n1.disk.identity})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	asked := make(chan struct{}, 2)
	server, err := rpc.Serve(port, Service, map[string]rpc.Method{"who": rpc.Handle(func(context.Context, peer.Identity, struct{}) (presence, error) {
		n1.net.set(n1.addr, true)
		asked <- struct{}{}
		return presence{}, nil
	})}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(t.Context())
	left := claim{Member{Name: n1.disk.identity().Node, Peer: testaddr.Reserve(t, 1)[0], Version: 2}, n1.addr}
	if p, err := (Addresses{n2.cluster}).heldBy(limited(t), left); err != nil || p == nil || p.sign == nil {
		t.Errorf("held by %+v, %v", p, err)
	}
	<-asked
}

// An address that leads to the node of a claim is held by nobody: the node says that it is elsewhere
// by now, or asks itself.
func TestANodeHoldsNothingAgainstItself(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	self := n1.cluster.Self()
	for _, tc := range []struct {
		who    *testNode
		says   Member
		nobody bool
	}{
		{n2, self, true},
		{n2, self.at(self.Peer, self.Version+1), false},
		{n2, self.at(testaddr.Reserve(t, 1)[0], self.Version), false},
		{n1, self.at(self.Peer, self.Version+1), true},
	} {
		p, err := Addresses{tc.who.cluster}.heldBy(limited(t), claim{tc.says, n1.addr})
		if err != nil || (p == nil) != tc.nobody {
			t.Errorf("%s looks into %+v: held by %+v, %v", tc.who.id, tc.says, p, err)
		}
	}
}

// Two copies of a data directory were started while nobody was there who could tell. Of those
// one is the node for the others, and one ends.
func TestOfTwoCopiesOneEnds(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n1.stop(t)
	n2.stop(t)
	twins := [2]*testNode{n1.copied(t), n1.copied(t)}
	for _, n := range twins {
		n.opt.News = firstWait
		n.start(t).formed(t)
	}
	n2.start(t).formed(t)
	n2.log.await(t, "a node has another address than before")
	stays, goes := twins[0], twins[1]
	if !n2.cluster.knowsAt(stays) {
		stays, goes = goes, stays
	}
	goes.ends(t, stays)
	goes.stop(t)
	stays.stays(t)
	n2.knows(t, stays, 2)
}

func (c *Cluster) knowsAt(n *testNode) bool {
	for _, m := range c.Facts().Members {
		if m.Name == n.disk.identity().Node && m.Peer == n.addr {
			return true
		}
	}
	return false
}

// A node was cut off with one of the others while a copy took its place with another one. When
// they reach each other it ends, and the copy does not, though each has one that knows it.
func TestANodeWhosePlaceIsTakenEnds(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	n1, n2, n3 := nodes[0], nodes[1], nodes[2]
	for _, n := range nodes {
		n.net = newHoles()
		n.start(t)
	}
	one(t, nodes...)
	n1.cluster.Serve("9", led{}) // it hears of no leader
	n1.asks(t)                   // so it does again, though each of the others knows where it is
	twin := n1.copied(t)
	twin.net = newHoles()
	cut := func(hole bool) {
		for _, a := range []*testNode{n1, n2} {
			for _, b := range []*testNode{n3, twin} {
				a.net.set(b.addr, hole)
				b.net.set(a.addr, hole)
			}
		}
	}
	cut(true)
	twin.start(t).formed(t)
	n3.log.await(t, "a node has another address than before")
	n3.knows(t, twin, 2)
	n2.knows(t, n1, 1)
	cut(false)
	n1.ends(t, twin)
	n1.stop(t)
	n2.log.await(t, "a node has another address than before")
	n2.knows(t, twin, 2)
	twin.stays(t)
}

// Somebody else has the address that a node has left, and says nothing: whoever was away then
// does not believe that the node has left it, until nobody is there, and the node runs on.
func TestSilenceEndsNoNodeThatRuns(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n1.stop(t)
	n2.stop(t)
	left := &testNode{id: n1.id, addr: n1.addr, disk: n1.disk}
	n1.addr = testaddr.Reserve(t, 1)[0]
	n1.start(t).formed(t)
	end := left.silent(t)
	defer end()
	n2.start(t).formed(t)
	n1.log.await(t, "a member knows this node elsewhere")
	n1.stays(t)
	n2.knows(t, left, 1)
	if !n1.cluster.knowsAt(n1) {
		t.Error("it has moved back")
	}
	end() // it says again where it is
	n2.log.await(t, "a node has another address than before")
	n2.knows(t, n1, 2)
}

// A replica is reached where its node is known to be, also where that is far away and what was
// left of it still listens near by.
func TestAReplicaThatIsFarAwayIsReached(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	there := testaddr.Reserve(t, 1)[0]
	n2.cluster.mu.Lock()
	n2.cluster.forming.facts = n2.cluster.forming.facts.at(n1.disk.identity().Node, there, 2)
	n2.cluster.mu.Unlock()
	dial := func() string {
		conn, err := Addresses{n2.cluster}.Dial(limited(t), n1.addr, n1.disk.identity().Node, Service)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.RemoteAddr().String()
	}
	if at := dial(); at != n1.addr {
		t.Errorf("nobody is where it is known to be: it is reached at %s", at)
	}
	certs, err := peer.OpenCertificates(n1.dir, n1.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := peer.Listen(peer.Options{Addr: there, Certificates: certs, Self: n1.disk.identity})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	if _, err := port.Service(Service); err != nil {
		t.Fatal(err)
	}
	n1.net.far(there, 100*time.Millisecond)
	for range 5 {
		if at := dial(); at != there {
			t.Errorf("it is reached at %s, not %s", at, there)
		}
	}
}

// However much is said of one node, its place is looked at once at a time.
func TestOnePlaceIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	c := Addresses{n2.cluster}
	n1.net.set(n1.addr, true)
	h := hello{Self: Member{Name: "z-1", ID: "z", Peer: "z:1", Version: 1}, Cluster: c.Facts().Cluster}
	for i := range 100 {
		h.Members = append(h.Members, Member{Name: n1.disk.identity().Node, ID: "n1", Peer: fmt.Sprint("h:", i), Version: uint64(2 + i)})
	}
	_, asked, err := c.take(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range asked {
		if q != asked[0] {
			t.Error("a second look")
		}
	}
}

// A node's disk was full when it was to store news. It took no others until it was started again,
// though there was room by then.
func TestNewsAreTakenAfterAFullDisk(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	full := make(chan struct{}, 1)
	n2.disk.fails(func(Facts) error {
		select {
		case full <- struct{}{}:
		default:
		}
		return syscall.ENOSPC
	})
	n1.stop(t)
	n1.addr = testaddr.Reserve(t, 1)[0]
	n1.start(t).formed(t)
	<-full
	n2.disk.fails(nil)
	n2.log.await(t, "a node has another address than before")
	n2.knows(t, n1, 2)
	if _, err := n2.cluster.vote(t.Context(), n1.disk.identity(), candidacy{}); err != nil {
		t.Error(err)
	}
}

// at is the member elsewhere.
func (m Member) at(addr string, version uint64) Member {
	m.Peer, m.Version = addr, version
	return m
}

// knowsOne is a node n1, with addresses of version 3, that knows one other node, n2, with the same.
func knowsOne() (c Addresses, self, other Member) {
	f := fresh("n1", 0)
	f.self.Version, f.settled = 3, true
	other = Member{Name: "n2-x", ID: "n2", Peer: "n2:1", Version: 3}
	f.facts.Cluster, f.facts.Members = "c", []Member{f.self, other}
	c = Addresses{&Cluster{forming: f, log: slog.New(slog.DiscardHandler)}}
	c.presence.Store(c.present())
	return c, f.self, other
}

// What is said of a member's address is looked into where it may be news, and only there.
func TestWhatIsLookedInto(t *testing.T) {
	_, self, other := knowsOne()
	third := Member{Name: "n3-x", ID: "n3", Peer: "n3:1", Version: 1}
	for _, tc := range []struct {
		what   string
		said   hello
		of     Member
		starts bool
		want   claim
	}{
		{what: "newer", said: hello{Self: third, Cluster: "c"}, of: other.at("n2:9", 4), want: claim{other.at("n2:9", 4), "n2:1"}},
		{what: "older", said: hello{Self: third, Cluster: "c"}, of: other.at("n2:9", 2)},
		{what: "the same place", said: hello{Self: third, Cluster: "c"}, of: other.at("n2:1", 4)},
		{what: "a stranger", said: hello{Self: third, Cluster: "c"}, of: third},
		{what: "of another cluster", said: hello{Self: third, Cluster: "d"}, of: other.at("n2:9", 4)},
		{what: "of no cluster", said: hello{Self: third}, of: other.at("n2:9", 4)},
		{what: "a copy", said: hello{Self: other, Cluster: "c", Settled: true}, of: other.at("n2:9", 3), want: claim{other.at("n2:9", 3), "n2:1"}},
		{what: "a copy that has not settled", said: hello{Self: other, Cluster: "c"}, of: other.at("n2:9", 3)},
		{what: "a copy, by hearsay", said: hello{Self: third, Cluster: "c", Settled: true}, of: other.at("n2:9", 3)},
		{what: "of this node, newer", said: hello{Self: third, Cluster: "c"}, of: self.at("n1:9", 5), want: claim{self.at("n1:1", 6), "n1:9"}},
		{what: "of this node, as old", said: hello{Self: third, Cluster: "c"}, of: self.at("n1:9", 3), want: claim{self.at("n1:1", 4), "n1:9"}},
		{what: "of this node, older", said: hello{Self: third, Cluster: "c"}, of: self.at("n1:9", 2)},
		{what: "where this node is", said: hello{Self: third, Cluster: "c"}, of: self.at("n1:1", 5)},
		{what: "of this node, which starts", said: hello{Self: third, Cluster: "c"}, of: self.at("n1:9", 5), starts: true},
	} {
		c, _, _ := knowsOne()
		c.forming.settled = !tc.starts
		if got, found := c.forming.claimed(tc.said, tc.of); found != (tc.want != claim{}) || found && got != tc.want {
			t.Errorf("%s: %+v, %t; want %+v", tc.what, got, found, tc.want)
		}
	}
}

// A look that ends late moves nobody: the member is known elsewhere by then, where nobody has
// looked. And who puts its own address right is known to nobody there yet.
func TestALookThatEndsLate(t *testing.T) {
	c, self, other := knowsOne()
	conclude := func(cl claim, held *presence, want Member) {
		t.Helper()
		if err := c.concluded(cl, held); err != nil {
			t.Fatal(err)
		}
		if got := c.forming.facts.Members[1]; got != want {
			t.Errorf("%+v came of %+v, want %+v", got, cl, want)
		}
	}
	conclude(claim{other.at("n2:9", 4), "n2:0"}, nil, other)
	conclude(claim{other.at("n2:9", 4), "n2:1"}, &presence{Self: other}, other)
	conclude(claim{other.at("n2:9", 4), "n2:1"}, nil, other.at("n2:9", 4))
	conclude(claim{other.at("n2:8", 3), "n2:9"}, nil, other.at("n2:9", 4))
	c.forming.told = true
	conclude(claim{self.at("n1:1", 5), "n1:9"}, nil, other.at("n2:9", 4))
	if c.forming.self.Version != 5 || c.forming.told {
		t.Errorf("it has version %d, and is told: %t", c.forming.self.Version, c.forming.told)
	}
}

// Of two processes that hear of each other one ends, and only where a member knows the other one.
func TestWhoEndsOfTwo(t *testing.T) {
	for _, tc := range []struct {
		what string
		told bool // of this one, run-n1 with version 3
		held presence
		ends bool
	}{
		{"a newer one", true, presence{Self: Member{Version: 4}, Run: "a", Told: true}, true},
		{"an older one", true, presence{Self: Member{Version: 2}, Run: "a", Told: true}, false},
		{"a smaller run", true, presence{Self: Member{Version: 3}, Run: "a", Told: true}, true},
		{"a greater run", true, presence{Self: Member{Version: 3}, Run: "z", Told: true}, false},
		{"an older one, and nobody knows this one", false, presence{Self: Member{Version: 2}, Run: "z", Told: true}, true},
		{"one that nobody knows", true, presence{Self: Member{Version: 4}, Run: "a"}, false},
		{"neither is known", false, presence{Self: Member{Version: 4}, Run: "a"}, false},
		{"silence", false, presence{Self: Member{Version: 4}, Told: true}, false},
		{"itself", false, presence{Self: Member{Version: 4}, Run: "run-n1", Told: true}, false},
	} {
		c, _, _ := knowsOne()
		var ended error
		c.opt.Removed = func(err error) { ended = err }
		c.forming.told = tc.told
		c.mu.Lock() // who asks meanwhile hears of it, too
		c.yield(&tc.held)
		_, err := c.who(t.Context(), peer.Identity{}, struct{}{})
		c.mu.Unlock()
		if (ended != nil) != tc.ends || (memory.CodeOf(err) == memory.CodeUnavailable) != tc.ends {
			t.Errorf("%s: ends with %v, says %v", tc.what, ended, err)
		}
	}
}

// A node counts as known where it is only by an answer that says so.
func TestWhoIsKnownWhereItIs(t *testing.T) {
	_, self, other := knowsOne()
	for what, tc := range map[string]struct {
		said hello
		told bool
	}{
		"it is":           {hello{Cluster: "c", Members: []Member{self, other}}, true},
		"newer":           {hello{Cluster: "c", Members: []Member{self.at("n1:1", 4)}}, true},
		"older":           {hello{Cluster: "c", Members: []Member{self.at("n1:1", 2)}}, false},
		"elsewhere":       {hello{Cluster: "c", Members: []Member{self.at("n1:9", 3)}}, false},
		"not at all":      {hello{Cluster: "c", Members: []Member{other}}, false},
		"another cluster": {hello{Cluster: "d", Members: []Member{self}}, false},
		"held in silence": {hello{Cluster: "c", Members: []Member{self}, Held: &presence{Self: self.at("n1:9", 3)}}, false},
	} {
		c, _, _ := knowsOne()
		if err := c.knownBy(tc.said, true); err != nil || c.forming.told != tc.told {
			t.Errorf("%s: %t, %v", what, c.forming.told, err)
		}
	}
	c, _, _ := knowsOne()
	held := hello{Cluster: "c", Held: &presence{Self: self.at("n1:9", 2), Run: "a"}}
	var e *Error
	if err := c.knownBy(held, true); !errors.As(err, &e) || e.Kind != KindDuplicate {
		t.Errorf("it begins beside a process that answers: %v", err)
	}
	if err := c.knownBy(held, false); err != nil || c.forming.yielded {
		t.Errorf("it ends for one that no member knows: %v, %t", err, c.forming.yielded)
	}
}
