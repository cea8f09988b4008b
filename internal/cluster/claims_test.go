package cluster

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/testaddr"
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
// does not believe that the node has left it, and the node runs on.
func TestSilenceEndsNoNodeThatRuns(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n1.stop(t)
	n2.stop(t)
	left := &testNode{id: n1.id, addr: n1.addr, disk: n1.disk}
	n1.addr = testaddr.Reserve(t, 1)[0]
	n1.start(t).formed(t)
	defer left.silent(t)()
	n2.start(t).formed(t)
	n1.log.await(t, "a member knows this node elsewhere")
	n1.stays(t)
	n2.knows(t, left, 1)
	if !n1.cluster.knowsAt(n1) {
		t.Error("it has moved back")
	}
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
