package eventlog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mneme/internal/events"
)

func TestCallersLeaveFilesToOthers(t *testing.T) {
	for files, want := range map[uint64]int{0: maxCallers, 1 << 20: maxCallers, 1024: 256, 8192: 2048, 10: fewestOfCallers, 1<<64 - 1: maxCallers} {
		if got := callersWithin(files); got != want {
			t.Errorf("%d files: %d callers, want %d", files, got, want)
		}
	}
	if files := openFiles(); files != 0 && files < 64 {
		t.Errorf("the process may open %d files", files)
	}
}

// Lines that were left out are told once, when the next minute has begun.
func TestLinesLeftOutAreCounted(t *testing.T) {
	l := lineLimit{most: 3}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	passed := 0
	for range 10 {
		if ok, leftOut := l.next(at); leftOut != 0 {
			t.Error("told in the same minute")
		} else if ok {
			passed++
		}
	}
	if passed != 3 {
		t.Errorf("%d lines are passed", passed)
	}
	at = at.Add(time.Minute)
	if ok, leftOut := l.next(at); !ok || leftOut != 7 {
		t.Errorf("the next minute: %v, %d were left out", ok, leftOut)
	}
	if _, leftOut := l.next(at); leftOut != 0 {
		t.Error("told twice")
	}
}

// The way back for a message that is not answered was kept for two minutes, with a
// reply subject of up to 4 KB: dropped captures took gigabytes. And a message of
// which a part came and then nothing was kept for six minutes.
func TestUnansweredMessagesWereKeptForMinutes(t *testing.T) {
	s, err := StartServer(t.Context(), ServerOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	node, err := s.ns.LookupAccount(nodeAccount)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range serviceSubjects() {
		if got, err := node.ServiceExportResponseThreshold(events.Spoken("*", subject)); err != nil || got != 35*time.Second {
			t.Errorf("%s: the way back is kept for %v, %v", subject, got, err)
		}
	}
	if v, err := s.ns.Varz(nil); err != nil || v.PingInterval*time.Duration(v.MaxPingsOut+1) > time.Minute {
		t.Errorf("whoever sends nothing is kept for %d times %v, %v", v.MaxPingsOut+1, v.PingInterval, err)
	}

	var closed = make(chan error, 1)
	nc, err := nats.Connect(s.ClientURL(), nats.NoReconnect(), nats.ClosedHandler(func(nc *nats.Conn) { closed <- nc.LastError() }))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	name := strings.Repeat("n", 63)
	long := nats.NewMsg("mem.in." + name + "." + name + ".capture")
	long.Reply, long.Data = "_INBOX."+strings.Repeat("r", 500), make([]byte, 1<<20)
	long.Header.Set("Mneme-Wait", "accepted")
	if err := errors.Join(nc.PublishMsg(long), nc.Flush()); err != nil {
		t.Fatalf("the longest names with a reply subject of 500 bytes: %v", err)
	}
	long.Reply = "_INBOX." + strings.Repeat("r", 2000)
	_ = errors.Join(nc.PublishMsg(long), nc.Flush())
	select {
	case err := <-closed:
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "control line") {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a reply subject of 2,000 bytes is taken")
	}
}

// TestDiscoveryWasKeptForSeconds: the way back for each question was kept for two
// seconds, answered or not: 40 connections that ask for $SRV.STATS took 1 to 1.9 GB.
func TestDiscoveryWasKeptForSeconds(t *testing.T) {
	s, err := StartServer(t.Context(), ServerOptions{Dir: t.TempDir(), Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	node, err := s.ns.LookupAccount(nodeAccount)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := node.ServiceExportResponseThreshold(discovery); err != nil || got > 500*time.Millisecond {
		t.Errorf("the way back is kept for %v, %v", got, err)
	}
}

// What callers do to the node's connection took the lines of the server's own, and
// stood as the cause of damage.
func TestSlowConsumerHidTheServersLines(t *testing.T) {
	var out bytes.Buffer
	l := newServerLog(slog.New(slog.NewTextHandler(&out, nil)))
	l.Warnf("about a stream")
	for range 10 * otherLines {
		l.connectionFault(nats.ErrSlowConsumer)
	}
	l.Warnf("more about a stream")
	if n := strings.Count(out.String(), "connection of the node"); n != clientLines {
		t.Errorf("%d lines about the node's connection", n)
	}
	if !strings.Contains(out.String(), "more about a stream") || l.lastWarning() != "more about a stream" {
		t.Errorf("the server's line is left out; the last is %q", l.lastWarning())
	}
}

// A server that is away was said four times a second, and hid what the server says of itself.
func TestServerThatIsAwayHidTheServersLines(t *testing.T) {
	var out bytes.Buffer
	l := newServerLog(slog.New(slog.NewTextHandler(&out, nil)))
	for i := range 2 * otherLines {
		l.Errorf("Error trying to connect to route (attempt %v): %v", i+2, "connection refused")
	}
	l.Warnf("about a stream")
	if n := strings.Count(out.String(), "connect to route"); n != routeLines || !strings.Contains(out.String(), "about a stream") {
		t.Errorf("%d lines about the route: %s", n, out.String())
	}
}

// A cluster that starts says nothing to worry about.
func TestServersThatStartWarned(t *testing.T) {
	var out bytes.Buffer
	l := newServerLog(slog.New(slog.NewTextHandler(&out, nil)))
	l.Warnf("Waiting for routing to be established...")
	l.Warnf("  - %s", "JetStream has not established contact with a meta leader")
	l.Errorf("Error trying to connect to route (attempt %v): %v", 1, "connection refused")
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
	l.Errorf("Error trying to connect to route (attempt %v): %v", 10, "connection refused")
	if !strings.Contains(out.String(), "attempt 10") {
		t.Errorf("logged %s", out.String())
	}
}

// Whoever reached a port for NATS, and did no more, had the node log an error each time.
func TestStrangersAreNoErrors(t *testing.T) {
	var out bytes.Buffer
	l := newServerLog(slog.New(slog.NewTextHandler(&out, nil)))
	for range 100 {
		l.Errorf("%s - rid:7 - TLS route handshake error: %v", "10.0.0.9:4711", "tls: first record does not look like a TLS handshake")
		l.Errorf("%s - cid:8 - read error: %v", "10.0.0.9:4712", "read tcp 10.0.0.1:4222->10.0.0.9:4712: read: connection reset by peer")
	}
	if n := strings.Count(out.String(), "level=WARN"); n != failedLines || strings.Contains(out.String(), "level=ERROR") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	l.failed.since = time.Now().Add(-time.Hour)
	l.Errorf("%s - cid:9 - TLS handshake error: %v", "10.0.0.9:4713", "EOF")
	if !strings.Contains(out.String(), "lines=190") {
		t.Errorf("it is not said how many there were:\n%s", out.String())
	}
	l.Errorf("JetStream resource limits exceeded: %v", "handshake error: ")
	if n := strings.Count(out.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors:\n%s", n, out.String())
	}
}
