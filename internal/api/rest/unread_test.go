package rest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// longStatus makes /v1/status an answer of n bytes and a little more.
func longStatus(b *bench, n int) {
	b.f.status = func() (memory.Status, error) { return memory.Status{ClusterID: strings.Repeat("x", n)}, nil }
}

// unread asks for the status and reads nothing.
func unread(t *testing.T, url string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := fmt.Fprint(c, "GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestAnswerThatNobodyReadWasHeldForEver: only streams had a deadline for writing.
func TestAnswerThatNobodyReadWasHeldForEver(t *testing.T) {
	const size = 16 << 20 // more than the buffers of a connection hold
	b := newBench(t, func(o *Options) { o.SendLimit = time.Second })
	longStatus(b, size)
	c := unread(t, served(t, b, false))
	eventually(t, "the answer did not begin", func() bool { return b.s.answers.used.Load() > 0 })
	eventually(t, "the answer is still held", func() bool { return b.s.answers.used.Load() == 0 })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if got, _ := io.Copy(io.Discard, c); got >= size {
		t.Errorf("%d bytes came: the client was not cut off", got)
	}
}

// TestSteadyReaderGetsALongAnswer: the deadline is each piece's, not the answer's.
func TestSteadyReaderGetsALongAnswer(t *testing.T) {
	b := newBench(t, func(o *Options) { o.SendLimit = time.Second })
	longStatus(b, 32<<20)
	c := unread(t, served(t, b, false))
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	got := int64(0)
	for got < 32<<20 {
		n, err := io.CopyN(io.Discard, c, 1<<20)
		if got += n; err != nil {
			t.Fatalf("%v after %d bytes", err, got)
		}
		time.Sleep(50 * time.Millisecond) // as a line of 20 MB a second
	}
}

// TestAnswersTogetherWereUnbounded: fifteen clients that read nothing held 6.8 GB.
func TestAnswersTogetherWereUnbounded(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxAnswers, o.SendLimit = 100<<20, 5*time.Minute })
	longStatus(b, 64<<20)
	url := served(t, b, false)
	held := unread(t, url)
	eventually(t, "the answer did not begin", func() bool { return b.s.answers.used.Load() > 0 })
	ask := func() int {
		t.Helper()
		resp, err := http.Get(url + "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		defer http.DefaultClient.CloseIdleConnections()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := ask(); got != http.StatusTooManyRequests {
		t.Errorf("a second long answer: %d", got)
	}
	longStatus(b, 1000)
	if got := ask(); got != 200 {
		t.Errorf("a short answer: %d", got)
	}
	_ = held.Close()
	eventually(t, "the answer is still counted", func() bool { return b.s.answers.used.Load() == 0 })
	longStatus(b, 64<<20)
	if got := ask(); got != 200 {
		t.Errorf("a long answer, once there is room: %d", got)
	}
}
