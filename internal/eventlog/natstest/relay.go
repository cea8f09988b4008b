package natstest

import (
	"net"
	"sync"
	"testing"
)

// Relay stands between one client and a server. While it is cut it holds what either side
// sends, also on connections that are opened meanwhile: packets that are lost look like
// that.
type Relay struct {
	Addr string
	to   string

	mu     sync.Mutex
	open   chan struct{} // closed unless it is cut
	conns  map[net.Conn]bool
	closed bool
	work   sync.WaitGroup
	l      net.Listener
}

// NewRelay relays to an address until the test ends.
func NewRelay(t testing.TB, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Addr: l.Addr().String(), to: to, open: make(chan struct{}), conns: map[net.Conn]bool{}, l: l}
	close(r.open)
	r.work.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// Cut holds everything until Heal.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = make(chan struct{})
}

// Heal delivers what was held, and all that follows.
func (r *Relay) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.open:
	default:
		close(r.open)
	}
}

func (r *Relay) close() {
	r.Heal()
	r.mu.Lock()
	r.closed = true
	_ = r.l.Close() // it listens, or the test has failed
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

func (r *Relay) wait() {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	<-open
}

// keep notes a connection; false once the relay is closed.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.conns[c] = true
	return true
}

func (r *Relay) accept() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		if r.keep(c) {
			r.work.Go(func() { r.serve(c) })
		}
	}
}

func (r *Relay) serve(c net.Conn) {
	defer c.Close()
	r.wait()
	server, err := net.Dial("tcp", r.to)
	if err != nil || !r.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.copy(server, c) })
	both.Go(func() { r.copy(c, server) })
	both.Wait()
}

func (r *Relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		r.wait()
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
