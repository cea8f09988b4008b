package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// network carries what the nodes of a team say to each other. Every node advertises the
// addresses of relays in front of its own, and a relay tells by the process that opened a
// connection from whom it comes. So each directed link can be cut, slowed and made to lose
// by itself, without root.
//
// A link that is cut holds what was sent on it, closed connections too, and delivers all
// of it once it is healed: that is what two ends of a TCP connection see of packets that
// are lost for a while.
type network struct {
	t     testing.TB
	nodes func() []*process
	done  chan struct{}
	work  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	changed chan struct{} // closed when the rules change
	rules   map[link]rule
	open    map[net.Conn]bool
	listen  []net.Listener
	random  *rand.Rand

	count struct{ held, late, strangers atomic.Uint64 }
}

func (n *network) held() uint64      { return n.count.held.Load() }
func (n *network) late() uint64      { return n.count.late.Load() }
func (n *network) strangers() uint64 { return n.count.strangers.Load() }

// wire is what carries what the nodes of a team say to each other, and can fail: a network
// of relays, or one of namespaces, in which packets are lost.
type wire interface {
	set(r rule, links ...link)
	heal()
	// held counts the connections that were held on links that are cut, or the packets that
	// were dropped there; late the pieces that came late; strangers the connections that no
	// node opened.
	held() uint64
	late() uint64
	strangers() uint64
}

// plane is one of the two things that nodes use a network for.
type plane string

const (
	raftPlane plane = "raft" // the peer port: Raft, forwarded writes, snapshots
	logPlane  plane = "nats" // the routes between log servers
)

var bothPlanes = []plane{raftPlane, logPlane}

// link is one direction between two nodes.
type link struct {
	from, to string
	plane    plane
}

// rule says what happens on a link.
type rule struct {
	cut   bool
	delay time.Duration
	lose  float64 // the part of what is sent that comes a retransmission later
}

// retransmission is how late lost data comes: the least time that Linux waits for an
// acknowledgement.
const retransmission = 200 * time.Millisecond

func newNetwork(t testing.TB, seed uint64, nodes func() []*process) *network {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: partitions need /proc to tell which node opened a connection, and this is " + runtime.GOOS)
	}
	return &network{t: t, nodes: nodes, done: make(chan struct{}), changed: make(chan struct{}), rules: map[link]rule{}, open: map[net.Conn]bool{},
		random: rand.New(rand.NewPCG(seed, 1))}
}

// relay listens in front of a node's address and returns where.
func (n *network) relay(to string, p plane, target string) string {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(n.t, err)
	n.listen = append(n.listen, l)
	n.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			n.work.Go(func() { n.carry(c, to, p, target) })
		}
	})
	return l.Addr().String()
}

// close ends all relays and their connections.
func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	close(n.done)
	for c := range n.open {
		_ = c.Close()
	}
	n.mu.Unlock()
	for _, l := range n.listen {
		_ = l.Close()
	}
	n.work.Wait()
}

// keep notes a connection until it is closed; false: the network is.
func (n *network) keep(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[c] = !n.closed
	return !n.closed
}

func (n *network) drop(c net.Conn) {
	n.mu.Lock()
	delete(n.open, c)
	n.mu.Unlock()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // whoever still sends is refused
	}
	_ = c.Close()
}

// carry is one connection from its opening to its end.
func (n *network) carry(in net.Conn, to string, p plane, target string) {
	defer n.drop(in)
	if !n.keep(in) {
		return
	}
	from, err := n.opener(in)
	if err != nil {
		n.count.strangers.Add(1) // its process was killed meanwhile
		return
	}
	there, back := link{from, to, p}, link{to, from, p}
	if !n.pass(there, time.Time{}) {
		return
	}
	out, err := net.Dial("tcp", target)
	if err != nil {
		return // the node does not run
	}
	defer n.drop(out)
	if !n.keep(out) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { n.pump(in, out, there) })
	both.Go(func() { n.pump(out, in, back) })
	both.Wait()
}

