package cluster

import (
	"context"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/devca"
	"mneme/internal/peer/rpc"
	"mneme/internal/testaddr"
	"mneme/memory"
)

// expired has a process listen as a node, with a certificate that counts no more.
func (n *testNode) expired(t *testing.T) (end func()) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(n.dir)); err != nil {
		t.Fatal(err)
	}
	past := func() time.Time { return time.Now().Add(-5 * time.Minute) }
	if _, err := devca.Make(devca.Options{Dir: dir, Nodes: []string{n.id}, Valid: time.Second, Now: past}); err != nil {
		t.Fatal(err)
	}
	certs, err := peer.OpenCertificates(dir, n.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	port, err := peer.Listen(peer.Options{Addr: n.addr, Certificates: certs, Self: n.disk.identity})
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = port.Close() }
}

// silent has connections taken at a node's address, as the system does for a process that
// stands still.
func (n *testNode) silent(t *testing.T) (end func()) {
	t.Helper()
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = l.Close() }
}

// forwarded has connections taken and closed, as a forwarder does whose node has ended.
func (n *testNode) forwarded(t *testing.T) (end func()) {
	t.Helper()
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return func() { _ = l.Close(); <-ended }
}

// led is a group that another node leads.
type led struct {
	Group
	by string
}

func (l led) Leader() (id, addr string) { return l.by, "" }

// The refusal of a removal names what helps.
func TestWhatHelpsWithANodeThatDoesNotAnswer(t *testing.T) {
	to := rpc.Target{Addr: "h:1", Node: "n2-x"}
	late := x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{}}
	for _, tc := range []struct {
		sign  error
		leads string
		words []string
	}{
		{late, "", []string{"who listens at h:1 has a certificate that is valid from", "memctl cluster certs --out DIR n2", "stop it", "--force"}},
		{late, "9", []string{"has a certificate that is valid from", "it leads the group 9", "stop it"}},
		{context.DeadlineExceeded, "", []string{"who listens at h:1 does not answer in time", "stop it", "--force"}},
	} {
		said := memory.AsError(seemsToRun(to, tc.sign, tc.leads))
		for _, w := range tc.words {
			if !strings.Contains(said.Message+" "+said.Hint, w) {
				t.Errorf("%q, %q do not say %q", said.Message, said.Hint, w)
			}
		}
		if tc.leads != "" && strings.Contains(said.Hint, "--force") {
			t.Error(said.Hint)
		}
	}
}

// A node that runs and does not answer is not taken for one that has ended.
func TestANodeThatDoesNotAnswerIsNotRemoved(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	n, c := others[0].node, founder.node.cluster
	name := n.disk.identity().Node
	others[0].leaves(t)
	end := n.expired(t)
	refusedRemoval(t, c, n.id, false, memory.CodeConflict, "who listens at "+n.addr, "stop it") // it may have led, or be slow
	c.Serve("9", led{founder.group, name})
	refusedRemoval(t, c, n.id, true, memory.CodeConflict, "it leads the group")
	c.Serve("9", nil)
	end()
	end = n.silent(t)
	refusedRemoval(t, c, n.id, false, memory.CodeConflict, "who listens at "+n.addr+" does not answer in time", "stop it")
	// Nor is it where who asked has gone away before it was known.
	asked, goes := context.WithCancel(t.Context())
	time.AfterFunc(callTimeout/10, goes)
	if _, err := c.Remove(asked, n.id, false, nil); memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(err.Error(), "nothing was removed") {
		t.Errorf("asked by one who goes away: %v", err)
	}
	goes()
	end()
	if saved, _ := founder.node.disk.Load(); len(saved.Removed) != 0 {
		t.Errorf("it was refused and stored: %v", saved.Removed)
	}
	defer n.forwarded(t)()
	removes(t, c, n.id, false, name)
}

// A copy of a node's data directory does not take its place while the node runs and does
// not answer; once it has ended, the copy does.
func TestACopyBesideANodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n1.stop(t)
	facts, _ := n1.disk.Load()
	twin := &testNode{id: "n1", dir: n1.dir, addr: testaddr.Reserve(t, 1)[0], opt: n1.opt, disk: &disk{facts: facts}}
	end := n1.expired(t)
	twin.start(t).refused(t, KindDuplicate, "a copy of it, is in use by the node n1 at "+n1.addr+", which ")
	twin.stop(t)
	end()
	end = n1.silent(t)
	twin.start(t).refused(t, KindDuplicate, "a copy of it, is in use by the node n1 at "+n1.addr, "does not answer in time")
	twin.stop(t)
	end()
	n2.knows(t, n1, 1)
	defer n1.forwarded(t)()
	twin.start(t).formed(t)
	n2.knows(t, twin, 2)
}
