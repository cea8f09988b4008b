package node

import (
	"io"
	"net"
	"sync"
	"time"

	"mneme/internal/slots"
)

// limited bounds the connections of a listener. One too many is told so and
// closed at once: left waiting, it would look like a node that hangs.
type limited struct {
	net.Listener
	open  *slots.Pool   // one is taken by each connection
	told  chan struct{} // one element for each that was told so and is not closed yet
	tells bool          // else one too many is only closed: it could not read what is in clear
	close sync.Once
}

func newLimited(l net.Listener, open *slots.Pool, tells bool) *limited {
	return &limited{Listener: l, open: open, told: make(chan struct{}, maxTold), tells: tells}
}

// tooMany is the whole answer to a connection too many. It is sent without
// reading the request.
const tooMany = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/problem+json\r\n\r\n" +
	`{"type":"about:blank","title":"Unavailable","status":503,"code":"unavailable","detail":"too many connections are open","hint":"close some, or try again in a moment"}` + "\n"

const (
	// tellTimeout bounds how long the answer may take, which fits the socket's
	// buffer, and then how long the request is read away.
	tellTimeout = 100 * time.Millisecond
	maxTold     = 128 // connections whose requests are read away side by side
	maxUnread   = 1 << 20
)

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Take() {
			return &limitedConn{Conn: c, l: l}, nil
		}
		l.refuse(c)
	}
}

// refuse tells a connection that it is one too many. What it has sent is read away
// before it is closed: else the system would send a reset, which takes the answer
// away from the client.
func (l *limited) refuse(c net.Conn) {
	if !l.tells {
		_ = c.Close()
		return
	}
	_ = c.SetDeadline(time.Now().Add(tellTimeout))
	_, _ = c.Write([]byte(tooMany))
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		_ = c.Close()
		return
	}
	select {
	case l.told <- struct{}{}:
		go func() {
			if half.CloseWrite() == nil {
				_, _ = io.CopyN(io.Discard, c, maxUnread)
			}
			_ = c.Close()
			<-l.told
		}()
	default:
		_ = c.Close()
	}
}

// Close waits until those that were told so are closed.
func (l *limited) Close() error {
	err := l.Listener.Close()
	l.close.Do(func() {
		for range cap(l.told) {
			l.told <- struct{}{}
		}
	})
	return err
}

type limitedConn struct {
	net.Conn
	l    *limited
	once sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.l.open.Leave)
	return err
}
