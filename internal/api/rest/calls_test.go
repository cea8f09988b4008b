package rest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// asks has /mcp answer with what the API does at Ask. Where between is not nil, it is called
// after the API has answered.
func asks(between func(r *http.Request)) func(*Options) {
	return func(o *Options) {
		o.MCP = func(inner http.RoundTripper) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				method, path, _ := strings.Cut(r.Header.Get("Ask"), " ")
				body, _ := io.ReadAll(r.Body)
				req, err := http.NewRequestWithContext(r.Context(), method, "http://inside"+path, strings.NewReader(string(body)))
				if err != nil {
					panic(err)
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := inner.RoundTrip(req)
				if err != nil {
					panic(err)
				}
				if between != nil {
					between(r)
				}
				w.WriteHeader(resp.StatusCode)
				_, _ = io.Copy(w, resp.Body)
			}), nil
		}
	}
}

func calling(t *testing.T, url, ask, body string, length int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAsk: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", ask, length, body); err != nil {
		t.Fatal(err)
	}
	return c
}

func callOnce(t *testing.T, url, ask, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Ask", ask)
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestAnswersOfCallsWereNotCounted: 200 calls whose clients did not read took 6 GB, and their
// slots, too.
func TestAnswersOfCallsWereNotCounted(t *testing.T) {
	const size = 16 << 20 // more than the buffers of a connection hold
	b := newBench(t, func(o *Options) { asks(nil)(o); o.MaxCalls, o.MaxAnswers = 1, size+1<<20 })
	url := served(t, b, false)
	longStatus(b, size)
	c := calling(t, url, "GET /v1/status", "{}", 2)
	eventually(t, "the answer that nobody reads is not counted", func() bool {
		used := b.s.answers.used.Load()
		return used >= size && used < 2*size // and no more what it was made of
	})
	eventually(t, "who reads slowly holds up others", func() bool { return b.s.bulkheads.calls.slots.Taken() == 0 })
	if got := callOnce(t, url, "GET /v1/status", "{}"); got != http.StatusTooManyRequests {
		t.Errorf("a second long answer: %d", got)
	}
	if got := callOnce(t, url, "GET /v1/namespaces", "{}"); got != 200 {
		t.Errorf("a short answer: %d", got)
	}
	_ = c.Close()
	eventually(t, "the answer is still counted", func() bool { return b.s.answers.used.Load() == 0 })
	if got := callOnce(t, url, "GET /v1/status", "{}"); got != 200 {
		t.Errorf("a long answer, once there is room: %d", got)
	}
}

// TestCallsBeingMadeWereNotCounted: what a tool's answer is made of was held by as many calls as
// there may be at once.
func TestCallsBeingMadeWereNotCounted(t *testing.T) {
	const size = 1 << 20
	made, goOn := make(chan bool), make(chan bool)
	b := newBench(t, func(o *Options) {
		asks(func(r *http.Request) {
			if r.Header.Get("Ask") == "GET /v1/status" {
				made <- true
				<-goOn
			}
		})(o)
		o.MaxAnswers = size * madeOf
	})
	url := served(t, b, false)
	longStatus(b, size)
	first := make(chan int, 1)
	go func() { first <- callOnce(t, url, "GET /v1/status", "{}") }()
	<-made
	if used := b.s.answers.used.Load(); used < size*madeOf {
		t.Errorf("%d bytes are counted for what is made of %d", used, size)
	}
	second := make(chan int, 1)
	go func() { second <- callOnce(t, url, "GET /v1/status", "{}") }()
	<-made
	goOn <- true
	goOn <- true
	if one, two := <-first, <-second; min(one, two) != 200 || max(one, two) != http.StatusTooManyRequests {
		t.Errorf("%d and %d, want one to find no room", one, two)
	}
	eventually(t, "something is still counted", func() bool { return b.s.answers.used.Load() == 0 })
}

// TestSlowBodiesShutMCP: a call was under way before its body was there.
func TestSlowBodiesShutMCP(t *testing.T) {
	b := newBench(t, func(o *Options) { asks(nil)(o); o.MaxCalls, o.ReadWait = 1, time.Millisecond })
	url := served(t, b, false)
	const part = 2 * freeBody
	calling(t, url, "GET /v1/namespaces", strings.Repeat(" ", part), 2*part)
	eventually(t, "the body does not begin to arrive", func() bool { return b.s.bodies.used.Load() > 0 })
	if got := callOnce(t, url, "GET /v1/namespaces", "{}"); got != 200 {
		t.Errorf("beside a body that is sent slowly a call gets %d", got)
	}
}
