package natsapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/events"
)

// Where the servers are somebody else's they give what is published to any of the nodes
// that subscribe, and one agent's captures would reach the log in another order than it
// sent them. So one node at a time takes captures, and hands over without a gap: the next
// one subscribes and holds what comes, the former one ceases, and only then the next one
// goes on with what it holds. While both subscribe the server gives messages to both, so
// that what is published then without waiting for answers may change its order.

// taking is the subscription by which captures come.
type taking struct {
	mu  sync.Mutex
	sub *nats.Subscription // nil while captures are not taken
	// ended is closed once the last message of sub was handed over; the library counts it
	// as gone before.
	ended chan struct{}
	// lost counts messages that came faster than they could be taken, but those of sub.
	lost uint64
}

// takeFor bounds how long the server may take to know of a subscription.
const takeFor = 5 * time.Second

// Take begins to take captures, if they are not taken yet. Those that come wait until
// release is called, which may be called more than once.
func (s *Server) Take() (release func(), err error) {
	s.taking.mu.Lock()
	defer s.taking.mu.Unlock()
	if s.taking.sub != nil {
		return func() {}, nil
	}
	all := events.SpokenAt(s.opt.Server, "*", events.SubjectIn+".>")
	held := make(chan struct{})
	sub, err := s.opt.Conn.QueueSubscribe(all, events.CaptureQueue, func(m *nats.Msg) {
		select {
		case <-held:
		case <-s.ctx.Done():
		}
		s.take(m)
	})
	ended := make(chan struct{})
	if err == nil {
		sub.SetClosedHandler(func(string) { close(ended) })
		err = sub.SetPendingLimits(maxPending, maxPendingBytes)
	}
	if err == nil { // the server must know it before anyone is told to publish
		err = s.opt.Conn.FlushTimeout(min(s.opt.Timeout, takeFor))
	}
	if err != nil {
		if sub != nil {
			_ = sub.Unsubscribe() // the first error says more
		}
		return nil, fmt.Errorf("subscribe to %s: %w", all, err)
	}
	s.taking.sub, s.taking.ended = sub, ended
	return sync.OnceFunc(func() { close(held) }), nil
}

// ceaseLook is how often it is looked whether all is written that was taken.
const ceaseLook = 2 * time.Millisecond

// Cease takes captures no more, and returns once those that were taken are answered.
func (s *Server) Cease(ctx context.Context) error {
	s.taking.mu.Lock()
	defer s.taking.mu.Unlock()
	if s.taking.sub == nil {
		return nil
	}
	if err := s.taking.sub.Drain(); ignoreClosed(err) != nil {
		return fmt.Errorf("cease to take captures: %w", err)
	}
	select {
	case <-s.taking.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	look := time.NewTicker(ceaseLook)
	defer look.Stop()
	for s.under.Load() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.taking.lost += s.taking.current()
	s.taking.sub = nil
	return nil
}

// Taking reports whether captures are taken.
func (s *Server) Taking() bool {
	s.taking.mu.Lock()
	defer s.taking.mu.Unlock()
	return s.taking.sub != nil
}

// stop takes no more captures, and does not wait.
func (t *taking) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sub == nil {
		return nil
	}
	return ignoreClosed(t.sub.Unsubscribe())
}

// dropped counts messages that came faster than they could be taken.
func (t *taking) dropped() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost + t.current()
}

// current is what sub has dropped.
func (t *taking) current() uint64 {
	if t.sub == nil {
		return 0
	}
	n, err := t.sub.Dropped()
	if err != nil {
		return 0 // the surface is closed
	}
	return uint64(n)
}
