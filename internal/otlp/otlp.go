// Package otlp sends spans to a collector over OTLP/HTTP.
//
// Its job: it says which requests are recorded, keeps what they give until it is sent, and
// counts what is not.
//
// Invariants:
//   - Nobody waits for the collector: spans that find the queue full are dropped and counted.
//   - Callers have at most so many traces a second recorded by asking for them.
//   - Close sends what waits, within a bound, and leaves no goroutine.
//   - Headers, which may be secrets, go to the collector only: not to where it redirects to,
//     and not in clear to another machine.
//
// Not its job: making spans (package spans). Only memnode links it: memctl opens nodes, too, and
// sends no spans.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"mneme/internal/spans"
)

// Bounds.
const (
	maxWaiting = 2048             // spans, those being sent included
	maxBatch   = 512              // spans in one request
	batchEvery = 2 * time.Second  // between requests
	sendWithin = 10 * time.Second // one request with its repetitions
	flushFor   = 2 * time.Second  // what waits when the node stops
	// maxAsked is how many traces a second are recorded because their callers ask for it.
	maxAsked = 100
	// maxValue is how much of a value a span keeps, in bytes.
	maxValue = 256
)

// Exporter records requests and sends their spans. It is a trace.TracerProvider, and safe for
// concurrent use.
type Exporter struct {
	*sdk.TracerProvider
	sampler *sampler
	sender  *sender
}

// Open returns an exporter. It reaches for nobody. Errors are those of Options.Check.
func Open(opt Options) (*Exporter, error) {
	target, client, headers, err := opt.target()
	if err != nil {
		return nil, err
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	// Whatever OTEL_EXPORTER_… says is overruled: memnode has settings of its own.
	to := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(target.String()), otlptracehttp.WithHTTPClient(client), otlptracehttp.WithTLSClientConfig(nil), otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf), otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithTimeout(sendWithin),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: 5 * time.Second, MaxElapsedTime: sendWithin})}
	exporter, err := otlptracehttp.New(context.Background(), to...)
	if err != nil {
		return nil, fmt.Errorf("open exporter of traces: %w", err)
	}
	s := &sender{SpanExporter: exporter, client: client, log: opt.Logger}
	s.life, s.end = context.WithCancel(context.Background())
	e := &Exporter{sampler: newSampler(opt.Share), sender: s}
	s.queue = sdk.NewBatchSpanProcessor(s, sdk.WithMaxQueueSize(maxWaiting), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(sendWithin))
	about := []attribute.KeyValue{attribute.String("service.name", "memnode"), attribute.String("service.version", opt.Version)}
	if opt.Node != "" {
		about = append(about, attribute.String("service.instance.id", opt.Node))
	}
	e.TracerProvider = sdk.NewTracerProvider(sdk.WithSampler(e.sampler.rule()), sdk.WithSpanProcessor(bounded{s}),
		sdk.WithRawSpanLimits(limits()), sdk.WithResource(resource.NewSchemaless(about...)),
		// A panic's words may hold anything.
		sdk.WithoutPanicRecording())
	return e, nil
}

// limits bound what a span holds, whatever it is told: what waits is bounded in spans.
func limits() sdk.SpanLimits {
	l := sdk.NewSpanLimits()
	l.AttributeValueLengthLimit = maxValue
	return l
}

// SetShare sets the share of the requests that are recorded unless their caller says.
func (e *Exporter) SetShare(share float64) { e.sampler.setShare(share) }

// Counts are what became of spans since the start.
func (e *Exporter) Counts() spans.Counts {
	return spans.Counts{Sent: e.sender.sent.Load(), QueueFull: e.sender.full.Load(), NotTaken: e.sender.notTaken.Load(), Declined: e.sampler.declined.Load()}
}

// Close sends what waits, for two seconds at most, and stops.
func (e *Exporter) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushFor)
	defer cancel()
	stop := context.AfterFunc(ctx, e.sender.end) // what is being sent, or would be, ends then
	defer stop()
	err := e.Shutdown(context.WithoutCancel(ctx))
	e.sender.end()
	e.sender.client.CloseIdleConnections()
	return err
}

// sender sends spans and counts them. Its methods as an exporter are called one at a time.
type sender struct {
	sdk.SpanExporter
	client *http.Client
	queue  sdk.SpanProcessor
	log    *slog.Logger
	life   context.Context
	end    context.CancelFunc

	waiting              atomic.Int64 // spans in the queue, or being sent
	sent, full, notTaken atomic.Uint64
	failing              bool // the last request failed
}

// ExportSpans implements sdk.SpanExporter. It reports no error: whoever could be told would
// write it to the standard error of the process.
func (s *sender) ExportSpans(ctx context.Context, batch []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	err := s.SpanExporter.ExportSpans(ctx, batch)
	s.waiting.Add(-int64(len(batch)))
	if err == nil {
		s.sent.Add(uint64(len(batch)))
	} else {
		s.notTaken.Add(uint64(len(batch)))
	}
	switch {
	case err != nil && !s.failing:
		s.log.Warn("spans do not reach the collector, and are dropped", "err", reason(err))
	case err == nil && s.failing:
		s.log.Info("spans reach the collector again", "dropped", s.notTaken.Load()+s.full.Load())
	}
	s.failing = err != nil
	return nil
}

// answered is the status in what the exporter says of an answer.
var answered = regexp.MustCompile(`: ([1-5][0-9][0-9] [A-Za-z][A-Za-z' -]*)`)

// reason says why without the address and without what the collector answered: both may hold
// what it was sent to let us in.
func reason(err error) string {
	var asked *url.Error
	if errors.As(err, &asked) {
		return asked.Err.Error()
	}
	if status := answered.FindStringSubmatch(err.Error()); status != nil {
		return "the collector answered " + status[1]
	}
	return "the collector did not take them"
}

// bounded hands spans to the queue as long as it has room, and counts those that it does not
// take.
type bounded struct{ *sender }

func (b bounded) OnStart(context.Context, sdk.ReadWriteSpan) {}

func (b bounded) OnEnd(span sdk.ReadOnlySpan) {
	if b.waiting.Add(1) > maxWaiting {
		b.waiting.Add(-1)
		b.full.Add(1)
		return
	}
	b.queue.OnEnd(span)
}

func (b bounded) ForceFlush(ctx context.Context) error { return b.queue.ForceFlush(ctx) }
func (b bounded) Shutdown(ctx context.Context) error   { return b.queue.Shutdown(ctx) }
