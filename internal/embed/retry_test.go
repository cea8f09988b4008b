package embed

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pauseOf is how long to wait before a call is worth repeating; false if repeating
// does not help.
func pauseOf(err error) (time.Duration, bool) {
	var e *Error
	if errors.As(err, &e) && e.Kind == ErrUnavailable {
		return e.RetryAfter, true
	}
	return 0, false
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{nil, 0},
		{map[string]string{"retry-after": "3"}, 3 * time.Second},
		{map[string]string{"retry-after": "0.5"}, 500 * time.Millisecond},
		{map[string]string{"retry-after": "-4"}, 0},
		{map[string]string{"retry-after": "NaN"}, 0},
		{map[string]string{"retry-after": "1e300"}, 24 * time.Hour},
		{map[string]string{"retry-after": "soon"}, 0},
		{map[string]string{"retry-after": now.Add(7 * time.Second).Format(http.TimeFormat)}, 7 * time.Second},
		{map[string]string{"retry-after": now.Add(-time.Hour).Format(http.TimeFormat)}, 0},
		{map[string]string{"retry-after-ms": "250", "retry-after": "9"}, 250 * time.Millisecond},
		{map[string]string{"x-ratelimit-reset-requests": "20ms", "x-ratelimit-reset-tokens": "6m0s"}, 6 * time.Minute},
		{map[string]string{"x-ratelimit-reset-requests": "20ms", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "55"}, 20 * time.Millisecond},
		{map[string]string{"x-ratelimit-reset": "12"}, 12 * time.Second},
		{map[string]string{"x-ratelimit-reset": "1800000042"}, 42 * time.Second},
		{map[string]string{"x-ratelimit-reset": "-1s"}, 0},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		if got := retryAfterHeader(h, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.header, got, c.want)
		}
	}
}

func TestPausesAreFullJitter(t *testing.T) {
	for _, r := range []float64{0, 0.25, 0.999} {
		p := newPauses(func() float64 { return r })
		ceiling := firstPause
		for n := range 12 {
			if got, want := p.next(0), time.Duration(r*float64(ceiling)); got != want {
				t.Fatalf("pause %d at %v: %v, want %v", n, r, got, want)
			}
			ceiling = min(2*ceiling, longestPause)
		}
		if got := p.next(time.Hour); got != time.Hour {
			t.Fatalf("the server's wish is ignored: %v", got)
		}
	}
}

// TestRateLimited answers 429 and then well.
func TestRateLimited(t *testing.T) {
	for _, c := range []struct {
		name, kind, header, value, body string
		want                            []time.Duration // nil: not waited for
		retryAfter                      time.Duration
	}{
		{"plain", ProviderOllama, "", "", "", []time.Duration{250 * time.Millisecond}, 0},
		{"seconds", ProviderOpenAI, "Retry-After", "7", "", []time.Duration{7 * time.Second}, 0},
		{"milliseconds", ProviderOpenAI, "Retry-After-Ms", "1500", "", []time.Duration{1500 * time.Millisecond}, 0},
		{"reset", ProviderOpenAI, "X-Ratelimit-Reset-Tokens", "8.5s", "", []time.Duration{8500 * time.Millisecond}, 0},
		{"RetryInfo", ProviderGemini, "", "", `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"11s"}]}}`, []time.Duration{11 * time.Second}, 0},
		{"too long", ProviderOpenAI, "Retry-After", "3600", "", nil, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t, c.kind)
			p.script = func(n int, _ seen, w http.ResponseWriter, _ *http.Request) bool {
				if n > 1 {
					return false
				}
				if c.header != "" {
					w.Header().Set(c.header, c.value)
				}
				return reply(w, 429, c.body)
			}
			e, clock := open(t, testConfig(p))
			_, err := e.Embed(t.Context(), Document, []string{"a"})
			if wait, again := pauseOf(err); (err == nil) != (c.want != nil) || again != (c.want == nil) || wait != c.retryAfter {
				t.Fatal(err)
			}
			if !slices.Equal(clock.slept(), c.want) {
				t.Fatalf("slept %v, want %v", clock.slept(), c.want)
			}
		})
	}
}

// handlerTransport calls a handler without a network, so that time can be played.
type handlerTransport struct{ handler http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		var requests atomic.Int64
		dead.Store(true)
		p := &provider{kind: ProviderOpenAI, dims: testDims}
		p.script = func(_ int, _ seen, w http.ResponseWriter, _ *http.Request) bool {
			requests.Add(1)
			return dead.Load() && reply(w, 503, "")
		}
		e, err := Open(t.Context(), Config{Provider: ProviderOpenAI, BaseURL: "http://test/v1", Dimensions: testDims, MaxRetries: -1},
			Options{HTTPClient: &http.Client{Transport: handlerTransport{p}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		try := func() error {
			_, err := e.Embed(t.Context(), Document, []string{"a"})
			return err
		}
		for range breakerFailures {
			if err := try(); !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
		}
		for range 3 { // open: the provider is left alone and the caller told until when
			err := try()
			if wait, again := pauseOf(err); !again || wait != breakerOpen {
				t.Fatal(err)
			}
		}
		if requests.Load() != breakerFailures {
			t.Fatalf("%d requests", requests.Load())
		}
		time.Sleep(breakerOpen + time.Millisecond) // half open: one try, which fails
		_ = try()
		if _ = try(); requests.Load() != breakerFailures+1 {
			t.Fatalf("%d requests", requests.Load())
		}
		dead.Store(false)
		time.Sleep(breakerOpen + time.Millisecond)
		for range 3 {
			if err := try(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestPauseRespectsDeadline runs on the system clock, played.
func TestPauseRespectsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{kind: ProviderOllama, dims: testDims}
		p.script = func(n int, _ seen, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "10")
			return n < 3 && reply(w, 503, "")
		}
		e, err := Open(t.Context(), Config{Provider: ProviderOllama, Dimensions: testDims}, Options{HTTPClient: &http.Client{Transport: handlerTransport{p}}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = e.Embed(ctx, Document, []string{"a"})
		if wait, again := pauseOf(err); !again || wait != 10*time.Second || time.Since(start) != 0 {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		if _, err = e.Embed(t.Context(), Document, []string{"a"}); err != nil || time.Since(start) != 10*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
	})
}

// TestCancelWhilePausing gives up in the middle of a pause.
func TestCancelWhilePausing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{kind: ProviderOllama, dims: testDims}
		p.script = func(_ int, _ seen, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "10")
			return reply(w, 503, "")
		}
		e, err := Open(t.Context(), Config{Provider: ProviderOllama, Dimensions: testDims}, Options{HTTPClient: &http.Client{Transport: handlerTransport{p}}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.AfterFunc(3*time.Second, func() { _ = e.Close() })
		if _, err = e.Embed(t.Context(), Document, []string{"a"}); !errors.Is(err, ErrClosed) || time.Since(start) != 3*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		synctest.Wait()
	})
}
