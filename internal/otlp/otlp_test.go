package otlp

import (
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"mneme/internal/otlp/otlptest"
	"mneme/internal/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, opt Options) *Exporter {
	t.Helper()
	e, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// request makes the spans of one request: its own, and so many below it.
func request(e *Exporter, traceparent string, below int) trace.Span {
	ctx, span := spans.Begin(spans.Continue(context.Background(), traceparent), e, trace.SpanKindServer, "GET /x")
	for range below {
		_, child := spans.Start(ctx, spans.Score)
		child.End()
	}
	span.End()
	return span
}

func sampled(trace int) string { return fmt.Sprintf("00-%032x-00f067aa0ba902b7-01", trace) }

func TestSpansArriveWithTheirHeadersAndTheNode(t *testing.T) {
	c := otlptest.Start(t)
	e := open(t, Options{Endpoint: c.URL, Headers: "authorization=Bearer%20secret, x-team = a", Share: 1, Node: "n1", Version: "v1"})
	request(e, "", 2)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.Spans()
	if len(got) != 3 || got[0].Node != "n1" || string(got[0].TraceId) != string(got[2].TraceId) {
		t.Errorf("%d spans: %v", len(got), got)
	}
	if h := c.Headers(); len(h) != 1 || h[0].Get("Authorization") != "Bearer secret" || h[0].Get("X-Team") != "a" {
		t.Errorf("headers %v", h)
	}
	if n := e.Counts(); n != (spans.Counts{Sent: 3}) {
		t.Errorf("counts %+v", n)
	}
}

func TestCollectorsCertificateIsChecked(t *testing.T) {
	c := otlptest.StartTLS(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for authorities, want := range map[string]spans.Counts{ca: {Sent: 1}, "": {NotTaken: 1}} {
		e := open(t, Options{Endpoint: c.URL, CA: authorities, Share: 1})
		request(e, "", 0)
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := e.Counts(); n != want {
			t.Errorf("with authorities %q: %+v", authorities, n)
		}
	}
}

// TestVariablesOfTheLibraryDoNotCount: memnode's settings say where spans go.
func TestVariablesOfTheLibraryDoNotCount(t *testing.T) {
	c, other := otlptest.Start(t), otlptest.StartTLS(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": other.URL, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": other.URL, "OTEL_EXPORTER_OTLP_HEADERS": "a=b",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_CERTIFICATE": ca, "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_TRACES_SAMPLER": "always_off",
		"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_SCHEDULE_DELAY": "1"} {
		t.Setenv(name, value)
	}
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	request(e, "", 20)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := e.Counts(); n != (spans.Counts{Sent: 21}) || len(c.Spans()) != 21 || c.Headers()[0].Get("A") != "" {
		t.Errorf("counts %+v, %d spans came with %v", n, len(c.Spans()), c.Headers())
	}
}

// TestFullQueueDropsAndCounts: a collector that answers never holds nobody up.
func TestFullQueueDropsAndCounts(t *testing.T) {
	c := otlptest.Start(t)
	release := make(chan struct{})
	c.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return false
	})
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	request(e, "", 3*maxWaiting)
	n := e.Counts()
	if n.QueueFull != 2*maxWaiting+1 || n.Sent != 0 {
		t.Errorf("counts %+v of %d spans", n, 3*maxWaiting+1)
	}
	close(release)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := e.Counts(); n.Sent != maxWaiting || n.QueueFull != 2*maxWaiting+1 {
		t.Errorf("at the end %+v", n)
	}
}

// TestCloseEndsThoughTheCollectorDoesNotAnswer, and what waits is counted.
func TestCloseEndsThoughTheCollectorDoesNotAnswer(t *testing.T) {
	c := otlptest.Start(t)
	c.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	request(e, "", maxBatch+10)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if n := e.Counts(); n != (spans.Counts{NotTaken: maxBatch + 11}) {
		t.Errorf("counts %+v", n)
	}
}

func TestRefusedSpansAreCounted(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"500":         func(w http.ResponseWriter, _ *http.Request) bool { http.Error(w, "no", 500); return true },
		"a redirect":  func(w http.ResponseWriter, r *http.Request) bool { http.Redirect(w, r, "/elsewhere", 307); return true },
		"a hung line": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			c := otlptest.Start(t)
			var asked atomic.Int64
			c.Answer(func(w http.ResponseWriter, r *http.Request) bool { asked.Add(1); return answer(w, r) })
			e := open(t, Options{Endpoint: c.URL, Share: 1})
			request(e, "", 0)
			if err := e.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := e.Counts(); n != (spans.Counts{NotTaken: 1}) || asked.Load() != 1 || len(c.Spans()) != 0 {
				t.Errorf("counts %+v, asked %d times, %d spans", n, asked.Load(), len(c.Spans()))
			}
		})
	}
}

// TestCallersGetSoManyTracesASecond: more are not recorded, whichever ids they choose.
func TestCallersGetSoManyTracesASecond(t *testing.T) {
	e := open(t, Options{Endpoint: "http://127.0.0.1:1", Share: 0.5})
	began, recorded := time.Now(), 0
	for i := range 3 * maxAsked {
		if request(e, sampled(i+1), 0).SpanContext().IsSampled() {
			recorded++
		}
	}
	seconds := int(time.Since(began)/time.Second) + 1
	n := e.Counts()
	if recorded < maxAsked || recorded > seconds*maxAsked+maxAsked || recorded+int(n.Declined) != 3*maxAsked {
		t.Errorf("%d were recorded in %d s, %d declined", recorded, seconds, n.Declined)
	}
}

