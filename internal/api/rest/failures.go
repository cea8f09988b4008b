package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"mneme/internal/api"
	"mneme/memory"
)

// maxFailures is how many failures are logged a minute. Callers can cause more.
const maxFailures = 60

// failures writes into the log which requests failed, in the words of the error,
// which clients do not get to see.
type failures struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	minute  time.Time // when it began
	written int       // in it
	leftOut int       // since a line was written last
}

// note writes a line about a request. An answer that broke off because the client
// went away, or took nothing of it, is no failure of the node.
func (f *failures) note(r *http.Request, answering bool, err error) {
	level := slog.LevelError
	switch {
	case answering && errors.Is(r.Context().Err(), context.Canceled):
		f.log.LogAttrs(r.Context(), slog.LevelDebug, "client gone", about(r, err)...)
		return
	case asError(err).Code != memory.CodeInternal:
		level = slog.LevelWarn
	}
	leftOut, ok := f.allow()
	if !ok {
		return
	}
	attrs := about(r, err)
	if leftOut > 0 {
		attrs = append(attrs, slog.Int("left_out", leftOut))
	}
	f.log.LogAttrs(r.Context(), level, "request failed", attrs...)
}

// about is what a line says of a request that failed.
func about(r *http.Request, err error) []slog.Attr {
	return append(api.TraceOf(r.Context()).Attrs(), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err))
}

// allow reports whether a line may be written, and how many were not since the last.
func (f *failures) allow() (leftOut int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); now.Sub(f.minute) >= time.Minute {
		f.minute, f.written = now, 0
	}
	if f.written == maxFailures {
		f.leftOut++
		return 0, false
	}
	f.written++
	leftOut, f.leftOut = f.leftOut, 0
	return leftOut, true
}
