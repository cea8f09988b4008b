package node

import (
	"context"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/memory"
)

// TestUpgradeIsFinishedWhenAllKnow: while a node of the cluster is away nobody knows what it
// runs, so the level stays; then it is raised on every node, once, and stays over a restart.
func TestUpgradeIsFinishedWhenAllKnow(t *testing.T) {
	t.Parallel()
	tr := trioOf(t, nil)
	tr.openAll()
	ctx := context.Background()
	level := func(i int) uint16 {
		at := tr.nodes[i].served[shard0].state.Cursor()
		return at.FeatureLevel()
	}
	st, err := tr.nodes[1].operator.Upgrade(ctx)
	if err != nil || st.Level != events.BaseLevel || st.Known != events.FeatureLevel || len(st.Nodes) != 3 {
		t.Fatalf("%+v, %v", st, err)
	}
	shut(t, tr.nodes[2])
	tr.nodes[2] = nil
	_, err = tr.nodes[0].operator.FinishUpgrade(ctx)
	if memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "n3 does not answer") || level(0) != events.BaseLevel {
		t.Fatalf("with a node away: level %d, %v", level(0), err)
	}
	tr.open(2)
	if t.Failed() {
		t.FailNow()
	}
	// Asked of every node, be it the one that leads or not, and again.
	for i := range tr.nodes {
		var st memory.UpgradeStatus
		await(t, "the upgrade is finished", func() bool {
			st, err = tr.nodes[i].operator.FinishUpgrade(ctx)
			return err == nil
		})
		if st.Level != events.FeatureLevel {
			t.Errorf("asked at n%d: %+v", i+1, st)
		}
	}
	tr.writes(1, "after", "written at the new level")
	tr.same()
	shut(t, tr.nodes[1])
	tr.nodes[1] = nil
	tr.open(1)
	if t.Failed() {
		t.FailNow()
	}
	for i := range tr.nodes {
		await(t, "the level is known", func() bool { return level(i) == events.FeatureLevel })
	}
}

// TestANodeOnItsOwnFinishesItsUpgrade by itself.
func TestANodeOnItsOwnFinishesItsUpgrade(t *testing.T) {
	t.Parallel()
	n := open(t, quiet(t.TempDir()))
	st, err := n.operator.FinishUpgrade(context.Background())
	if err != nil || st.Level != events.FeatureLevel || len(st.Nodes) != 1 || !st.Nodes[0].Reachable {
		t.Errorf("%+v, %v", st, err)
	}
}
