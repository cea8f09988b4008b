// Package spans makes the spans of requests, and says which there are.
//
// A request's span is begun by its transport. What works for the request finds that span in
// the context and puts its own below it.
//
// Invariants:
//   - Below a request that is not recorded nothing happens and nothing is allocated.
//   - A span holds numbers, words of this program, names of namespaces and ids that the node
//     made. It never holds a text, a query, a key, or a message of an error. All lists the
//     attributes; a test holds what is exported against it.
//   - What a caller sends of a trace is two ids and a flag. Its tracestate and baggage are
//     not read.
//   - Spans are made beside what they tell of. No state, no row and no byte of the log depends
//     on one.
//
// Not its job: who is recorded, and sending spans anywhere (package otlp).
package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"mneme/memory"
)

// Scope is the instrumentation scope of all spans.
const Scope = "mneme"

// Header is the header of W3C Trace Context, over HTTP, NATS and between nodes.
const Header = "traceparent"

// none is a span that does nothing.
var none = trace.SpanFromContext(context.Background())

// None is a span that does nothing.
func None() trace.Span { return none }

// carrier holds the one header that is read and sent.
type carrier struct{ value string }

func (c *carrier) Get(key string) string {
	if key == Header {
		return c.value
	}
	return ""
}

func (c *carrier) Set(key, value string) {
	if key == Header {
		c.value = value
	}
}

func (c *carrier) Keys() []string { return []string{Header} }

// Continue returns a context that belongs to the trace of a traceparent header. A header that
// is none changes nothing.
func Continue(ctx context.Context, header string) context.Context {
	if header == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, &carrier{header})
}

// Outgoing is the traceparent header for another node; "" if there is no trace. The other one is
// asked to record only what this one does.
func Outgoing(ctx context.Context) string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return ""
	}
	if sc.IsRemote() {
		ctx = trace.ContextWithSpanContext(ctx, sc.WithTraceFlags(0))
	}
	var c carrier
	propagation.TraceContext{}.Inject(ctx, &c)
	return c.value
}

// TraceID is the trace that a context belongs to; "" if there is none.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.HasTraceID() {
		return sc.TraceID().String()
	}
	return ""
}

// Begin begins the span of a request, if it is to be recorded. from says so; nil = no request is.
func Begin(ctx context.Context, from trace.TracerProvider, kind trace.SpanKind, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if from == nil {
		return ctx, none
	}
	below, span := from.Tracer(Scope).Start(ctx, name, append(opts, trace.WithSpanKind(kind))...)
	if !span.IsRecording() && !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, none // its trace would have an id, and nobody would find anything under it
	}
	return below, span
}

// Join is Begin for what another node asks for: it is recorded if that node does so.
func Join(ctx context.Context, from trace.TracerProvider, name string) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, none
	}
	return Begin(ctx, from, trace.SpanKindServer, name)
}

// Recorded reports whether a span of this node is recorded, or was until it ended.
func Recorded(span trace.Span) bool {
	sc := span.SpanContext()
	return sc.IsSampled() && !sc.IsRemote()
}

// Start begins a span below that of the context, if it is recorded.
func Start(ctx context.Context, name string) (context.Context, trace.Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// Call is Start for what somebody else does: another node, or a provider.
func Call(ctx context.Context, name string) (context.Context, trace.Span) {
	return start(ctx, name, trace.SpanKindClient)
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !Recorded(parent) {
		return ctx, none
	}
	return parent.TracerProvider().Tracer(Scope).Start(ctx, name, trace.WithSpanKind(kind))
}

// Add adds a span below a recorded one for what is over.
func Add(parent trace.Span, name string, began, ended time.Time, attrs ...attribute.KeyValue) {
	_, span := parent.TracerProvider().Tracer(Scope).Start(trace.ContextWithSpan(context.Background(), parent), name,
		trace.WithTimestamp(began), trace.WithAttributes(attrs...))
	span.End(trace.WithTimestamp(ended))
}

// End ends a span. Of an error it holds the code.
func End(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		Failed(span, string(memory.CodeOf(err)))
	}
	span.End()
}

// Failed notes that what a span tells of has failed.
func Failed(span trace.Span, kind string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(ErrorType.String(kind))
}

// Exemplar are the labels of an exemplar of a histogram; nil if the span is not recorded.
func Exemplar(span trace.Span) map[string]string {
	if !Recorded(span) {
		return nil
	}
	return map[string]string{"trace_id": span.SpanContext().TraceID().String()}
}

// Counts are what became of spans, and of callers' wishes.
type Counts struct {
	Sent      uint64 // the collector has them
	QueueFull uint64 // dropped: too many waited
	NotTaken  uint64 // dropped: the collector was away, slow, or refused them
	Declined  uint64 // requests whose caller asked for a trace when too many did
}
