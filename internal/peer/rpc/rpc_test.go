package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two opens the ports of two nodes of one cluster.
func two(t *testing.T) (a, b *peer.Port) {
	t.Helper()
	dir := t.TempDir()
	if _, err := devca.Make(devca.Options{Dir: dir, Nodes: []string{"a", "b"}, Valid: time.Hour}); err != nil {
		t.Fatal(err)
	}
	ports := [2]*peer.Port{}
	for i, node := range []string{"a", "b"} {
		certs, err := peer.OpenCertificates(dir, node, nil)
		if err != nil {
			t.Fatal(err)
		}
		ports[i], err = peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Greeting: 30 * time.Second,
			Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: node} }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ports[i].Close() })
	}
	return ports[0], ports[1]
}

type sum struct{ A, B int }

// serve answers calls of "test" at a port until the test ends.
func serve(t *testing.T, p *peer.Port, methods map[string]rpc.Method) {
	t.Helper()
	s, err := rpc.Serve(p, "test", methods, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
}

func client(t *testing.T, p *peer.Port) *rpc.Client {
	t.Helper()
	c := rpc.NewClient(p, "test")
	t.Cleanup(c.Close)
	return c
}

func TestACallReachesTheNodeThatIsMeant(t *testing.T) {
	a, b := two(t)
	var asked string
	serve(t, b, map[string]rpc.Method{"add": rpc.Handle(func(_ context.Context, from peer.Identity, in sum) (int, error) {
		asked = from.Node
		return in.A + in.B, nil
	})})
	c := client(t, a)
	var got int
	if err := c.Call(t.Context(), rpc.Target{Addr: b.Addr().String(), Node: "b"}, "add", sum{2, 3}, &got); err != nil || got != 5 || asked != "a" {
		t.Errorf("2 + 3 = %d, asked by %q: %v", got, asked, err)
	}
	err := c.Call(t.Context(), rpc.Target{Addr: b.Addr().String(), Node: "z"}, "add", sum{2, 3}, &got)
	if !errors.Is(err, rpc.ErrNotReached) || !errors.Is(err, peer.ErrOtherNode) {
		t.Errorf("a call that meant another node: %v", err)
	}
}

func TestAnErrorKeepsWhatItSays(t *testing.T) {
	a, b := two(t)
	serve(t, b, map[string]rpc.Method{
		"refuse": func(context.Context, peer.Identity, json.RawMessage) (any, error) {
			e := memory.Errorf(memory.CodeUnavailable, "not now").WithHint("later")
			e.RetryAfter = 3 * time.Second
			return nil, e
		},
		"add": rpc.Handle(func(context.Context, peer.Identity, sum) (int, error) { return 0, nil }),
	})
	c, to := client(t, a), rpc.Target{Addr: b.Addr().String()}
	got := memory.AsError(c.Call(t.Context(), to, "refuse", nil, nil))
	if got.Code != memory.CodeUnavailable || got.Message != "not now" || got.Hint != "later" || got.RetryAfter != 3*time.Second {
		t.Errorf("got %+v", got)
	}
	if err := c.Call(t.Context(), to, "nothing", nil, nil); memory.CodeOf(err) != memory.CodeNotFound {
		t.Errorf("a method that is not there: %v", err)
	}
	if err := c.Call(t.Context(), to, "add", "no sum", nil); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("an argument of another shape: %v", err)
	}
}

