package cluster

import (
	"context"
	"net"
	"sync"
)

// holes are addresses from which nothing comes any more, not even that nobody is there: what
// is left of a machine that lost its power. They hold for connections that were open, too.
type holes struct {
	mu   sync.Mutex
	addr map[string]bool
}

func newHoles() *holes { return &holes{addr: map[string]bool{}} }

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
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return &overHoles{Conn: c, is: func() bool { return h.is(addr) }, closed: make(chan struct{})}, nil
	}
}

// overHoles is a connection that ends in a hole once its address is one.
type overHoles struct {
	net.Conn
	is     func() bool
	once   sync.Once
	closed chan struct{}
}

func (c *overHoles) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.is() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *overHoles) Write(p []byte) (int, error) {
	if c.is() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *overHoles) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
