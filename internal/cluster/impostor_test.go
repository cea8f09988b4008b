package cluster

import (
	"errors"
	"maps"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Whoever has a certificate of the authority is the node that the certificate is for,
// and moves no other node's vote.
func TestACertificateIsOneNode(t *testing.T) {
	t.Parallel()
	founder, others, _ := three(t, nil)
	for _, r := range others {
		joins(t, r)
	}
	before := voters(founder)
	victim := others[0].node
	dir, name := victim.dir, victim.cluster.Self().Name
	if _, err := devca.Make(devca.Options{Dir: dir, Nodes: []string{"laptop"}, Valid: time.Hour}); err != nil {
		t.Fatal(err)
	}
	certs, err := peer.OpenCertificates(dir, "laptop", nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(self peer.Identity, method string, in func(addr string) any) error {
		port, err := peer.Listen(peer.Options{Addr: "127.0.0.1:0", Certificates: certs, Self: func() peer.Identity { return self }})
		if err != nil {
			t.Fatal(err)
		}
		defer port.Close()
		port.AdmitStrangers(Service)
		client := rpc.NewClient(port, Service)
		defer client.Close()
		return client.Call(limited(t), rpc.Target{Addr: founder.node.addr}, method, in(port.Addr().String()), nil)
	}
	join := func(addr string) any { return joinCall{Group: "0", Addr: raftfsm.Address(name, addr)} }
	for _, self := range []peer.Identity{{Node: name}, {Cluster: founder.node.cluster.Facts().Cluster, Node: name}} {
		if err := call(self, "join", join); !errors.Is(err, peer.ErrOtherName) {
			t.Errorf("%+v with another node's certificate: %v", self, err)
		}
	}
	self := peer.Identity{Node: "laptop-1"}
	if err := call(self, "join", join); memory.CodeOf(err) != memory.CodeInvalid {
		t.Errorf("a place for another node: %v", err)
	}
	for _, m := range []Member{{Name: name, ID: idOf(name)}, {Name: "laptop-1", ID: idOf(name)}} {
		err := call(self, "welcome", func(addr string) any { m.Peer = addr; return m })
		if memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("welcomed as %+v: %v", m, err)
		}
		err = call(self, "hello", func(string) any { return hello{Self: m, Run: "1"} })
		if memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("heard as %+v: %v", m, err)
		}
	}
	if after := voters(founder); !maps.Equal(after, before) {
		t.Errorf("voters were %v, are %v", before, after)
	}
}
