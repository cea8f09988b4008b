package node

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"mneme/internal/hangup"
)

// httpServer is an http.Server whose stop ends in time.
type httpServer struct {
	http.Server
	fresh  hangup.Fresh
	log    *slog.Logger
	active atomic.Int64 // requests under way
	cancel context.CancelFunc
}

func (n *Node) newServer(handler http.Handler) *httpServer {
	ctx, cancel := context.WithCancel(context.Background())
	s := &httpServer{log: n.cfg.Logger, cancel: cancel}
	s.Server = http.Server{ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:    log.New(complaints{s.log}, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.active.Add(1)
			defer s.active.Add(-1)
			handler.ServeHTTP(w, r)
		})}
	s.fresh.Watch(&s.Server)
	return s
}

// complaints logs what net/http says. What a connection does wrong before it is let in
// anybody may have it say, as often as they like.
type complaints struct{ log *slog.Logger }

// Write implements io.Writer; it gets one message at a time.
func (c complaints) Write(p []byte) (int, error) {
	level, line := slog.LevelError, strings.TrimSpace(string(p))
	if strings.Contains(line, "TLS handshake error") {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "HTTP server", "message", line)
	return len(p), nil
}

// stopPoll is how often stop looks whether the requests that it cut off are over.
const stopPoll = 5 * time.Millisecond

// stop lets the requests under way end for half of the time that ctx leaves. Then
// it cuts them off, and waits until they are over: a client that sends or reads
// nothing holds up the end of the node no longer than that.
func (s *httpServer) stop(ctx context.Context) error {
	defer s.cancel()
	patient, cancel := ctx, context.CancelFunc(func() {})
	if end, ok := ctx.Deadline(); ok {
		patient, cancel = context.WithTimeout(ctx, time.Until(end)/2)
	}
	defer cancel()
	err := s.fresh.Shutdown(patient, &s.Server)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.log.Warn("requests that did not end are cut off", "requests", s.active.Load())
	s.cancel()
	err = s.Server.Close()
	for s.active.Load() > 0 {
		select {
		case <-time.After(stopPoll):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}
