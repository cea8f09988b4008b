package node

import (
	"errors"
	"net"
	"sync"
	"time"
)

// ErrIdle says that the node ended because nobody was connected for as long as it was told to
// linger.
var ErrIdle = errors.New("nobody was connected any more")

// lingering tells when nobody has been connected to a listener for a while.
type lingering struct {
	net.Listener
	after  time.Duration
	others func() bool // reports whether somebody is connected in another way
	idle   func()

	mu    sync.Mutex
	open  int
	timer *time.Timer // runs while open is 0; nil once it is closed
}

func newLingering(l net.Listener, after time.Duration, others func() bool, idle func()) *lingering {
	g := &lingering{Listener: l, after: after, others: others, idle: idle}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(after, g.expired)
	return g
}

func (g *lingering) expired() {
	alone := !g.others()
	g.mu.Lock()
	done := g.timer != nil && g.open == 0 && alone
	if g.timer != nil && !done {
		g.timer.Reset(g.after)
	}
	g.mu.Unlock()
	if done {
		g.idle()
	}
}

func (g *lingering) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
	return &lingeringConn{Conn: c, g: g}, nil
}

// Close ends the waiting, too.
func (g *lingering) Close() error {
	g.mu.Lock()
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.mu.Unlock()
	return g.Listener.Close()
}

type lingeringConn struct {
	net.Conn
	g    *lingering
	once sync.Once
}

func (c *lingeringConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.g.mu.Lock()
		defer c.g.mu.Unlock()
		if c.g.open--; c.g.open == 0 && c.g.timer != nil {
			c.g.timer.Reset(c.g.after)
		}
	})
	return err
}
