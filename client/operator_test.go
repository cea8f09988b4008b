package client

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/memory"
)

// adminSocket listens at a socket in a folder of its own, with a short address.
func adminSocket(t *testing.T) (l net.Listener, socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "admin.sock")
	if l, err = net.Listen("unix", socket); err != nil {
		t.Fatal(err)
	}
	return l, socket
}

// nodeAt answers as a node with that admin socket.
func nodeAt(socket, cluster, id string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(memory.Status{ClusterID: cluster, Nodes: []memory.NodeStatus{{ID: id}}, Auth: "off", AdminSocket: socket})
	})
}

// TestOperatorActedOnAnotherNode: behind a port forward "backup --keys" wrote the
// keys of the node that had the same path for its socket on this machine.
func TestOperatorActedOnAnotherNode(t *testing.T) {
	l, socket := adminSocket(t)
	here := httptest.NewUnstartedServer(nodeAt(socket, "c1", "n1"))
	_ = here.Listener.Close()
	here.Listener = l
	here.Start()
	t.Cleanup(here.Close)
	for _, asked := range []struct {
		cluster, id string
		same        bool
	}{{"c1", "n1", true}, {"c2", "n1", false}, {"c1", "n2", false}} {
		srv := httptest.NewServer(nodeAt(socket, asked.cluster, asked.id))
		c, err := New(srv.URL, Options{})
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.Operator(t.Context())
		switch {
		case asked.same && (err != nil || o.nodes.list[0].Scheme != socketScheme):
			t.Errorf("%+v: %v", asked, err)
		case !asked.same && (o != nil || memory.CodeOf(err) != memory.CodeForbidden):
			t.Errorf("%+v: %v", asked, err)
		}
		if o != nil {
			_ = o.Close()
		}
		_ = c.Close()
		srv.Close()
	}
}

// A socket that is named is what every call goes through, and nothing is asked before.
func TestSocketAsAnAddress(t *testing.T) {
	l, socket := adminSocket(t)
	here := httptest.NewUnstartedServer(nodeAt(socket, "c1", "n1"))
	_ = here.Listener.Close()
	here.Listener = l
	here.Start()
	t.Cleanup(here.Close)
	c, err := New("unix://"+socket, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if st, err := c.Status(t.Context()); err != nil || st.ClusterID != "c1" {
		t.Errorf("%+v, %v", st, err)
	}
	if o, err := c.Operator(t.Context()); err != nil || o != c {
		t.Errorf("the operator's client is %v, %v", o, err)
	}
	local, err := OpenLocal(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Close() }()
	if st, err := local.c.Status(t.Context()); err != nil || st.ClusterID != "c1" {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestNamedSocketIsTheOneThatIsUsed: neither the client's own socket nor the one that its node
// names takes its place.
func TestNamedSocketIsTheOneThatIsUsed(t *testing.T) {
	sockets := map[string]string{}
	for _, cluster := range []string{"named", "other"} {
		l, socket := adminSocket(t)
		srv := httptest.NewUnstartedServer(nodeAt(socket, cluster, "n1"))
		_ = srv.Listener.Close()
		srv.Listener = l
		srv.Start()
		t.Cleanup(srv.Close)
		sockets[cluster] = socket
	}
	over := httptest.NewServer(nodeAt(sockets["other"], "other", "n1"))
	t.Cleanup(over.Close)
	for _, addr := range []string{over.URL, "unix://" + sockets["other"]} {
		c, err := New(addr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		local, err := OpenLocal(t.Context(), c, sockets["named"])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = local.Close() })
		if st, err := local.c.Status(t.Context()); err != nil || st.ClusterID != "named" {
			t.Errorf("from %s: %+v, %v", addr, st, err)
		}
	}
}

// A client opens a bounded number of connections to a node, and what comes on top waits for one.
// Feeds take none of them.
func TestManyCallsOpenFewConnections(t *testing.T) {
	const feeds = 3
	var mu sync.Mutex
	var once sync.Once
	running, most := 0, 0
	full, gate, fed := make(chan struct{}), make(chan struct{}), make(chan struct{}, feeds)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/feed") {
			fed <- struct{}{}
			<-r.Context().Done()
			return
		}
		mu.Lock()
		running++
		if most = max(most, running); running == maxConnections {
			once.Do(func() { close(full) })
		}
		mu.Unlock()
		<-gate
		mu.Lock()
		running--
		mu.Unlock()
		nodeAt("", "c1", "n1").ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c, err := New(srv.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var calls sync.WaitGroup
	ask := func() {
		if _, err := c.Status(t.Context()); err != nil {
			t.Error(err)
		}
	}
	feed := call{method: "GET", path: []string{"feed"}, accept: eventStream}
	follow, stop := context.WithCancel(t.Context())
	defer stop()
	for range feeds {
		calls.Go(func() { _, _ = c.send(follow, feed) })
	}
	for range feeds {
		<-fed
	}
	for range maxConnections {
		calls.Go(ask)
	}
	select {
	case <-full:
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Status(ctx); err == nil || !strings.Contains(err.Error(), "was not reached") {
			t.Errorf("a call that waited for a connection until it was given up: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("feeds take connections that calls wait for")
	}
	for range 50 {
		calls.Go(ask)
	}
	close(gate)
	stop()
	calls.Wait()
	if most != maxConnections {
		t.Errorf("%d calls ran at once, and %d connections are allowed", most, maxConnections)
	}
}
