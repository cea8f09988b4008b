package client

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
