package api

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
)

// Trace says what a request belongs to: lines of the log name it.
type Trace struct {
	Request string // its own id; "" over NATS
	ID      string // of the caller's trace, see TraceID; "" if it has none
}

type traceKey struct{}

// WithTrace returns a context of a request.
func WithTrace(ctx context.Context, t Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns what the request of a context belongs to.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
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

// TraceHeader is the header of W3C Trace Context, over HTTP and NATS.
const TraceHeader = "traceparent"

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-|$)`)

// TraceID reads the trace id of a traceparent header (W3C Trace Context, section 3.2); "" if
// the header is none.
func TraceID(header string) string {
	m := traceparent.FindStringSubmatch(header)
	if m == nil || strings.HasPrefix(header, "ff") || strings.Trim(m[1], "0") == "" || strings.Trim(m[2], "0") == "" {
		return ""
	}
	return m[1]
}
