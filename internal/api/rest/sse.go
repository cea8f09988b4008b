package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"mneme/memory"
)

// headerGrace is how long an event stream waits for a first event or a refusal
// before it sends its header, so that a refusal has its own status.
const headerGrace = 100 * time.Millisecond

// sseStream writes server-sent events (HTML standard, section 9.2): an id, one
// data line, an empty line; comments keep a quiet connection alive. It is safe
// for concurrent use.
type sseStream struct {
	s     *server
	mu    sync.Mutex
	w     http.ResponseWriter
	began bool
	quiet bool // the heartbeat has ended; under mu
}

func (e *sseStream) write(b []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writeLocked(b)
}

// comment keeps the connection alive, unless the heartbeat has ended: a beat
// that was late must not write into an answer that is over.
func (e *sseStream) comment() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.quiet {
		return nil
	}
	return e.writeLocked([]byte(": \n\n"))
}

func (e *sseStream) writeLocked(b []byte) error {
	if !e.began {
		e.began = true
		h := e.w.Header()
		h.Set("Content-Type", mediaEvents)
		h.Set("X-Accel-Buffering", "no")
		e.w.WriteHeader(http.StatusOK)
	}
	if _, err := e.w.Write(b); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}

func (e *sseStream) hasBegun() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.began
}

func (e *sseStream) event(ev memory.Event) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return memory.Errorf(memory.CodeInternal, "encode event: %w", err)
	}
	var b strings.Builder
	b.Grow(len(data) + 64)
	if ev.Position != "" {
		b.WriteString("id: " + ev.Position + "\n")
	}
	b.WriteString("data: ")
	b.Write(data) // JSON has no raw line breaks
	b.WriteString("\n\n")
	return e.write([]byte(b.String()))
}

// problem ends the stream with an event named error.
func (e *sseStream) problem(p memory.Problem) error {
	data, _ := json.Marshal(p)
	return e.write([]byte("event: error\ndata: " + string(data) + "\n\n"))
}

// beat sends comments until end is called: the first one soon, which sends the
// header, then one in each heartbeat. A failure to send ends the stream. Between
// two beats there is a timer and no goroutine.
func (e *sseStream) beat(cancel context.CancelFunc) (end func()) {
	var timer *time.Timer
	e.mu.Lock()
	defer e.mu.Unlock()
	timer = time.AfterFunc(headerGrace, func() {
		if err := e.comment(); err != nil {
			cancel()
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.quiet {
			timer.Reset(e.s.Heartbeat)
		}
	})
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.quiet = true
		timer.Stop()
	}
}

func (s *server) followEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := s.parseQuery(r)
	if err != nil {
		return err
	}
	acc, from, follow := q.access(r), q.str("from"), q.boolean("follow", true)
	if err := q.finish(); err != nil {
		return err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		from = last
	}
	leave, err := s.bulkheads.streams.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.Draining, cancel)()
	e := &sseStream{s: s, w: w}
	stopBeat := e.beat(cancel)
	err = s.Reader.Events(ctx, acc, from, follow, e.event)
	over := ctx.Err() != nil
	cancel()
	stopBeat()
	switch {
	case over: // drained, or the client left: an end, not a failure
		if context.Cause(r.Context()) == errReplaced {
			if !e.hasBegun() {
				return errReplaced
			}
			return ignoreGone(r, e.problem(memory.ProblemOf(errReplaced)))
		}
		if !e.hasBegun() && r.Context().Err() == nil {
			return memory.Errorf(memory.CodeUnavailable, "the node is shutting down").WithHint("try again in a moment")
		}
		return nil
	case err == nil:
		if e.hasBegun() {
			return nil
		}
		return ignoreGone(r, e.write(nil))
	case !e.hasBegun():
		return err
	}
	if memory.CodeOf(asError(err)) == memory.CodeInternal {
		s.failures.note(r, true, err)
	}
	return ignoreGone(r, e.problem(memory.ProblemOf(asError(err))))
}
