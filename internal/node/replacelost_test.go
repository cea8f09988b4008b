package node

import (
	"os"
	"strings"
	"testing"
)

// A node whose data directory was lost takes its own place again, where it is told to:
// under another name, with everything, and the former name never comes back.
func TestNodeReplacesItsLostSelf(t *testing.T) {
	t.Parallel()
	tr := trioOf(t, func(_ int, cfg *Config) { cfg.Cluster.ReplaceLost = true })
	tr.openAll()
	tr.writes(0, "before", "written before the loss")
	lost := tr.nodes[2].peers.cluster.Self().Name
	shut(t, tr.nodes[2])
	tr.nodes[2] = nil
	if err := os.RemoveAll(tr.cfgs[2].DataDir); err != nil {
		t.Fatal(err)
	}
	tr.writes(0, "meanwhile", "written without the third node")
	tr.open(2)
	if t.Failed() {
		t.FailNow()
	}
	tr.writes(2, "after", "written at the node that came back")
	tr.same()
	self := tr.nodes[2].peers.cluster
	if name := self.Self().Name; name == lost || !strings.HasPrefix(name, "n3-") {
		t.Errorf("it is %s, and was %s", name, lost)
	}
	if left := self.Facts().Replaces; len(left) > 0 {
		t.Errorf("it still waits for the removal of %v", left)
	}
	await(t, "the former name is removed on all nodes", func() bool {
		for _, n := range tr.nodes {
			if !n.peers.cluster.Removed(lost) {
				return false
			}
		}
		return true
	})
}
