package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"mneme/memory"
)

// lines is an answer of newline-delimited JSON. Nothing is sent before the
// first line, so that what fails at once is an ordinary problem. It is safe for
// concurrent use; after close nothing is sent any more.
type lines struct {
	s  *server
	mu sync.Mutex
	w  http.ResponseWriter

	began, closed bool
	lastFlush     time.Time
	lastProgress  time.Time
}

const (
	// progressEvery bounds how often progress is sent.
	progressEvery = 100 * time.Millisecond
	flushEvery    = 50 * time.Millisecond
)

func (s *server) newLines(w http.ResponseWriter) *lines {
	return &lines{s: s, w: w}
}

var errStreamClosed = errors.New("the stream is closed")

// send writes one line; flush pushes it to the client at once.
func (l *lines) send(v any, flush bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return memory.Errorf(memory.CodeInternal, "encode line: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeLocked(append(b, '\n'), flush)
}

func (l *lines) writeLocked(b []byte, flush bool) error {
	if l.closed {
		return errStreamClosed
	}
	if !l.began {
		l.began = true
		l.w.Header().Set("Content-Type", mediaNDJSON)
		l.w.WriteHeader(http.StatusOK)
	}
	if _, err := l.w.Write(b); err != nil {
		return err
	}
	now := l.s.Now()
	if !flush && now.Sub(l.lastFlush) < flushEvery {
		return nil
	}
	l.lastFlush = now
	return http.NewResponseController(l.w).Flush()
}

// close ends the answer; the header is sent even if there was no line.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.began && !l.closed {
		_ = l.writeLocked(nil, false)
	}
	l.closed = true
}

func (l *lines) hasBegun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// stop ends the answer without sending anything more.
func (l *lines) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// progress sends how far an action is, not more often than makes sense. What
// cannot be sent is dropped: the action's end does not depend on it.
func (l *lines) progress(done, total uint64) {
	b, _ := json.Marshal(memory.ProgressLine[struct{}]{Progress: &memory.Progress{Done: done, Total: total}})
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.Now()
	if l.closed || !l.lastProgress.IsZero() && now.Sub(l.lastProgress) < progressEvery && (total == 0 || done < total) {
		return
	}
	l.lastProgress = now
	_ = l.writeLocked(append(b, '\n'), true)
}

// long runs an action that answers with progress lines and a result.
func long[R any](s *server, w http.ResponseWriter, r *http.Request, run func(progress func(done, total uint64)) (R, error)) error {
	if _, err := s.parseQuery(r); err != nil {
		return err
	}
	l := s.newLines(w)
	result, err := run(l.progress)
	if err == nil {
		err = l.send(memory.ProgressLine[R]{Result: &result}, true)
		l.close()
		return ignoreGone(r, err)
	}
	if !l.hasBegun() {
		l.stop()
		return err
	}
	e := asError(err)
	if e.Code == memory.CodeInternal {
		s.failures.note(r, true, err)
	}
	p := memory.ProblemOf(e)
	err = l.send(memory.ProgressLine[R]{Error: &p}, true)
	l.close()
	return ignoreGone(r, err)
}

// ignoreGone drops the error of writing to a client that has left.
func ignoreGone(r *http.Request, err error) error {
	if err == nil || r.Context().Err() != nil {
		return nil
	}
	return err
}
