package node

import (
	"fmt"
	"sync"
	"testing"

	"mneme/internal/api"
	"mneme/memory"
)

// A node that is asked to end hands over what it leads first, the log too: nobody who
// writes at another node meanwhile sees an error, and nothing is written twice.
func TestNodeThatEndsHandsEverythingOver(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.writes(0, "first", "a memory of the harbour")
	const rounds, each = 3, 40
	for round := range rounds {
		var lead, other *Node
		var self string
		await(t, "the log to be led where the shard is", func() bool {
			at := tr.leader() // another one, where the machine is too busy for this one's heartbeats
			lead, other = tr.nodes[at], tr.nodes[(at+1)%3]
			self = lead.dir.name()
			name, err := lead.served[0].reach(t.Context())
			return err == nil && name == self
		})
		var writing sync.WaitGroup
		half := make(chan struct{})
		writing.Go(func() {
			for i := range each {
				if i == each/2 {
					close(half)
				}
				id := fmt.Sprintf("round-%d-%d", round, i)
				resp, err := other.changes.Capture(t.Context(), "default", []memory.Capture{{Agent: "a", ID: id, Text: "memory " + id}},
					api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
				if err != nil || resp.Results[0].Error != nil || resp.Results[0].Status != memory.StatusCreated {
					t.Errorf("%s: %+v %v", id, resp.Results, err)
				}
			}
		})
		<-half
		lead.retire(t.Context())
		if id, _ := lead.peers.keys.Leader(); lead.served[0].replica.Leads() || id == self {
			t.Errorf("%s still leads", self)
		}
		if name, err := lead.served[0].reach(t.Context()); err != nil || name == self {
			t.Errorf("the log is led by %q: %v", name, err)
		}
		writing.Wait()
	}
	tr.same()
	for i, n := range tr.nodes {
		if got, want := shardOf(t, n).Records, uint64(rounds*each+1); got != want {
			t.Errorf("node %d has %d records, want %d", i+1, got, want)
		}
	}
}
