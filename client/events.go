package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"mneme/memory"
)

// eventStream is the media type of a feed.
const eventStream = "text/event-stream"

// EventsOptions says where a stream begins and how it heals.
type EventsOptions struct {
	As   string // the agent that reads; empty means Options.Agent
	From string // begin after this position; empty means what happens from now on
	// Reconnect is the pause before the first new attempt after a broken
	// connection; it doubles up to 32 times that. 0 means 250 ms.
	Reconnect time.Duration
	// MaxAttempts ends the stream after so many attempts in a row that
	// brought nothing. 0 means 10; less means never.
	MaxAttempts int
	// Away, unless nil, is told by the goroutine of the loop why a stream that was there could not be opened again,
	// once for each time that it is away: the attempts go on.
	Away func(error)
}

// Events yields applied events in order, each exactly once. A broken connection
// is opened again after the last position that the node sent; without From and
// before the first one that is what happens from then on. What no memnode answers there (ErrForeign)
// says nothing of the stream. It ends with an error when
// the first connection fails, when the node refuses, when it stays away, or
// when the context is over (the error then wraps the context's); it ends
// without one only when the loop is left.
func (c *Client) Events(ctx context.Context, namespace string, opts EventsOptions) iter.Seq2[memory.Event, error] {
	if opts.Reconnect <= 0 {
		opts.Reconnect = 250 * time.Millisecond
	}
	if opts.MaxAttempts == 0 {
		opts.MaxAttempts = 10
	}
	return func(yield func(memory.Event, error) bool) {
		s := stream{c: c, namespace: namespace, opts: opts, last: opts.From, pause: opts.Reconnect}
		s.run(ctx, yield)
	}
}

// stream is one iteration of Events.
type stream struct {
	c         *Client
	namespace string
	opts      EventsOptions
	last      string        // position of the last event, or where to begin
	seen      bool          // last came from the stream
	pause     time.Duration // before the next attempt
	failures  int           // attempts in a row without an event
	connected bool          // some attempt was accepted
	open      bool          // this one was
	told      bool          // that it is away
}

// errStop says that the consumer has left the loop.
var errStop = errors.New("stopped")

func (s *stream) run(ctx context.Context, yield func(memory.Event, error) bool) {
	for {
		err := s.read(ctx, yield)
		if errors.Is(err, errStop) {
			return
		}
		if ctx.Err() != nil {
			yield(memory.Event{}, ended(ctx, "event stream"))
			return
		}
		s.failures++
		if !s.again(err) {
			yield(memory.Event{}, err)
			return
		}
		if !s.open && !s.told && s.opts.Away != nil {
			s.told = true
			s.opts.Away(err)
		}
		wait := min(s.pause<<min(s.failures-1, 5), time.Minute)
		if e := memory.AsError(err); e.RetryAfter > wait {
			wait = e.RetryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// again says whether a new attempt makes sense after err.
func (s *stream) again(err error) bool {
	if !s.connected || s.opts.MaxAttempts > 0 && s.failures >= s.opts.MaxAttempts {
		return false
	}
	return Said(err).Transient()
}

// read opens one connection and yields its events until it breaks.
func (s *stream) read(ctx context.Context, yield func(memory.Event, error) bool) error {
	rc := call{method: http.MethodGet, path: []string{"namespaces", s.namespace, "events"},
		query: url.Values{}, header: http.Header{}, accept: eventStream}
	as := s.opts.As
	if as == "" {
		as = s.c.opts.Agent
	}
	set(rc.query, "as", as)
	set(rc.query, "from", s.opts.From)
	if s.seen {
		rc.header.Set("Last-Event-ID", s.last)
	}
	s.open = false
	resp, err := s.c.send(ctx, rc)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	s.connected, s.open, s.told = true, true, false
	dec := newSSE(resp.Body)
	for {
		msg, err := dec.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return s.c.lostAnswer(ctx, rc, err)
		}
		if msg.retry > 0 {
			s.pause = msg.retry
		}
		if err := s.deliver(msg, yield); err != nil {
			return err
		}
	}
}

// deliver yields the event of one message, unless it was seen before.
func (s *stream) deliver(msg sseMessage, yield func(memory.Event, error) bool) error {
	if msg.name == "error" {
		var p memory.Problem
		if err := json.Unmarshal(msg.data, &p); err == nil && p.Code != "" {
			return p.Err()
		}
	}
	if len(msg.data) == 0 {
		if msg.id != "" { // where the stream stands, without an event
			s.last, s.seen = msg.id, true
		}
		return nil
	}
	var ev memory.Event
	if err := json.Unmarshal(msg.data, &ev); err != nil {
		return memory.Errorf(memory.CodeInternal, "event %s: not a CloudEvent: %w", msg.id, err)
	}
	if msg.id != "" {
		if s.seen && msg.id == s.last {
			return nil
		}
		if ev.Position == "" {
			ev.Position = msg.id
		}
		s.last, s.seen = msg.id, true
	}
	s.failures = 0
	if !yield(ev, nil) {
		return errStop
	}
	return nil
}
