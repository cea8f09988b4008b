package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"mneme/memory"
)

// body bounds a request's body: in bytes, in the time it may take to arrive, and
// in the bytes that all bodies under way hold together. When it is refused, the
// rest is read and thrown away, within bounds, before the error is seen: a
// client that still writes while the connection closes would get a reset instead
// of the answer.
type body struct {
	io.ReadCloser // bounded
	raw           io.Reader
	control       *http.ResponseController
	budget        *budget
	held          int64
}

const (
	maxDrain  = 64 << 20
	drainTime = 10 * time.Second
)

// budget is how many bytes the bodies of all requests under way may hold.
type budget struct {
	max  int64
	used atomic.Int64
}

// newBody bounds the body of r. The caller gives back what it held with release.
func (s *server) newBody(w http.ResponseWriter, r *http.Request, limit int64) *body {
	b := &body{raw: r.Body, control: http.NewResponseController(w), budget: &s.bodies}
	// Without the writer the bound does not close the connection.
	b.ReadCloser = http.MaxBytesReader(nil, r.Body, limit)
	if r.ContentLength != 0 {
		// Not every writer has deadlines; the amount is bounded all the same.
		_ = b.control.SetReadDeadline(time.Now().Add(s.BodyTimeout))
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.held += int64(n)
	if b.budget.used.Add(int64(n)) > b.budget.max && err == nil {
		e := memory.Errorf(memory.CodeOverloaded, "the requests under way hold %d bytes, which is all there is room for", b.budget.max).
			WithHint("send it again in a moment, or in smaller batches")
		e.RetryAfter = time.Second
		b.release()
		err = e
	}
	if err == nil {
		return n, nil
	}
	var long *http.MaxBytesError
	var refused *memory.Error
	switch {
	case (errors.As(err, &long) || errors.As(err, &refused)) && b.raw != nil:
		_ = b.control.SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.CopyN(io.Discard, b.raw, maxDrain)
		b.raw = nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, memory.Errorf(memory.CodeTimeout, "the request's body did not arrive in time; nothing was done").
			WithHint("send it again, in smaller batches if the line is slow").WithCause(err)
	}
	// It has arrived: a deadline that passes now would end the request itself.
	_ = b.control.SetReadDeadline(time.Time{})
	return n, err
}

// release gives the bytes back. The body must not be read any more.
func (b *body) release() {
	b.budget.used.Add(-b.held)
	b.held = 0
}
