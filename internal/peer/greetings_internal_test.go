package peer

import (
	"net"
	"testing"
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
