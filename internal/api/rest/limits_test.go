package rest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/memory"
)

// slowly sends a request whose body stays open: head and the first bytes only.
func slowly(t *testing.T, addr string, length int, sent string) net.Conn {
	t.Helper()
	return slowlyTo(t, addr, eventsPath, length, sent)
}

func slowlyTo(t *testing.T, addr, path string, length int, sent string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, length, sent)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBodiesThatNeverEnd: 300 of them were alive after 89 seconds.
func TestBodiesThatNeverEnd(t *testing.T) {
	b, srv := live(t, func(o *Options) { o.BodyTimeout = 100 * time.Millisecond })
	var conns []net.Conn
	for range 50 {
		conns = append(conns, slowly(t, srv.Listener.Addr().String(), 1000, `{"text":`))
	}
	for _, c := range conns {
		answer, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(answer), `"code":"timeout"`) || !strings.Contains(string(answer), `"hint"`) {
			t.Fatalf("%v\n%s", err, answer)
		}
	}
	if b.s.bodies.used.Load() != 0 {
		t.Errorf("%d bytes are still counted", b.s.bodies.used.Load())
	}
	if b.lastCall() != "" {
		t.Errorf("called %s", b.lastCall())
	}
}

// TestSlowHandlerOutlivesTheBodysDeadline: the deadline is the body's, a request
// that works longer is not cut off by it.
func TestSlowHandlerOutlivesTheBodysDeadline(t *testing.T) {
	b, srv := live(t, func(o *Options) { o.BodyTimeout = 50 * time.Millisecond })
	b.f.capture = func(ctx context.Context, _ []memory.Capture, _ memory.Wait) (memory.CaptureResponse, error) {
		select {
		case <-ctx.Done():
			return memory.CaptureResponse{}, ctx.Err()
		case <-time.After(200 * time.Millisecond):
			return memory.CaptureResponse{Position: "p0.1.1.0", Results: []memory.CaptureResult{{Status: memory.StatusCreated}}}, nil
		}
	}
	resp, err := http.Post(srv.URL+eventsPath, "application/json", strings.NewReader(`{"agent":"a","text":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	if err := resp.Body.Close(); err != nil || resp.StatusCode != 200 {
		t.Errorf("status %d, %v", resp.StatusCode, err)
	}
}

// TestBodiesTogetherAreBounded: what all requests under way hold has one bound,
// and those above it are refused while the others go on.
func TestBodiesTogetherAreBounded(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxBodies = 100_000; o.BodyTimeout = 10 * time.Second })
	url := served(t, b, false)
	for range 3 {
		slowly(t, strings.TrimPrefix(url, "http://"), 1<<20, `{"text":"`+strings.Repeat("x", freeBody+30_000))
	}
	eventually(t, "the bodies are not counted", func() bool { return b.s.bodies.used.Load() >= 90_000 })
	resp, err := http.Post(url+eventsPath, "application/json", strings.NewReader(`{"text":"`+strings.Repeat("x", freeBody+30_000)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(answer), `"overloaded"`) {
		t.Errorf("status %d %s", resp.StatusCode, answer)
	}
	if rec := b.do("POST", eventsPath, `{"agent":"a","text":"small"}`); rec.Code != 200 {
		t.Errorf("a small one: %d", rec.Code)
	}
}

// TestEventStreamsAreBounded: 1,500 were accepted, with four goroutines each.
func TestEventStreamsAreBounded(t *testing.T) {
	const limit, asked = 40, 60
	b := newBench(t, func(o *Options) { o.MaxStreams = limit })
	url := served(t, b, false)
	b.f.events = func(ctx context.Context, _ func(memory.Event) error) error {
		<-ctx.Done()
		return ctx.Err()
	}
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	got := map[int]int{}
	var open sync.WaitGroup
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var bodies []io.Closer
	for range asked {
		open.Go(func() {
			r, err := http.NewRequestWithContext(ctx, "GET", url+eventsPath, nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got[resp.StatusCode]++
			bodies = append(bodies, resp.Body)
		})
	}
	open.Wait()
	if got[200] != limit || got[429] != asked-limit {
		t.Errorf("statuses %v", got)
	}
	// Two goroutines of the server's for each stream, and two of the client's for
	// each request whose answer it has not read.
	for end := time.Now().Add(2 * time.Second); runtime.NumGoroutine()-before > 2*limit+2*asked+10; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines for %d streams", runtime.NumGoroutine()-before, limit)
		}
	}
	cancel()
	for _, b := range bodies {
		_ = b.Close()
	}
	eventually(t, "streams are still counted", func() bool { return b.s.bulkheads.streams.slots.Taken() == 0 })
}

// TestLimitsMayChange sets the limits of a surface that serves.
func TestLimitsMayChange(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxBodies = 100; o.ReadWait = time.Nanosecond })
	surface := &Surface{b.s}
	b.remote = true
	long := `{"agent":"a","text":"` + strings.Repeat("x", 2*freeBody) + `"}`
	capture := func() int { return b.do("POST", eventsPath, long).Code }
	list := func() int { return b.do("GET", "/v1/namespaces/team/records", "").Code }
	if got := capture(); got != http.StatusTooManyRequests {
		t.Errorf("a body for which there is no room: %d", got)
	}
	surface.SetLimits(Limits{MaxPages: 1})
	if got := capture(); got != http.StatusOK {
		t.Errorf("there is room now: %d", got)
	}
	b.s.bulkheads.pages.slots.Take()
	if got := list(); got != http.StatusTooManyRequests {
		t.Errorf("a second page: %d", got)
	}
	surface.SetLimits(Limits{MaxPages: 2})
	if got := list(); got != http.StatusOK {
		t.Errorf("a second page of two: %d", got)
	}
}
