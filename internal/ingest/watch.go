package ingest

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/spans"
)

// watch has the way of a request's events told to the request's span. It changes nothing of
// the way.
type watch struct {
	span   trace.Span
	queued time.Time
}

// watchOf is nil unless the request of a context is recorded.
func watchOf(ctx context.Context) *watch {
	span := trace.SpanFromContext(ctx)
	if !spans.Recorded(span) {
		return nil
	}
	return &watch{span, time.Now()}
}

// pushFor adds drafts of one namespace, all or none, for the request of a context.
func (q *queue) pushFor(ctx context.Context, drafts []*draft) error {
	if seen := watchOf(ctx); seen != nil {
		for _, d := range drafts {
			d.watch = seen
		}
	}
	return q.push(drafts[0].header.Namespace, drafts)
}

// watchers are the requests, each once, that watch a frame, which has so many events.
type watchers struct {
	by     []*watch
	events int
}

func watchersOf(drafts []*draft) watchers {
	out := watchers{events: len(drafts)}
	for _, d := range drafts { // those of a request stand together, or in turns with other namespaces'
		if d.watch != nil && !slices.Contains(out.by, d.watch) {
			out.by = append(out.by, d.watch)
		}
	}
	return out
}

// first is the span by which a histogram finds an example; one that does nothing if nobody watches.
func (w watchers) first() trace.Span {
	if len(w.by) == 0 {
		return spans.None()
	}
	return w.by[0].span
}

// tell adds a span to each request. A zero time of beginning is that of the request's queueing.
func (l *loop) tell(w watchers, name string, began, ended time.Time) {
	for _, to := range w.by {
		from := began
		if from.IsZero() {
			from = to.queued
		}
		spans.Add(to.span, name, from, ended, spans.Shard.Int(int(l.round.shard)), spans.Term.Int64(int64(l.round.term)),
			spans.Events.Int(w.events))
	}
}
