// Package hangup ends an http.Server without waiting for connections on which nothing was
// asked yet. http.Server.Shutdown gives each of those five seconds, and clients open them
// all the time: Go's has one too many whenever another becomes idle while it connects.
package hangup

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Grace is how long a connection may still begin its first request once its server is to
// end.
const Grace = 200 * time.Millisecond

// Fresh are the connections of one server on which nothing was asked yet. The zero value is
// ready; it is safe for concurrent use.
type Fresh struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool
}

// Watch has f know the server's connections, before it serves. It takes the server's
// ConnState.
func (f *Fresh) Watch(s *http.Server) {
	f.conns = map[net.Conn]struct{}{}
	s.ConnState = f.track
}

func (f *Fresh) track(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(f.conns, c)
	case f.ended: // it was accepted before the listener closed
		_ = c.Close()
	default:
		f.conns[c] = struct{}{}
	}
}

// Shutdown is the server's, but for the connections on which nothing is asked within Grace:
// they are closed.
func (f *Fresh) Shutdown(ctx context.Context, s *http.Server) error {
	hangUp := time.AfterFunc(Grace, f.close)
	defer hangUp.Stop()
	return s.Shutdown(ctx)
}

func (f *Fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for c := range f.conns {
		_ = c.Close() // who connected asked nothing
	}
}
