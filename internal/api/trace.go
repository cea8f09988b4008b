package api

import (
	"context"
	"log/slog"

	"mneme/internal/spans"
)

// Trace says what a request belongs to: lines of the log name it.
type Trace struct {
	Request string // its own id; "" over NATS, and where another node was asked
	ID      string // of the trace that its caller began or that is recorded; "" if there is none
}

type requestKey struct{}

// WithRequest returns a context of a request that has an id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// TraceOf returns what the request of a context belongs to.
func TraceOf(ctx context.Context) Trace {
	id, _ := ctx.Value(requestKey{}).(string)
	return Trace{Request: id, ID: spans.TraceID(ctx)}
}

// Attrs are what a line of the log says of it.
func (t Trace) Attrs() (out []slog.Attr) {
	if t.Request != "" {
		out = append(out, slog.String("request_id", t.Request))
	}
	if t.ID != "" {
		out = append(out, slog.String("trace_id", t.ID))
	}
	return out
}