// piece is some bytes under way; the last one has none.
type piece struct {
	data []byte
	due  time.Time
}

// pump carries one direction of a connection.
func (n *network) pump(from, to net.Conn, l link) {
	under := make(chan piece, 256)
	broken := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(under)
		buf := make([]byte, 32<<10)
		for {
			k, err := from.Read(buf)
			if k > 0 {
				select {
				case under <- piece{append([]byte(nil), buf[:k]...), n.due(l)}:
				case <-broken:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	var err error
	for p := range under {
		if !n.pass(l, p.due) {
			err = net.ErrClosed
			break
		}
		if _, err = to.Write(p.data); err != nil {
			break
		}
	}
	close(broken)
	if err == nil && n.pass(l, time.Time{}) {
		if tcp, ok := to.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	} else {
		_, _ = to.Close(), from.Close()
	}
	reader.Wait()
}

// due is when what is sent now arrives.
func (n *network) due(l link) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rules[l]
	wait := r.delay
	if r.lose > 0 && n.random.Float64() < r.lose {
		wait += retransmission
	}
	if wait == 0 {
		return time.Time{}
	}
	n.count.late.Add(1)
	return time.Now().Add(wait)
}

// pass waits until a time, and while the link is cut; false: the network was closed.
func (n *network) pass(l link, due time.Time) bool {
	if wait := time.Until(due); !due.IsZero() && wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-n.done:
			return false
		}
	}
	for waited := false; ; waited = true {
		n.mu.Lock()
		cut, changed, closed := n.rules[l].cut, n.changed, n.closed
		n.mu.Unlock()
		if closed {
			return false
		}
		if !cut {
			return true
		}
		if !waited {
			n.count.held.Add(1)
		}
		select {
		case <-changed:
		case <-n.done:
			return false
		}
	}
}

// set gives links a rule. A node reaches itself whatever the rules are.
func (n *network) set(r rule, links ...link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		if l.from != l.to {
			n.rules[l] = r
		}
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// heal takes all rules away.
func (n *network) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.rules)
	close(n.changed)
	n.changed = make(chan struct{})
}

// between are the links from some nodes to others.
func between(from, to []*process, planes ...plane) (links []link) {
	for _, a := range from {
		for _, b := range to {
			for _, p := range planes {
				links = append(links, link{a.id, b.id, p})
			}
		}
	}
	return links
}

// around are all links between some nodes and the rest of the team, in both directions.
func (tm *team) around(some []*process, planes ...plane) []link {
	rest := tm.without(some...)
	return append(between(some, rest, planes...), between(rest, some, planes...)...)
}

// without are the nodes that are not some.
func (tm *team) without(some ...*process) (rest []*process) {
	for _, p := range tm.nodes {
		in := false
		for _, s := range some {
			in = in || s == p
		}
		if !in {
			rest = append(rest, p)
		}
	}
	return rest
}

// opener is the node whose process opened a connection.
func (n *network) opener(c net.Conn) (string, error) {
	inode, err := socketInode(c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr))
	if err != nil {
		return "", err
	}
	want := "socket:[" + inode + "]"
	for _, p := range n.nodes() {
		pid := p.pid.Load()
		if pid == 0 {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		files, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, f := range files {
			if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && to == want {
				return p.id, nil
			}
		}
	}
	return "", errors.New("no node has the socket")
}

// socketInode finds the socket at local that is connected to remote, both of IPv4.
func socketInode(local, remote *net.TCPAddr) (string, error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer f.Close()
	a, b := procAddr(local), procAddr(remote)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 9 && fields[1] == a && fields[2] == b {
			return fields[9], nil
		}
	}
	return "", errors.Join(lines.Err(), io.EOF)
}

// procAddr is an address as /proc/net/tcp writes it: the four bytes as a number of this
// machine, and the port.
func procAddr(a *net.TCPAddr) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
}
