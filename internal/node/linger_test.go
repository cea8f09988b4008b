package node

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A node that lingers ends when nobody is connected, and not while somebody is: over HTTP, or
// in another way.
func TestLingers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	others, ended := true, 0
	g := newLingering(l, time.Hour, func() bool { return others }, func() { ended++ })
	defer g.Close()
	if g.expired(); ended != 0 {
		t.Fatal("it ended while somebody was connected otherwise")
	}
	others = false
	from, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	c, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if g.expired(); ended != 0 {
		t.Fatal("it ended while somebody was connected")
	}
	for range 2 { // closing twice is one that left
		_ = c.Close()
	}
	if g.expired(); ended != 1 {
		t.Fatal("it goes on")
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if g.expired(); ended != 1 {
		t.Fatal("it ended again")
	}
}

func TestNodeEndsWhenNobodyIsConnected(t *testing.T) {
	t.Parallel()
	cfg := quiet(t.TempDir())
	cfg.Linger = 50 * time.Millisecond
	n := open(t, cfg)
	select {
	case <-n.Done():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	if !errors.Is(n.Err(), ErrIdle) {
		t.Fatalf("it ended with %v", n.Err())
	}
}

// Who is connected to the embedded NATS keeps a node.
func TestNATSCallersAreKnown(t *testing.T) {
	t.Parallel()
	n := open(t, quiet(t.TempDir()))
	if n.nats.HasCallers() {
		t.Fatal("the node's own connections count")
	}
	nc, err := nats.Connect(n.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if !n.nats.HasCallers() {
		t.Fatal("a caller does not count")
	}
}

func TestOnlyANodeOnItsOwnLingers(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"a cluster":        func(c *Config) { c.Cluster = &ClusterConfig{NodeID: "n1"} },
		"an external NATS": func(c *Config) { c.NATSURL = "nats://127.0.0.1:1" },
		"less than none":   func(c *Config) { c.Linger = -1 },
	} {
		c := quiet(t.TempDir())
		c.Linger = time.Minute
		change(&c)
		if err := c.Check(); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}
