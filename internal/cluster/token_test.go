package cluster

import (
	"fmt"
	"testing"

	"mneme/internal/peer"
)

// A node that starts again compares its token with what the members have; strangers are
// told nothing.
func TestTokenIsComparedAtEachStart(t *testing.T) {
	dir := certs(t, nil, "n1", "n2", "n3")
	nodes := freshNodes(t, dir, "n1", "n2", "n3")
	for _, n := range nodes {
		n.start(t)
	}
	one(t, nodes...)
	last := nodes[2]
	last.stop(t)
	last.opt.TakeToken = func(token string) error {
		if token != last.tokens("") {
			t.Errorf("the others have %q", token)
		}
		return fmt.Errorf("%w: mine", ErrOtherToken)
	}
	last.start(t).refused(t, KindUsage, "mine", "has another one")
	last.stop(t)
	last.opt.TakeToken = nil
	last.start(t).formed(t)
	c := nodes[0].cluster
	for name, from := range map[string]peer.Identity{"no cluster": {Node: last.disk.facts.Name()}, "another cluster": {Cluster: "x", Node: last.disk.facts.Name()},
		"no member": {Cluster: c.Facts().Cluster, Node: "n9-x"}} {
		if h, err := c.token(t.Context(), from, struct{}{}); err == nil || h.Token != "" {
			t.Errorf("a node of %s was told %q", name, h.Token)
		}
	}
}
