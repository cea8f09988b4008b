package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"mneme/internal/auth"
	"mneme/memory"
)

// body bounds a request's body: in bytes, in the time it may take to arrive, in
// how slowly it may come, and in the bytes that all bodies under way hold
// together. When it is refused, the rest is read and thrown away, within bounds,
// before the error is seen: a client that still writes while the connection
// closes would get a reset instead of the answer.
type body struct {
	io.ReadCloser // bounded
	raw           io.Reader
	w             http.ResponseWriter
	control       *http.ResponseController
	budget        *budget // nil: not counted
	got, held     int64   // bytes that arrived, and of these the counted ones

	pause   time.Duration // in which minProgress bytes have to arrive
	recent  int           // bytes since the deadline was moved
	due     time.Time     // when all of it has to be there
	refused bool
	// declined is a body that is too long by its own word and waits for a 100
	// Continue, which it does not get.
	declined error
}

const (
	maxDrain  = 64 << 20
	drainTime = 10 * time.Second
	// freeBody is how much of each body is not counted, so that bodies that are
	// held open do not keep small ones away. The number of connections bounds it.
	freeBody = 64 << 10
	// minProgress is what has to arrive of a body in each BodyPause.
	minProgress = 32 << 10
)

// budget is how many bytes all requests under way may hold.
type budget struct {
	max  atomic.Int64
	used atomic.Int64
}

// take counts n bytes more, if there is room for them. One alone always fits.
func (b *budget) take(n int64) bool {
	if all := b.used.Add(n); all <= b.max.Load() || all <= n {
		return true
	}
	b.give(n)
	return false
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// newBody bounds the body of r. The caller gives back what it held with release.
// What comes through the admin socket is not counted: the operator is not kept
// away by others.
func (s *server) newBody(w http.ResponseWriter, r *http.Request, limit int64) *body {
	b := &body{raw: r.Body, w: w, control: http.NewResponseController(w), pause: s.BodyPause, due: time.Now().Add(s.BodyTimeout)}
	if !auth.IsLocal(r.Context()) {
		b.budget = &s.bodies
	}
	// Without the writer the bound does not close the connection.
	b.ReadCloser = http.MaxBytesReader(nil, r.Body, limit)
	if r.ContentLength > limit && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		b.declined = &http.MaxBytesError{Limit: limit}
		return b
	}
	if r.ContentLength != 0 {
		b.await(b.pause)
	}
	return b
}

// await sets how long the body may pause from now on. Not every writer has
// deadlines; the amount is bounded all the same.
func (b *body) await(pause time.Duration) {
	at := time.Now().Add(pause)
	if at.After(b.due) {
		at = b.due
	}
	_ = b.control.SetReadDeadline(at)
}

func (b *body) Read(p []byte) (int, error) {
	if b.declined != nil {
		return 0, b.declined
	}
	n, err := b.ReadCloser.Read(p)
	if b.refused {
		return n, err
	}
	if b.recent += n; b.recent >= minProgress && err == nil {
		b.recent = 0
		b.await(b.pause)
	}
	var long *http.MaxBytesError
	switch full := b.count(n); {
	case full != nil:
		err = full
		b.refuse()
	case errors.As(err, &long):
		b.refuse()
	case err == io.EOF:
		b.arrived()
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.w.Header().Set("Connection", "close")
		err = memory.Errorf(memory.CodeTimeout, "the request's body did not arrive in time; nothing was done").
			WithHint("send it again, in smaller batches if the line is slow").WithCause(err)
	}
	return n, err
}

// count adds n bytes to what is held. The error says that there is no room.
func (b *body) count(n int) error {
	b.got += int64(n)
	more := max(0, b.got-freeBody) - b.held
	if b.budget == nil || more <= 0 {
		return nil
	}
	b.held += more
	if b.budget.used.Add(more) <= b.budget.max.Load() {
		return nil
	}
	b.release()
	e := memory.Errorf(memory.CodeOverloaded, "the requests under way hold %d bytes, which is all there is room for", b.budget.max.Load()).
		WithHint("send it again in a moment, or in smaller batches")
	e.RetryAfter = time.Second
	return e
}

// refuse reads the rest away. Where that does not come to the end in time, the
// connection is closed behind the answer, and the deadline stays: otherwise
// net/http would wait for the end.
func (b *body) refuse() {
	b.refused = true
	b.due = time.Now().Add(drainTime)
	b.await(min(b.pause, drainTime))
	if _, err := io.CopyN(io.Discard, b.raw, maxDrain); err == io.EOF {
		b.arrived()
		return
	}
	b.w.Header().Set("Connection", "close")
	_ = b.control.SetReadDeadline(time.Now())
}

// arrived lifts the deadline, which would end the request itself from now on.
func (b *body) arrived() { _ = b.control.SetReadDeadline(time.Time{}) }

// release gives the bytes back. The body must not be read any more.
func (b *body) release() {
	if b.budget != nil {
		b.budget.used.Add(-b.held)
	}
	b.held = 0
}
