package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/eventlog"
)

// TestCallersTookAllConnections: callers could open as many connections as the
// process has files, and so shut out HTTP, the admin socket and the node itself.
func TestCallersTookAllConnections(t *testing.T) {
	const callers = 5
	s := startServer(t, eventlog.ServerOptions{MaxCallers: callers})
	for range callers {
		publicClient(t, s)
	}
	if nc, err := nats.Connect(s.ClientURL()); err == nil {
		nc.Close()
		t.Errorf("caller %d is let in", callers+1)
	}
	openStream(t, s, eventlog.StreamConfig{}) // the node has connections beyond theirs
	var sockets []net.Conn
	for range 150 { // that say nothing
		c, err := net.Dial("tcp", s.Addr())
		must(t, err)
		t.Cleanup(func() { c.Close() })
		sockets = append(sockets, c)
	}
	var held atomic.Int32
	var reads sync.WaitGroup
	until := time.Now().Add(500 * time.Millisecond)
	for _, c := range sockets {
		must(t, c.SetReadDeadline(until))
		reads.Go(func() {
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				held.Add(1)
			}
		})
	}
	reads.Wait()
	if n := held.Load(); n > 64 || n == 0 {
		t.Errorf("%d idle sockets are held", n)
	}
}

// TestOneCallerSubscribedWithoutEnd: 300,000 subscriptions of one connection took
// 735 MB.
func TestOneCallerSubscribedWithoutEnd(t *testing.T) {
	s := startServer(t, eventlog.ServerOptions{})
	denied := make(chan error, 1000)
	nc, err := nats.Connect(s.ClientURL(), nats.NoReconnect(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	must(t, err)
	defer nc.Close()
	for i := range 30 {
		_, err := nc.SubscribeSync(fmt.Sprintf("mem.feed.team-%d.>", i))
		must(t, err)
	}
	must(t, nc.Flush())
	if len(denied) != 0 {
		t.Fatalf("30 subscriptions: %v", <-denied)
	}
	for i := range 100 {
		if _, err := nc.SubscribeSync(fmt.Sprintf("mem.feed.more-%d.>", i)); err != nil {
			break
		}
	}
	_ = nc.Flush()
	select {
	case err := <-denied:
		if !strings.Contains(err.Error(), "maximum subscriptions exceeded") && !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("130 subscriptions are taken")
	}
}

// printed is what a server logs.
type printed struct {
	mu sync.Mutex
	bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Buffer.Write(b)
}

func (p *printed) lines() (n, size int, all string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Count(p.Bytes(), []byte("\n")), p.Len(), p.String()
}

// TestRefusedCallersFilledTheLog: each denied publish and each failed login was a
// line, 15 MB a second of them; a login needs no credentials.
func TestRefusedCallersFilledTheLog(t *testing.T) {
	var out printed
	s, err := eventlog.StartServer(testContext(t), eventlog.ServerOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0",
		Logger: slog.New(slog.NewTextHandler(&out, nil)), Auth: func(_, _, token string) bool { return token == "right" }})
	must(t, err)
	t.Cleanup(func() { must(t, s.Shutdown(context.WithoutCancel(t.Context()))) })
	nc, err := nats.Connect(s.ClientURL(), nats.Token("right"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	must(t, err)
	defer nc.Close()
	long := "mem.log." + strings.Repeat("x", 900)
	for range 2000 {
		must(t, nc.Publish(long, nil))
	}
	must(t, nc.Flush())
	for range 50 {
		if _, err := nats.Connect(s.ClientURL(), nats.Token("wrong")); err == nil {
			t.Fatal("let in")
		}
	}
	n, size, all := out.lines()
	if n > 50 || size > 50_000 {
		t.Errorf("%d lines, %d bytes", n, size)
	}
	if !strings.Contains(all, "Publish Violation") {
		t.Errorf("the first are not logged: %s", all)
	}
}
