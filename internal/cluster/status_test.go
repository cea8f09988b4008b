package cluster

import (
	"strings"
	"testing"
)

// seenBy is what a node's status says of another one.
func (n *testNode) seenBy(t *testing.T, by *testNode) NodeStatus {
	t.Helper()
	name := n.disk.identity().Node
	for _, s := range by.formed(t).Status(t.Context()) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s is not in the status", name)
	return NodeStatus{}
}

// The status said of each node that gave no answer the same, whatever kept it from that.
func TestStatusSaysWhyANodeDoesNotAnswer(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	if s := n2.seenBy(t, n1); !s.Reachable || s.Why != "" || s.Runs || s.Kind != "" {
		t.Errorf("a node that answers: %+v", s)
	}
	n2.stop(t)
	for _, tc := range []struct {
		what string
		as   func(*testing.T) func()
		why  string
		runs bool
		kind Kind
	}{
		{"a node that has ended", func(*testing.T) func() { return func() {} }, "does not answer: connection refused", false, ""},
		{"a node whose certificate has expired", n2.expired, "has a certificate that is valid from ", true, KindCertificates},
		{"a node that stands still", n2.silent, "listens and does not answer", true, ""},
		{"a forwarder whose node has ended", n2.forwarded, "does not answer: ", false, ""},
	} {
		end := tc.as(t)
		if s := n2.seenBy(t, n1); s.Reachable || !strings.HasPrefix(s.Why, tc.why) || s.Runs != tc.runs || s.Kind != tc.kind {
			t.Errorf("%s: %+v", tc.what, s)
		}
		end()
	}
}

// The status said hello, and the others took in what it told them, for which they may wait
// on a node that does not answer.
func TestStatusTellsNothing(t *testing.T) {
	t.Parallel()
	n1, n2 := joinedTwo(t)
	n3 := freshNodes(t, n1.dir, "n3")[0]
	news := Member{Name: "n3-x", ID: "n3", Peer: n3.addr, Route: "r", Version: 1}
	n1.formed(t)
	n1.cluster.mu.Lock()
	err := n1.cluster.forming.learn(news)
	n1.cluster.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if s := n2.seenBy(t, n1); !s.Reachable {
		t.Errorf("%+v", s)
	}
	if n2.formed(t).Facts().isMember(news.Name) {
		t.Error("it took in what the status told it")
	}
}
