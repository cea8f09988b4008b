package node

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"mneme/internal/slots"
)

// TestConnectionTooManyIsToldSo: above the cap a connection gets an answer at
// once, and a place that becomes free is used again.
func TestConnectionTooManyIsToldSo(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimited(inner, slots.New(2), true)
	accepted := make(chan net.Conn, 8)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() { _ = inner.Close() })
	const answered = 10 * time.Second // what takes longer hangs
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(answered))
		return c
	}
	served := func() net.Conn {
		t.Helper()
		dial()
		select {
		case c := <-accepted:
			t.Cleanup(func() { _ = c.Close() })
			return c
		case <-time.After(answered):
			t.Fatalf("a connection for which there is a place was not accepted within %s", answered)
			return nil
		}
	}
	refused := func() string {
		t.Helper()
		answer, err := io.ReadAll(dial())
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
			t.Fatalf("a connection too many was not told so within %s: %q %v", answered, answer, err)
		}
		return string(answer)
	}
	first, second := served(), served()
	if answer := refused(); !strings.Contains(answer, `"hint"`) {
		t.Errorf("%q", answer)
	}
	_ = first.Close()
	_ = first.Close() // a second time gives no second place
	third := served()
	refused()
	_ = inner.Close()
	<-done
	_ = second.Close()
	_ = third.Close()
}

// TestConnectionTooManyGotAReset: the answer was sent and the connection closed with
// its request unread, which the system answers with a reset.
func TestConnectionTooManyGotAReset(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimited(inner, slots.New(0), true)
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nContent-Length: 8192\r\n\r\n"+strings.Repeat("x", 8192)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = l.Accept() }() // after the request has come
	if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
		t.Errorf("%q %v", answer, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	<-done
}
