package peer

import (
	"net"
	"strconv"
	"testing"
	"time"
)

type from struct {
	net.Conn
	addr string
}

func (f *from) RemoteAddr() net.Addr { return f }
func (f *from) Network() string      { return "tcp" }
func (f *from) String() string       { return f.addr }

// Who opens most connections loses them, the oldest first; all others keep theirs.
func TestWhoLosesAConnection(t *testing.T) {
	var g greetings
	fill := func(addr string, n int) (added []net.Conn) {
		t.Helper()
		for range n {
			c := &from{addr: addr}
			if drop := g.add(c); drop != nil {
				t.Fatalf("%s lost a connection, with room", drop.RemoteAddr())
			}
			added = append(added, c)
		}
		return added
	}
	nodes := fill("10.0.0.2:1", 3)
	many := fill("[2001:db8::1]:7", maxGreetings-8)
	fill("10.0.0.9:1", 5)
	for i := range 100 {
		// A newcomer from elsewhere takes the room of the one that has most, too.
		addr := "[2001:db8::1]:8"
		if i%2 == 0 {
			addr = "10.0.0.9:2"
		}
		if drop := g.add(&from{addr: addr}); drop != many[i] {
			t.Fatalf("at %d another connection than the oldest of the greatest share was lost: %v", i, drop.RemoteAddr())
		}
	}
	for _, c := range nodes {
		if _, ok := g.of[c]; !ok {
			t.Error("a node lost its connection to others' silence")
		}
	}
	if len(g.of) != maxGreetings {
		t.Errorf("%d connections", len(g.of))
	}
	g.done(nodes[0])
	if drop := g.add(nodes[0]); drop != nil {
		t.Error("a connection was lost, with room")
	}
}

// A node that starts is asked again and again for what it does not have yet, and warned of
// each time: the first line of each node and reason says it, and then a count.
func TestRefusalsAreSaidOnce(t *testing.T) {
	var r refused
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	said := 0
	say := func(reason string) (leftOut int) {
		ok, leftOut := r.next(reason, at)
		if ok {
			said++
		}
		return leftOut
	}
	for range 50 {
		say("n2 no_service")
		say("n3 no_service")
		say("n3 other_cluster")
	}
	if said != 3 {
		t.Errorf("%d lines are passed", said)
	}
	for i := range 2 * refusalLines {
		say(strconv.Itoa(i))
	}
	if said != refusalLines {
		t.Errorf("%d lines are passed, of ever other reasons", said)
	}
	at = at.Add(time.Minute)
	if leftOut := say("n2 no_service"); said != refusalLines+1 || leftOut != 147+refusalLines+3 {
		t.Errorf("the next minute: %d lines, %d were left out", said, leftOut)
	}
	if leftOut := say("n3 no_service"); leftOut != 0 {
		t.Error("told twice")
	}
}
