package rest

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// body bounds a request's body. When it is too long the rest is read and thrown
// away, within bounds, before the error is seen: a client that still writes
// while the connection closes would get a reset instead of the answer.
type body struct {
	io.ReadCloser // bounded
	raw           io.Reader
	control       *http.ResponseController
}

const (
	maxDrain  = 64 << 20
	drainTime = 10 * time.Second
)

func newBody(w http.ResponseWriter, r *http.Request, limit int64) *body {
	// Without the writer the bound does not close the connection.
	return &body{http.MaxBytesReader(nil, r.Body, limit), r.Body, http.NewResponseController(w)}
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var long *http.MaxBytesError
	if errors.As(err, &long) && b.raw != nil {
		// Not every writer has deadlines; the amount is bounded all the same.
		_ = b.control.SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.CopyN(io.Discard, b.raw, maxDrain)
		_ = b.control.SetReadDeadline(time.Time{})
		b.raw = nil
	}
	return n, err
}
