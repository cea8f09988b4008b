package node

import (
	"fmt"
	"strings"
	"testing"

	"mneme/internal/api"
	"mneme/memory"
)

// The disk of each node of three fills up in turn, beginning with the one that leads:
// the others go on writing, the full one is read from, and takes part again when there is
// room.
func TestFullNodeLeadsNothing(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	written := 0
	write := func(i int, more string) {
		t.Helper()
		tr.writes(i, fmt.Sprintf("memory-%d", written), "a memory of the harbour. "+more)
		written++
	}
	for range 3 {
		write(written%3, "")
		lead := tr.leader()
		full := tr.nodes[lead]
		tr.disks[lead].free.Store(keptFree / 4) // below what applying needs, too
		await(t, "the full node to lead nothing", func() bool {
			id, _ := full.peers.keys.Leader()
			return !full.served[0].replica.Leads() && id != full.dir.name()
		})
		if next := tr.leader(); next == lead {
			t.Fatal("the full node leads again")
		}
		for i := range tr.nodes {
			write(i, "")
		}
		if len(find(t, full, "harbour")) == 0 {
			t.Error("reads are down on the full node")
		}
		// The fault bit: what the others write is not applied here any more. The store
		// asks for its room once in a megabyte.
		for i := 0; full.served[0].replica.Full() == nil; i++ {
			write((lead+1)%3, strings.Repeat("a long story of the sea. ", 4000))
			if i == 100 {
				t.Fatal("the full node applies what there is no room for")
			}
		}
		if _, checks := full.doctor.Ready(); !saysNoRoom(checks) {
			t.Errorf("%+v", checks)
		}
		tr.disks[lead].free.Store(enoughRoom)
		tr.same()
		write(lead, "")
	}
	tr.same()
	for i, n := range tr.nodes {
		if got := shardOf(t, n).Records; got != uint64(written) {
			t.Errorf("node %d has %d records, %d were written", i+1, got, written)
		}
	}
}

func saysNoRoom(checks []memory.Check) bool {
	for _, c := range checks {
		if c.Name == "writes" && c.State == "warn" && strings.Contains(c.Hint, "space") {
			return true
		}
	}
	return false
}

// Where no node has room nobody is fitter: writes say why, and go on when there is
// room.
func TestAllNodesFull(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.writes(0, "first", "a memory of the harbour")
	lead := tr.leader()
	for _, d := range tr.disks {
		d.free.Store(keptFree / 2)
	}
	for _, n := range tr.nodes {
		await(t, "all nodes to have no room", func() bool { return n.served[0].noRoom() != nil })
	}
	if heir := tr.nodes[lead].peers.heir(t.Context()); heir != "" {
		t.Errorf("%s is to lead", heir)
	}
	for i, n := range tr.nodes {
		resp, err := n.changes.Capture(t.Context(), "default", []memory.Capture{{Agent: "a", Text: "no room"}}, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
		if err == nil {
			t.Fatalf("node %d took %+v", i+1, resp.Results)
		}
		if memory.CodeOf(err) != memory.CodeNoSpace {
			t.Errorf("node %d: %v", i+1, err)
		}
	}
	for _, d := range tr.disks {
		d.free.Store(enoughRoom)
	}
	tr.writes(tr.leader(), "last", "life goes on")
	tr.same()
}
