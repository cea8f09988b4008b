package main

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/node"
	"mneme/internal/otlp/otlptest"
	"mneme/internal/spans"
)

// TestTracesAreSentUntilTheEnd: the settings reach the exporter, and a stop sends what waits.
func TestTracesAreSentUntilTheEnd(t *testing.T) {
	c := otlptest.Start(t)
	fake := newFake()
	w := newWorld(t, func(_ context.Context, cfg node.Config) (instance, error) {
		if cfg.Traces == nil {
			t.Error("the node has no exporter")
			return fake, nil
		}
		_, span := spans.Begin(context.Background(), cfg.Traces, trace.SpanKindServer, "GET /x")
		span.End()
		return fake, nil
	})
	close(fake.done) // it ends by itself at once
	w.environ = []string{"MNEME_TRACES_HEADERS=authorization=Bearer%20sesame"}
	w.run("--traces-endpoint", c.URL, "--traces-share", "1", "--node-id", "n7")
	if got := c.Spans(); len(got) != 1 || got[0].Node != "n7" {
		t.Errorf("%d spans arrived: %v", len(got), got)
	}
	if h := c.Headers(); len(h) != 1 || h[0].Get("Authorization") != "Bearer sesame" {
		t.Errorf("headers %v", h)
	}
	if strings.Contains(w.err.String(), "sesame") {
		t.Errorf("the log holds the header: %s", w.err)
	}
}

func TestNothingIsTracedUnlessAsked(t *testing.T) {
	w := stopsWhenReady(t, newFake())
	if code := w.run("--traces-share", "1"); code != 0 || w.cfg.Traces != nil {
		t.Errorf("exit %d, traces %v", code, w.cfg.Traces)
	}
}

// TestTracesThatCannotBeSentAreAMistake: the start says so, and config validate as well.
func TestTracesThatCannotBeSentAreAMistake(t *testing.T) {
	for _, tc := range []struct {
		args    []string
		environ string
		want    string
	}{
		{[]string{"--traces-endpoint", "collector:4318"}, "", "not a URL"},
		{[]string{"--traces-endpoint", "https://collector", "--traces-ca", "/nowhere/ca.crt"}, "", "no such file"},
		{[]string{"--traces-endpoint", "http://collector"}, "MNEME_TRACES_HEADERS=a=sesame", "in clear"},
		{[]string{"--traces-endpoint", "https://collector", "--traces-share", "1.5"}, "", "not a share"},
		{[]string{"--traces-endpoint", "https://collector", "--traces-share", "NaN"}, "", "not a share"},
		{[]string{"--traces-headers", "a=b"}, "", "no flag --traces-headers"},
	} {
		for _, verb := range [][]string{nil, {"config", "validate"}} {
			w := stopsWhenReady(t, newFake())
			w.environ = []string{tc.environ}
			if code := w.run(append(verb, tc.args...)...); code != exitUsage {
				t.Errorf("%v %v: exit %d", verb, tc.args, code)
			}
			wantHas(t, strings.Join(tc.args, " "), w.err.String(), tc.want)
			if strings.Contains(w.err.String(), "sesame") {
				t.Errorf("the error holds the header: %s", w.err)
			}
		}
	}
}

func TestTraceHeadersAreNotShown(t *testing.T) {
	w := stopsWhenReady(t, newFake())
	w.environ = []string{"MNEME_TRACES_HEADERS=authorization=Bearer%20sesame"}
	if got := w.config(t)["traces-headers"]; got.Value != redacted {
		t.Errorf("%v", got.Value)
	}
}
