package node

import (
	"fmt"
	"testing"
)

// Four nodes did not found a cluster, and two could not be allowed to. Four bear the loss of
// one, whichever it is; the log has the copies that they call for.
func TestEvenNumberOfNodesFounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, copies int }{{4, 3}, {2, 2}} {
		t.Run(fmt.Sprint(c.nodes), func(t *testing.T) {
			tr := foundersOf(t, c.nodes, func(_ int, cfg *Config) { cfg.Cluster.AllowTwo = c.nodes == 2 })
			tr.openAll()
			for i := range tr.nodes {
				tr.writes(i, fmt.Sprintf("at-%d", i), "a memory of the harbour")
			}
			lead := tr.leader()
			if have, err := tr.nodes[lead].served[shard0].stream.Copies(t.Context()); err != nil || have != c.copies {
				t.Errorf("the log has %d copies, want %d: %v", have, c.copies, err)
			}
			written := c.nodes
			if other := (lead + 1) % c.nodes; c.nodes > 2 {
				shut(t, tr.nodes[lead])
				tr.nodes[lead] = nil
				tr.writes(other, "the-leader-is-gone", "another node leads")
				tr.open(lead)
				tr.writes(lead, "it-is-back", "and takes writes")
				written += 2
			}
			tr.same()
			for i, n := range tr.nodes {
				if got := countRecords(t, n); got != written {
					t.Errorf("node %d has %d records of %d", i+1, got, written)
				}
			}
		})
	}
}
