package node

import (
	"testing"

	"mneme/memory"
)

// How far the log of a recovered cluster is written was said by the node that writes it, and
// by no other one.
func TestRepairIsToldAtTheOtherNodes(t *testing.T) {
	n, err := Open(t.Context(), quiet(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, n)
	n.served[shard0].copying.Store(&memory.Progress{Done: 3, Total: 7})
	defer n.served[shard0].copying.Store(nil)
	reports := []nodeReport{{Node: memory.NodeStatus{ID: "other"}}, n.operator.report()}
	if got := repairAt(n.dir.node.NodeID, shard0, reports); got == nil || got.Done != 3 || got.Total != 7 {
		t.Errorf("%+v", got)
	}
	for _, leader := range []string{"other", "nobody", ""} {
		if got := repairAt(leader, shard0, reports); got != nil {
			t.Errorf("of %q: %+v", leader, got)
		}
	}
}