func TestShareMayChange(t *testing.T) {
	e := open(t, Options{Endpoint: "http://127.0.0.1:1", Share: 0})
	if request(e, "", 0).SpanContext().IsSampled() {
		t.Error("a share of 0 records something")
	}
	e.SetShare(1)
	if !request(e, "", 0).SpanContext().IsSampled() {
		t.Error("a share of 1 leaves something out")
	}
	if request(e, strings.TrimSuffix(sampled(1), "1")+"0", 0).SpanContext().IsSampled() {
		t.Error("a caller whose trace is not recorded is")
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	noCertificate := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(noCertificate, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		opt  Options
		want string
	}{
		{Options{Endpoint: "collector:4318"}, "not a URL"},
		{Options{Endpoint: "https://"}, "not a URL"},
		{Options{Endpoint: "grpc://collector:4317"}, "not a URL"},
		{Options{Endpoint: "https://collector:43 18"}, "not a URL"},
		{Options{Endpoint: "https://u:secret@collector"}, "password"},
		{Options{Endpoint: "https://collector?key=secret"}, "behind its path"},
		{Options{Endpoint: "http://collector", Headers: "a=secret"}, "in clear"},
		{Options{Endpoint: "http://collector.local", Headers: "a=secret"}, "in clear"},
		{Options{Endpoint: "http://collector.localhost", Headers: "a=secret"}, "in clear"},
		{Options{Endpoint: "http://localhost.example", Headers: "a=secret"}, "in clear"},
		{Options{Endpoint: "http://192.168.0.1", Headers: "a=secret"}, "in clear"},
		{Options{Endpoint: "https://collector", Headers: "secret"}, "NAME=VALUE"},
		{Options{Endpoint: "https://collector", Headers: "a b=secret"}, "NAME=VALUE"},
		{Options{Endpoint: "https://collector", Headers: "a=secret%0d%0ax: y"}, "NAME=VALUE"},
		{Options{Endpoint: "http://collector", CA: noCertificate}, "not https"},
		{Options{Endpoint: "https://collector", CA: noCertificate}, "no certificate"},
		{Options{Endpoint: "https://collector", CA: noCertificate + "y"}, "no such file"},
	} {
		err := tc.opt.Check()
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", tc.opt, err, tc.want)
		}
	}
	for _, fine := range []Options{{Endpoint: "http://collector:4318"}, {Endpoint: "https://collector/v1/traces", Headers: "a=b,"}, {Endpoint: "http://[::1]:4318", Headers: "a=b"}, {Endpoint: "http://localhost:4318", Headers: "a=b"}} {
		if err := fine.Check(); err != nil {
			t.Errorf("%+v: %v", fine, err)
		}
	}
}

// BenchmarkRequest is what the spans of a capture cost, by the share that is recorded.
func BenchmarkRequest(b *testing.B) {
	for _, share := range []float64{0, 0.01, 1} {
		b.Run(fmt.Sprint(share), func(b *testing.B) {
			e, err := Open(Options{Endpoint: "http://127.0.0.1:1", Share: share})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				request(e, "", 6)
			}
			b.StopTimer()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = e.Close(ctx)
		})
	}
}

// TestSecretsOfTheCollectorWereLogged: what it answers, and where it is, may hold what let us in.
func TestSecretsOfTheCollectorWereLogged(t *testing.T) {
	const secret = "sekret+tok/en"
	var said strings.Builder
	opt := Options{Headers: "authorization=Bearer%20sekret%2Btok%2Fen", Share: 1, Logger: slog.New(slog.NewTextHandler(&said, nil))}
	c := otlptest.Start(t)
	c.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, "invalid credentials: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return true
	})
	for _, at := range []string{c.URL, "http://127.0.0.1:1/" + secret} {
		opt.Endpoint = at
		e := open(t, opt)
		request(e, "", 0)
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if out := said.String(); strings.Contains(out, secret) || strings.Contains(out, "Bearer") || !strings.Contains(out, "the collector answered 401 Unauthorized") || strings.Count(out, "do not reach") != 2 {
		t.Errorf("the log says %s", out)
	}
}

// TestLongValuesFilledTheQueue: it was bounded in spans, and a caller chose how long they were.
func TestLongValuesFilledTheQueue(t *testing.T) {
	c := otlptest.Start(t)
	e := open(t, Options{Endpoint: c.URL, Share: 1})
	_, span := spans.Begin(context.Background(), e, trace.SpanKindServer, "GET /x")
	span.SetAttributes(spans.Model.String(strings.Repeat("m", 1<<20)))
	span.End()
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Spans() {
		for _, a := range s.Attributes {
			if n := len(a.Value.GetStringValue()); n > maxValue {
				t.Errorf("%s has %d bytes", a.Key, n)
			}
		}
	}
	if len(c.Spans()) != 1 {
		t.Errorf("%d spans", len(c.Spans()))
	}
}
