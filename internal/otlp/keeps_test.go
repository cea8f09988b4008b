package otlp

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/otlp/otlptest"
	"mneme/internal/spans"
)

// TestSentSpansMakeRoom: the queue takes as many again when those before them have been sent.
func TestSentSpansMakeRoom(t *testing.T) {
	c := otlptest.Start(t)
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	for range 2 {
		request(e, "", maxWaiting-1)
		if err := e.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.Counts(); n != (spans.Counts{Sent: 2 * maxWaiting}) {
		t.Errorf("counts %+v of %d spans", n, 2*maxWaiting)
	}
}

func TestEachSecondHasItsOwnTraces(t *testing.T) {
	l := perSecond{most: 2}
	began := time.Unix(1000, 0)
	for i, step := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true}, {time.Millisecond, true}, {2 * time.Millisecond, false}, {999 * time.Millisecond, false},
		{time.Second, true}, {1001 * time.Millisecond, true}, {1999 * time.Millisecond, false},
		{time.Hour, true},
	} {
		if got := l.take(began.Add(step.after)); got != step.want {
			t.Errorf("step %d, after %v: %v, want %v", i, step.after, got, step.want)
		}
	}
}

// TestForwardedRequestsAreNotDeclined: the node that forwards them has counted them already.
func TestForwardedRequestsAreNotDeclined(t *testing.T) {
	c := otlptest.Start(t)
	e := open(t, Options{Endpoint: c.URL})
	for i := range 3 * maxAsked {
		_, span := spans.Join(spans.Continue(t.Context(), sampled(i+1)), e, spans.Forwarded)
		if !span.IsRecording() {
			t.Fatalf("request %d of another node is not recorded", i)
		}
		span.End()
	}
	if !request(e, sampled(1), 0).SpanContext().IsSampled() || e.Counts().Declined != 0 {
		t.Errorf("what other nodes ask for leaves nothing for callers: %+v", e.Counts())
	}
}

// TestWordsOfAPanicAreNotSent: a span that ends while its goroutine panics says nothing of that.
func TestWordsOfAPanicAreNotSent(t *testing.T) {
	c := otlptest.Start(t)
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	func() {
		defer func() { _ = recover() }()
		_, span := spans.Begin(context.Background(), e, trace.SpanKindServer, "GET /x")
		defer span.End()
		panic("zanzibarine")
	}()
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.Spans(); len(got) != 1 || len(got[0].Events) > 0 || strings.Contains(string(c.Bytes()), "zanzibarine") {
		t.Errorf("the collector got %v", got)
	}
}

// TestCloseWaitsTwoSeconds for a collector that does not answer, though the caller would wait
// for ever.
func TestCloseWaitsTwoSeconds(t *testing.T) {
	c := otlptest.Start(t)
	c.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	request(e, "", 0)
	began := time.Now()
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := e.Counts(); n != (spans.Counts{NotTaken: 1}) {
		t.Errorf("counts %+v", n)
	}
}

func TestOldVersionsOfTLSAreNotSpoken(t *testing.T) {
	for version, want := range map[uint16]spans.Counts{tls.VersionTLS11: {NotTaken: 1}, tls.VersionTLS12: {Sent: 1}, tls.VersionTLS13: {Sent: 1}} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
			srv.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version}
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.StartTLS()
			defer srv.Close()
			ca := filepath.Join(t.TempDir(), "ca.crt")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
				t.Fatal(err)
			}
			e := open(t, Options{Endpoint: srv.URL, CA: ca, Share: 1})
			request(e, "", 0)
			if err := e.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := e.Counts(); n != want {
				t.Errorf("counts %+v, want %+v", n, want)
			}
		})
	}
}
