package node

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"mneme/memory"
)

// TestLimitsChangeWhileTheNodeRuns lowers and raises limits by reloads: what is under way goes
// on, the next one is refused with a remedy, and taken where there is room again.
func TestLimitsChangeWhileTheNodeRuns(t *testing.T) {
	cfg := quiet(shortDir(t))
	live, bad := Live{Limits: Limits{Streams: 2}}, error(nil)
	cfg.Live = live
	cfg.Process.Reread = func() (Live, memory.ReloadReport, error) { return live, memory.ReloadReport{}, bad }
	n := open(t, cfg)
	reload := func(l Limits) {
		t.Helper()
		live.Limits = l
		if _, err := n.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	stream := func() (status int, body io.ReadCloser) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+n.HTTPAddr()+"/v1/namespaces/default/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp.StatusCode, resp.Body
	}
	refused := func() {
		t.Helper()
		status, body := stream()
		b, err := io.ReadAll(body)
		if text := string(b); err != nil || status != http.StatusTooManyRequests || !strings.Contains(text, `"code":"overloaded"`) || !strings.Contains(text, `"hint":"close some`) {
			t.Errorf("%d %s, %v", status, text, err)
		}
	}
	taken := func() io.ReadCloser {
		t.Helper()
		status, body := stream()
		if status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		return body
	}
	taken()
	second := taken()
	refused()
	reload(Limits{Streams: 3})
	taken()
	refused()
	reload(Limits{Streams: 1})
	refused()
	// What is under way goes on, and says what happens.
	must(t, n, "the canary sings")
	if b := make([]byte, 1); second != nil {
		if _, err := io.ReadFull(second, b); err != nil {
			t.Errorf("a stream that was there ended: %v", err)
		}
	}
	live, bad = Live{Limits: Limits{Streams: 100}}, memory.Errorf(memory.CodeInvalid, "max-streams: \"many\" is not a whole number")
	if _, err := n.Reload(t.Context()); memory.CodeOf(err) != memory.CodeInvalid {
		t.Error(err)
	}
	refused()
	bad = nil
	reload(Limits{Queue: 7})
	taken()
	text, err := fetch(t, n.HTTPURL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `mneme_queue_limit_items{shard="0"} 7`+"\n") || !strings.Contains(text, `mneme_http_reads_limit{sort="streams"} 512`+"\n") {
		t.Errorf("%s", grep(text, "_limit"))
	}
}

// TestConnectionsChangeWhileTheNodeRuns does the same with connections.
func TestConnectionsChangeWhileTheNodeRuns(t *testing.T) {
	cfg := quiet(shortDir(t))
	cfg.Logger = slog.New(slog.DiscardHandler)
	live := Live{Limits: Limits{Connections: 2}}
	cfg.Live = live
	cfg.Process.Reread = func() (Live, memory.ReloadReport, error) { return live, memory.ReloadReport{}, nil }
	n := open(t, cfg)
	// asks says whether a connection that is opened now, and stays open, is served.
	asks := func() bool {
		t.Helper()
		c, err := net.Dial("tcp", n.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(err)
		}
		return string(b) == "HTTP/1.1 200"
	}
	if !asks() || !asks() || asks() {
		t.Error("two connections are allowed")
	}
	live.Limits.Connections = 3
	if _, err := n.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !asks() || asks() {
		t.Error("three connections are allowed")
	}
	live.Limits.Connections = 1
	if _, err := n.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asks() {
		t.Error("one connection is allowed, and three are open")
	}
}
