package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
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
	serve(t, b, map[string]rpc.Method{"wait": func(ctx context.Context, _ peer.Identity, _ json.RawMessage) (any, error) {
		close(began)
		select {
		case <-ctx.Done():
		case <-release:
		}
		return nil, ctx.Err()
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
