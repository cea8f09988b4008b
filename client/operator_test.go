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

// A client opens a bounded number of connections to a node, and what comes on top waits for one.
func TestManyCallsOpenFewConnections(t *testing.T) {
	var mu sync.Mutex
	var once sync.Once
	running, most := 0, 0
	full, gate := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/feed") {
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
	follow, stop := context.WithCancel(t.Context())
	defer stop()
	for range 3 { // feeds take none of the connections
		calls.Go(func() { _, _ = c.send(follow, call{method: "GET", path: []string{"feed"}, accept: eventStream}) })
	}
	for range maxConnections + 50 {
		calls.Go(func() {
			if _, err := c.Status(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	close(gate)
	stop()
	calls.Wait()
	if most != maxConnections {
		t.Errorf("%d calls ran at once, and %d connections are allowed", most, maxConnections)
	}
}