// A caller has to know whether what it asked for can have happened.
func TestAFailureSaysWhetherTheCallWasSeen(t *testing.T) {
	a, b := two(t)
	began, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	serve(t, b, map[string]rpc.Method{"wait": func(context.Context, peer.Identity, json.RawMessage) (any, error) {
		close(began)
		<-release // it would answer in time that it was given up
		return nil, nil
	}})
	c := client(t, a)
	if err := c.Call(t.Context(), rpc.Target{Addr: a.Addr().String()}, "wait", nil, nil); !errors.Is(err, rpc.ErrNotReached) || !errors.Is(err, peer.ErrNoService) {
		t.Errorf("a node without the service: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if err := c.Call(ctx, rpc.Target{Addr: b.Addr().String()}, "wait", nil, nil); !errors.Is(err, rpc.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
}

// A peer that answers without end takes no memory of the one that asks.
func TestAnEndlessAnswer(t *testing.T) {
	a, b := two(t)
	l, err := b.Service("test")
	if err != nil {
		t.Fatal(err)
	}
	piece := bytes.Repeat([]byte("x"), 1<<20)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fail" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, err := w.Write([]byte(`"`))
		for err == nil {
			_, err = w.Write(piece)
		}
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() { _ = s.Close(); wg.Wait() })
	c := client(t, a)
	for _, method := range []string{"add", "fail"} {
		var out string
		err = c.Call(t.Context(), rpc.Target{Addr: b.Addr().String()}, method, sum{}, &out)
		if !errors.Is(err, rpc.ErrNoAnswer) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
			t.Errorf("%s: %.200v", method, err)
		}
	}
}

// What comes in is bounded: one call, and all together; and short ones pass beside.
func TestCallsThatStall(t *testing.T) {
	a, b := two(t)
	large, err := rpc.ServeLarge(b, "test", map[string]rpc.Method{"add": rpc.Handle(func(_ context.Context, _ peer.Identity, in []int) (int, error) { return len(in), nil })}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = large.Close(t.Context()) })
	stall := func(length string) net.Conn {
		t.Helper()
		conn, err := a.Dial(t.Context(), b.Addr().String(), "b", "test")
		if err == nil {
			_, err = io.WriteString(conn, "POST /add HTTP/1.1\r\nHost: p\r\n"+length+"\r\n\r\n1\r\n1\r\n0\r\n\r\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	answered := func(conn net.Conn) string {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	if got := answered(stall("Content-Length: 67108865")); !strings.Contains(got, "too_large") {
		t.Errorf("a call of more than 64 MiB: %s", got)
	}
	if got := answered(stall("Transfer-Encoding: chunked")); !strings.Contains(got, "invalid") {
		t.Errorf("a call of no length: %s", got)
	}
	var held []net.Conn
	for range 3 {
		held = append(held, stall("Content-Length: 67108864"))
	}
	overloaded := make(chan string, len(held))
	for _, conn := range held {
		go func() { overloaded <- answered(conn) }()
	}
	if got := <-overloaded; !strings.Contains(got, "overloaded") {
		t.Errorf("the third of 64 MiB: %s", got)
	}
	var n int
	if err := client(t, a).Call(t.Context(), rpc.Target{Addr: b.Addr().String()}, "add", []int{1, 2}, &n); err != nil || n != 2 {
		t.Errorf("a short call beside them: %d %v", n, err)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	for range 2 {
		<-overloaded
	}
	text := strings.Repeat("1,", 1<<20)
	if err := client(t, a).Call(t.Context(), rpc.Target{Addr: b.Addr().String()}, "add", json.RawMessage("["+text+"1]"), &n); err != nil || n != 1<<20+1 {
		t.Errorf("a long call after them: %d %v", n, err)
	}
}

// A body that stops coming is given up.
func TestABodyThatStopsComing(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	serve(t, b, map[string]rpc.Method{"add": func(context.Context, peer.Identity, json.RawMessage) (any, error) { return 1, nil }})
	conn, err := a.Dial(t.Context(), b.Addr().String(), "b", "test")
	if err == nil {
		_, err = io.WriteString(conn, "POST /add HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n1")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), "read the call") {
		t.Errorf("%s", text)
	}
}

// A method that panics is a defect: its caller is told so, and not that nothing
// happened.
func TestAMethodThatPanics(t *testing.T) {
	a, b := two(t)
	var log bytes.Buffer
	s, err := rpc.Serve(b, "test", map[string]rpc.Method{"add": func(context.Context, peer.Identity, json.RawMessage) (any, error) { panic("canary") }},
		slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	err = client(t, a).Call(t.Context(), rpc.Target{Addr: b.Addr().String()}, "add", sum{}, nil)
	if !errors.Is(err, rpc.ErrNoAnswer) || memory.CodeOf(err) != memory.CodeInternal || strings.Contains(err.Error(), "canary") {
		t.Errorf("the caller gets %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "canary") || !strings.Contains(text, "method=add from=a") {
		t.Errorf("logged: %s", text)
	}
}

// Calls that come together share a bounded number of connections, and each is answered; one
// that is given up while it waits for a connection was never sent.
func TestManyCallsOpenFewConnections(t *testing.T) {
	a, b := two(t)
	var mu sync.Mutex
	var once sync.Once
	running, most := 0, 0
	full, gate := make(chan struct{}), make(chan struct{})
	serve(t, b, map[string]rpc.Method{"add": rpc.Handle(func(ctx context.Context, _ peer.Identity, in sum) (int, error) {
		mu.Lock()
		running++
		if most = max(most, running); running == rpc.MaxConnections {
			once.Do(func() { close(full) })
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			running--
			mu.Unlock()
		}()
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return in.A + in.B, nil
	})})
	c, to := client(t, a), rpc.Target{Addr: b.Addr().String(), Node: "b"}
	var calls sync.WaitGroup
	call := func(i int) {
		var got int
		if err := c.Call(t.Context(), to, "add", sum{i, 1}, &got); err != nil || got != i+1 {
			t.Errorf("%d + 1 = %d, %v", i, got, err)
		}
	}
	for i := range rpc.MaxConnections {
		calls.Go(func() { call(i) })
	}
	<-full
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Call(ctx, to, "add", sum{}, nil); !errors.Is(err, rpc.ErrNotReached) {
		t.Errorf("a call that waited for a connection until it was given up: %v", err)
	}
	for i := range 2 * rpc.MaxConnections {
		calls.Go(func() { call(i) })
	}
	close(gate)
	calls.Wait()
	if most != rpc.MaxConnections {
		t.Errorf("%d calls ran at once, and %d connections are allowed", most, rpc.MaxConnections)
	}
}
