package node

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"mneme/internal/api"
	"mneme/memory"
)

// leads waits until a node of the three leads the shard, with an open writer, and the keys.
func (tr *trio) leads(i int) {
	tr.t.Helper()
	await(tr.t, tr.cfgs[i].Cluster.NodeID+" to lead", func() bool {
		keys, _ := tr.nodes[i].peers.keys.Leader()
		return tr.nodes[i].served[0].replica.Leads() && keys == tr.nodes[i].dir.name()
	})
}

func (tr *trio) id(i int) string { return tr.cfgs[i].Cluster.NodeID }

func refusedWith(t *testing.T, err error, code memory.Code, says, hint string) {
	t.Helper()
	if e := memory.AsError(err); err == nil || e.Code != code || !strings.Contains(e.Message, says) || !strings.Contains(e.Hint, hint) {
		t.Errorf("got %v (%s), hint %q; want %s that says %q, hint %q", err, memory.CodeOf(err), memory.AsError(err).Hint, code, says, hint)
	}
}

// An operator has the leadership go from node to node and back: nobody who writes at a
// third node meanwhile sees an error, and nothing is written twice.
func TestLeadershipIsTransferredUnderWrites(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.writes(0, "first", "a memory of the harbour")
	lead := tr.leader()
	a, writer, b := lead, (lead+1)%3, (lead+2)%3
	const each = 90
	reached := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range each {
			if i%(each/3) == each/6 {
				close(reached[i/(each/3)])
			}
			id := fmt.Sprintf("m-%d", i)
			resp, err := tr.nodes[writer].changes.Capture(t.Context(), "default", []memory.Capture{{Agent: "a", ID: id, Text: "memory " + id}},
				api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
			if err != nil || resp.Results[0].Error != nil || resp.Results[0].Status != memory.StatusCreated {
				t.Errorf("%s: %+v %v", id, resp.Results, err)
			}
		}
	})
	for i, step := range []struct{ asked, to int }{{writer, b}, {writer, a}, {a, b}} { // asked at the one that leads, too
		<-reached[i]
		got, err := tr.nodes[step.asked].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(step.to)})
		if err != nil || got != (memory.LeadTransfer{Leader: tr.id(step.to), Moved: true}) {
			t.Fatalf("to %s: %+v %v", tr.id(step.to), got, err)
		}
		tr.leads(step.to)
	}
	writing.Wait()
	got, err := tr.nodes[a].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.nodes[b].dir.name()})
	if err != nil || got != (memory.LeadTransfer{Leader: tr.id(b)}) {
		t.Errorf("to the one that leads: %+v %v", got, err)
	}
	tr.same()
	for i, n := range tr.nodes {
		if got, want := shardOf(t, n).Records, uint64(each+1); got != want {
			t.Errorf("node %d has %d records, want %d", i+1, got, want)
		}
	}

	for node, want := range map[string]struct {
		code       memory.Code
		says, hint string
	}{"n9": {memory.CodeNotFound, tr.nodes[a].dir.name(), "cluster status"}, "": {memory.CodeInvalid, "missing", ""}} {
		_, err := tr.nodes[a].operator.TransferLead(t.Context(), memory.TransferLead{Node: node})
		refusedWith(t, err, want.code, want.says, want.hint)
	}
	tr.disks[a].free.Store(keptFree)
	await(t, "the disk to be known as full", func() bool { return leading{tr.nodes[a]}.eligible() != nil })
	_, err = tr.nodes[writer].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(a)})
	refusedWith(t, err, memory.CodeConflict, tr.id(a)+" cannot lead: ", "choose another")
	shut(t, tr.nodes[a])
	tr.nodes[a] = nil
	_, err = tr.nodes[writer].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(a)})
	refusedWith(t, err, memory.CodeConflict, tr.id(a)+" does not answer", "start it")
}

// A drained node hands over what it leads, gives away what it is elected to, and is no
// heir, until that is undone. The last node that could lead is not drained.
func TestDrainedNodeLeadsNothing(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.writes(0, "first", "a memory of the harbour")
	a := tr.leader()
	b, c := (a+1)%3, (a+2)%3
	drain := func(asked int, req memory.DrainNode) memory.NodeDrain {
		t.Helper()
		got, err := tr.nodes[asked].operator.DrainNode(t.Context(), req)
		if err != nil || got.Drained == req.Undo || got.Leader == "" {
			t.Fatalf("%+v: %+v %v", req, got, err)
		}
		return got
	}
	if got := drain(b, memory.DrainNode{Node: tr.id(a)}); got.Node != tr.id(a) || got.Leader == tr.id(a) {
		t.Errorf("drained: %+v", got)
	}
	if tr.nodes[a].served[0].replica.Leads() || (leading{tr.nodes[a]}).keys().Leads() {
		t.Error("the drained node leads")
	}
	tr.writes(a, "forwarded", "it takes writes")
	st, err := tr.nodes[c].operator.Cluster(t.Context())
	for _, n := range st.Nodes {
		if err != nil || n.Drained != (n.ID == tr.id(a)) {
			t.Errorf("status: %+v %v", n, err)
		}
	}
	_, err = tr.nodes[c].operator.TransferLead(t.Context(), memory.TransferLead{Node: tr.id(a)})
	refusedWith(t, err, memory.CodeConflict, tr.id(a)+" is drained", "drain "+tr.id(a)+" --undo")

	// It is elected, and gives that away.
	term := tr.nodes[a].served[0].replica.Group().Term()
	if err := tr.nodes[tr.leader()].served[0].candidacy().TransferTo(t.Context(), tr.nodes[a].dir.name()); err != nil {
		t.Fatal(err)
	}
	await(t, "another node to lead in a later term", func() bool {
		return tr.nodes[a].served[0].replica.Group().Term() >= term+2 && (tr.nodes[b].served[0].replica.Leads() || tr.nodes[c].served[0].replica.Leads())
	})

	// The one that leads goes: the third one leads, not the drained one.
	lead := tr.leader()
	third := b + c - lead
	shut(t, tr.nodes[lead])
	tr.nodes[lead] = nil
	tr.leads(third)
	_, err = tr.nodes[a].operator.DrainNode(t.Context(), memory.DrainNode{Node: tr.id(third)})
	refusedWith(t, err, memory.CodeConflict, "no other node is fit", "--undo")
	if tr.leads(third); tr.nodes[third].peers.drained.Load() {
		t.Error("it is drained all the same")
	}
	if got := drain(a, memory.DrainNode{Undo: true}); got.Node != tr.id(a) || got.Leader != tr.id(third) {
		t.Errorf("undone: %+v", got)
	}
	await(t, "the one that leads to hear that the other one may lead again", func() bool {
		got, err := tr.nodes[a].operator.DrainNode(t.Context(), memory.DrainNode{Node: tr.id(third)})
		if memory.CodeOf(err) != memory.CodeConflict && (err != nil || !got.Drained) {
			t.Fatalf("%+v %v", got, err)
		}
		return err == nil
	})
	tr.leads(a)
	tr.writes(third, "last", "all of it was kept")
}

// A node on its own has nobody to hand over to, and says so.
func TestNodeOnItsOwnHandsNothingOver(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	_, err := n.operator.TransferLead(t.Context(), memory.TransferLead{Node: "n1"})
	refusedWith(t, err, memory.CodeInvalid, "this node is on its own", "")
	_, err = n.operator.DrainNode(t.Context(), memory.DrainNode{})
	refusedWith(t, err, memory.CodeInvalid, "this node is on its own", "")
}
