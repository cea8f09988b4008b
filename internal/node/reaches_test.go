package node

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
)

// What a node that is not started yet finds out about those it is to join.
func TestReachOfPeers(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	for _, dir := range []string{ours, theirs} {
		if _, err := devca.Make(devca.Options{Dir: dir, Nodes: []string{"n1", "n4"}, Valid: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	certs, err := peer.OpenCertificates(ours, "n1", nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Self: func() peer.Identity { return peer.Identity{Cluster: "c", Node: "n1-a"} }})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	addrs := []string{port.Addr().String(), "127.0.0.1:1"}
	found, err := Offline{}.Reach(t.Context(), ours, "n4", addrs)
	if err != nil || found[0] != nil || found[1] == nil {
		t.Errorf("%v, %v", found, err)
	}
	if found, err = (Offline{}).Reach(t.Context(), theirs, "n4", addrs); err != nil || found[0] == nil || !strings.Contains(found[0].Error(), "authority") {
		t.Errorf("with a certificate of another authority: %v, %v", found, err)
	}
	_, err = Offline{}.Reach(t.Context(), filepath.Join(ours, "nowhere"), "n4", addrs)
	if e := (*StartError)(nil); !errors.As(err, &e) || !strings.Contains(e.Hint, "memctl cluster certs") {
		t.Error(err)
	}
}
