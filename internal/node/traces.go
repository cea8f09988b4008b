package node

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/spans"
	"mneme/memory"
)

// Traces takes the spans of requests, and says which requests are recorded. The methods may be
// called from any goroutine. *otlp.Exporter is one.
type Traces interface {
	trace.TracerProvider
	// SetShare sets the share of the requests that are recorded unless their caller says.
	SetShare(share float64)
	// Counts are of spans, since the start.
	Counts() spans.Counts
}

// recorder is who records requests; nil if nobody does.
func (c *Config) recorder() trace.TracerProvider {
	if c.Traces == nil {
		return nil
	}
	return c.Traces
}

// operate carries out an operation on the memories of a namespace in a span of its own. told is
// what the span says of the outcome.
func operate[T any](ctx context.Context, name, namespace string, told func(T) []attribute.KeyValue, do func(context.Context) (T, error)) (T, error) {
	ctx, span := spans.Start(ctx, name)
	out, err := do(ctx)
	if span.IsRecording() {
		span.SetAttributes(spans.Operation.String(name))
		if err == nil && namespace != "" { // where something failed, nobody may have looked whether there is one of that name
			span.SetAttributes(spans.Store.String(namespace))
		}
		if err == nil && told != nil {
			span.SetAttributes(told(out)...)
		}
		spans.End(span, err)
	}
	return out, err
}

func toldOfCapture(wait memory.Wait) func(memory.CaptureResponse) []attribute.KeyValue {
	return func(r memory.CaptureResponse) []attribute.KeyValue {
		return []attribute.KeyValue{spans.Wait.String(string(wait)), spans.Records.Int(len(r.Results)), spans.Position.String(r.Position)}
	}
}

func toldOfRevision(r memory.RevisionResponse) []attribute.KeyValue {
	return []attribute.KeyValue{spans.RecordID.String(r.RecordID), spans.Records.Int(1), spans.Position.String(r.Position)}
}

func toldOfForget(r memory.ForgetResponse) []attribute.KeyValue {
	return []attribute.KeyValue{spans.RecordID.String(r.RecordID), spans.Records.Int(1), spans.Position.String(r.Position)}
}

func toldOfGraph(r memory.GraphChanged) []attribute.KeyValue {
	return []attribute.KeyValue{spans.Records.Int(len(r.Results)), spans.Position.String(r.Position)}
}

func toldOfSearch(r memory.SearchResponse) []attribute.KeyValue {
	return []attribute.KeyValue{spans.Mode.String(string(r.Mode)), spans.Records.Int(len(r.Results)), spans.Position.String(r.Position)}
}

// Metrics of the spans; there are none where no collector is configured.
var (
	ofSpansSent    = countOf("trace_spans_sent_total", "Spans that the collector has taken.")
	ofSpansDropped = countOf("trace_spans_dropped_total", "Spans that the collector did not get: the queue was full (queue), or it did not take them (collector).", "why")
	ofDeclined     = countOf("trace_requests_declined_total", "Requests whose caller asked for a trace, beyond so many a second; they were not recorded.")
)

func (c collector) collectTraces(to readings) {
	if c.n.cfg.Traces == nil {
		return
	}
	n := c.n.cfg.Traces.Counts()
	to.put(ofSpansSent, float64(n.Sent))
	to.put(ofSpansDropped, float64(n.QueueFull), "queue")
	to.put(ofSpansDropped, float64(n.NotTaken), "collector")
	to.put(ofDeclined, float64(n.Declined))
}
