package node

import (
	"net"
	"sync"
	"time"
)

// limited bounds the connections of a listener. One too many is told so and
// closed at once: left waiting, it would look like a node that hangs.
type limited struct {
	net.Listener
	free chan struct{} // one element for each connection that may still come
}

func newLimited(l net.Listener, limit int) *limited {
	free := make(chan struct{}, limit)
	for range limit {
		free <- struct{}{}
	}
	return &limited{l, free}
}

// tooMany is the whole answer to a connection too many. It is sent without
// reading the request.
const tooMany = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/problem+json\r\n\r\n" +
	`{"type":"about:blank","title":"Unavailable","status":503,"code":"unavailable","detail":"too many connections are open","hint":"close some, or try again in a moment"}` + "\n"

// tellTimeout bounds how long the answer may take: it fits the socket's buffer.
const tellTimeout = 100 * time.Millisecond

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case <-l.free:
			return &limitedConn{Conn: c, l: l}, nil
		default:
			_ = c.SetWriteDeadline(time.Now().Add(tellTimeout))
			_, _ = c.Write([]byte(tooMany))
			_ = c.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	l    *limited
	once sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.l.free <- struct{}{} })
	return err
}
