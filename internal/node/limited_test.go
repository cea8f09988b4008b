package node

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestConnectionTooManyIsToldSo: above the cap a connection gets an answer at
// once, and a place that becomes free is used again.
func TestConnectionTooManyIsToldSo(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLimited(inner, 2)
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
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	dial()
	first := <-accepted
	dial()
	second := <-accepted
	if answer, err := io.ReadAll(dial()); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") || !strings.Contains(string(answer), `"hint"`) {
		t.Errorf("%q %v", answer, err)
	}
	_ = first.Close()
	_ = first.Close() // a second time gives no second place
	dial()
	third := <-accepted
	if answer, err := io.ReadAll(dial()); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
		t.Errorf("%q %v", answer, err)
	}
	_ = inner.Close()
	<-done
	_ = second.Close()
	_ = third.Close()
}
