package node

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"mneme/internal/ingest"
	"mneme/internal/query"
	"mneme/internal/spans"
	"mneme/memory"
)

// times measures what a node is asked for and how long the steps of a frame take. Its
// labels are few: neither namespaces nor agents are among them.
type times struct {
	captures, searches, appends, applies *prometheus.HistogramVec
	captureErrors, searchErrors          *prometheus.CounterVec
	withoutVectors                       prometheus.Counter
	slow                                 query.Slow // which searches are logged
}

// QueryKey is the attribute of the log that holds the text of a query, where somebody has
// asked for that: whoever passes lines of the log on leaves it out.
const QueryKey = query.QueryKey

// latencies are bounds of buckets, from half a millisecond to eight seconds.
var latencies = prometheus.ExponentialBuckets(0.0005, 2, 15)

func newTimes() *times {
	histogram := func(name, help, label string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "mneme_" + name, Help: help, Buckets: latencies}, []string{label})
	}
	byCode := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mneme_" + name, Help: help}, []string{"code"})
		for _, code := range memory.Codes() { // so that the first one counts as a rise
			c.WithLabelValues(string(code))
		}
		return c
	}
	t := &times{
		captures:      histogram("capture_duration_seconds", "Time from a capture's arrival at the node that leads its shard to the answer, by what was waited for; a batch counts once.", "wait"),
		searches:      histogram("search_duration_seconds", "Time of searches that were answered, by how they were.", "mode"),
		appends:       histogram("log_append_duration_seconds", "Time in which the log takes a frame, synced.", "shard"),
		applies:       histogram("apply_duration_seconds", "Time from handing a frame to Raft until the leader has applied it.", "shard"),
		captureErrors: byCode("capture_errors_total", "Requests to capture that failed as a whole, by the code of the error."),
		searchErrors:  byCode("search_errors_total", "Searches that failed, by the code of the error."),
		withoutVectors: prometheus.NewCounter(prometheus.CounterOpts{Name: "mneme_search_without_vectors_total",
			Help: "Hybrid searches that were answered from text alone: the namespace has no embedder, or it did not answer in time."}),
	}
	for _, wait := range []memory.Wait{memory.WaitAccepted, memory.WaitApplied, memory.WaitSearchable} {
		t.captures.WithLabelValues(string(wait))
	}
	for _, mode := range []memory.Mode{memory.ModeHybrid, memory.ModeText, memory.ModeVector} {
		t.searches.WithLabelValues(string(mode))
	}
	return t
}

func (t *times) all() []prometheus.Collector {
	return []prometheus.Collector{t.captures, t.searches, t.appends, t.applies, t.captureErrors, t.searchErrors, t.withoutVectors}
}

// step takes how long the steps of a shard's frames took.
func (t *times) step(shard uint16) func(ingest.Step, time.Duration, trace.Span) {
	name := strconv.Itoa(int(shard))
	of := [...]prometheus.Observer{ingest.StepAppend: t.appends.WithLabelValues(name), ingest.StepApply: t.applies.WithLabelValues(name)}
	return func(s ingest.Step, took time.Duration, span trace.Span) { observe(of[s], took, span) }
}

// observe takes a time, with the trace of a recorded request as an example of it.
func observe(of prometheus.Observer, took time.Duration, span trace.Span) {
	of.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), spans.Exemplar(span))
}

// capture measures a request to capture.
func (t *times) capture(ctx context.Context, wait memory.Wait, do func() (memory.CaptureResponse, error)) (memory.CaptureResponse, error) {
	began := time.Now()
	resp, err := do()
	if err != nil {
		t.captureErrors.WithLabelValues(string(memory.CodeOf(err))).Inc()
		return resp, err
	}
	if wait == "" {
		wait = memory.WaitApplied
	}
	observe(t.captures.WithLabelValues(string(wait)), time.Since(began), trace.SpanFromContext(ctx))
	return resp, nil
}

// search measures a search that asked for a mode.
func (t *times) search(ctx context.Context, asked memory.Mode, do func() (memory.SearchResponse, error)) (memory.SearchResponse, error) {
	began := time.Now()
	resp, err := do()
	if err != nil {
		t.searchErrors.WithLabelValues(string(memory.CodeOf(err))).Inc()
		return resp, err
	}
	observe(t.searches.WithLabelValues(string(resp.Mode)), time.Since(began), trace.SpanFromContext(ctx))
	if resp.Mode == memory.ModeText && asked != memory.ModeText && asked != memory.ModeVector {
		t.withoutVectors.Inc()
	}
	return resp, nil
}
