package natsapi

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/otlp"
	"mneme/internal/otlp/otlptest"
	"mneme/internal/spans"
	"mneme/memory"
)

func traceID(n int) string { return fmt.Sprintf("%032x", n+1) }

func traceparent(n int) string { return "00-" + traceID(n) + "-00f067aa0ba902b7-01" }

// TestCapturesWrittenTogetherAreLinked: each continues its own trace, and all of them lead to the
// one below whose span they were written.
func TestCapturesWrittenTogetherAreLinked(t *testing.T) {
	c := otlptest.Start(t)
	e, err := otlp.Open(otlp.Options{Endpoint: c.URL})
	must(t, err)
	b := newBench(t, func(o *Options) { o.Traces = e })
	began, release := make(chan struct{}, 8), make(chan struct{})
	written := make(chan string, 8) // the trace of each batch
	b.f.onCapture(func(ctx context.Context, _ string, items []memory.Capture) (memory.CaptureResponse, error) {
		began <- struct{}{}
		<-release
		written <- spans.TraceID(ctx)
		return created(items), nil
	})
	inbox := b.agent.NewInbox()
	answers, err := b.agent.SubscribeSync(inbox)
	must(t, err)
	for i := range 4 {
		must(t, b.agent.PublishMsg(&nats.Msg{Subject: subject, Reply: inbox, Data: []byte("x"), Header: nats.Header{"Traceparent": {traceparent(i)}}}))
		must(t, b.agent.Flush())
		if i == 0 {
			receive(t, began) // the others gather behind it
		}
	}
	for deadline := time.Now().Add(patience); b.s.under.Load() < 4; runtime.Gosched() { // the rest waits in the lane
		if time.Now().After(deadline) {
			t.Fatal("the captures did not come")
		}
	}
	close(release)
	for range 4 {
		_, err := answers.NextMsg(patience)
		must(t, err)
	}
	must(t, b.s.Close(t.Context()))
	must(t, e.Close(t.Context()))
	if first, rest := receive(t, written), receive(t, written); first != traceID(0) || rest != traceID(1) {
		t.Errorf("written in the traces %s and %s", first, rest)
	}
	got := map[string]string{}
	for _, s := range c.Spans() {
		link := ""
		for _, l := range s.Links {
			link += fmt.Sprintf("%x", l.TraceId)
		}
		got[fmt.Sprintf("%x", s.TraceId)] = s.Name + " " + link
	}
	want := map[string]string{traceID(0): spans.NATSCapture + " ", traceID(1): spans.NATSCapture + " ",
		traceID(2): spans.NATSCapture + " " + traceID(1), traceID(3): spans.NATSCapture + " " + traceID(1)}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// TestLinesOfRequestsNameTheirTrace, whether or not anything is recorded.
func TestLinesOfRequestsNameTheirTrace(t *testing.T) {
	b := newBench(t, nil)
	b.f.onCapture(func(context.Context, string, []memory.Capture) (memory.CaptureResponse, error) { panic("a defect") })
	b.f.onRead(func(context.Context) error { panic("a defect") })
	b.ask(t, subject, "x", "traceparent", traceparent(6))
	b.ask(t, "mem.api.team.get", `{"id":"r"}`, "Traceparent", traceparent(7))
	for _, want := range []string{`msg="capture panicked" trace_id=` + traceID(6), `msg="capture failed" trace_id=` + traceID(6),
		`msg="request panicked" trace_id=` + traceID(7), `msg="request failed" trace_id=` + traceID(7)} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("no line %s in\n%s", want, b.log.String())
		}
	}
}
