package cluster

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// holes are addresses from which nothing comes any more, not even that nobody is there: what
// is left of a machine that lost its power. They hold for connections that were open, too. Other
// addresses are far away.
type holes struct {
	mu   sync.Mutex
	addr map[string]bool
	trip map[string]time.Duration // there and back
}

func newHoles() *holes { return &holes{addr: map[string]bool{}, trip: map[string]time.Duration{}} }

func (h *holes) far(addr string, trip time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trip[addr] = trip
}

func (h *holes) away(addr string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trip[addr]
}

func (h *holes) set(addr string, hole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addr[addr] = hole
}

func (h *holes) is(addr string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addr[addr]
}

// connect is how a port connects among holes.
func (h *holes) connect() func(ctx context.Context, addr string) (net.Conn, error) {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, addr string) (net.Conn, error) {
		if h.is(addr) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
		var d net.Dialer
		time.Sleep(h.away(addr))
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return &overHoles{Conn: c, is: func() bool { return h.is(addr) }, away: func() time.Duration { return h.away(addr) }, closed: make(chan struct{})}, nil
	}
}

// overHoles is a connection that ends in a hole once its address is one.
type overHoles struct {
	net.Conn
	is     func() bool
	away   func() time.Duration
	asked  atomic.Bool // something was sent since something came
	once   sync.Once
	closed chan struct{}
}

func (c *overHoles) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.asked.Swap(false) {
		time.Sleep(c.away())
	}
	if c.is() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *overHoles) Write(p []byte) (int, error) {
	c.asked.Store(true)
	if c.is() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *overHoles) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
