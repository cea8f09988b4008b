package natsapi

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/events"
	"mneme/internal/spans"
)

// record takes a capture for part of the trace that its publisher names, and begins its span as
// of when it came.
func (s *Server) record(in *intake) {
	in.ctx, in.span = spans.Continue(s.ctx, header(in.msg.Header, spans.Header)), spans.None()
	if s.opt.Traces == nil {
		return
	}
	in.ctx, in.span = spans.Begin(in.ctx, s.opt.Traces, trace.SpanKindConsumer, spans.NATSCapture, trace.WithTimestamp(in.at))
	if in.span.IsRecording() {
		in.span.SetAttributes(spans.Messaging.String("nats"), spans.Destination.String(events.SubjectIn+".{ns}.{agent}.capture"))
	}
}

// together is the context in which captures are written together: that of the first one that is
// recorded. The spans of the others are linked to its span, below which the writing is.
func together(ctx context.Context, batch []*intake) context.Context {
	var first *intake
	for _, in := range batch {
		switch {
		case !in.span.IsRecording():
		case first == nil:
			first = in
		default:
			in.span.AddLink(trace.Link{SpanContext: first.span.SpanContext()})
		}
	}
	switch {
	case first != nil:
		return first.ctx
	case len(batch) == 1:
		return batch[0].ctx
	}
	return ctx
}

// begin does the same for a request to a service.
func (s *Server) begin(ask asked) (context.Context, trace.Span) {
	ctx, span := spans.Begin(spans.Continue(s.ctx, ask.trace), s.opt.Traces, trace.SpanKindServer, spans.NATSCall)
	if span.IsRecording() {
		span.SetAttributes(spans.Messaging.String("nats"), spans.Destination.String(ask.public))
	}
	return ctx, span
}
