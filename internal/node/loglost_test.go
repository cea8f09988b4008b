package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"mneme/memory"
)

// stop closes all nodes of the trio that run.
func (tr *trio) stop() {
	tr.t.Helper()
	var closing sync.WaitGroup
	for i, n := range tr.nodes {
		if n != nil {
			tr.nodes[i] = nil
			closing.Go(func() { shut(tr.t, n) })
		}
	}
	closing.Wait()
}

// start opens all nodes of the trio, and fails the test if one does not open.
func (tr *trio) start() {
	tr.t.Helper()
	var opening sync.WaitGroup
	for i := range tr.nodes {
		opening.Go(func() { tr.open(i) })
	}
	opening.Wait()
	if tr.t.Failed() {
		tr.t.FailNow()
	}
}

// holds checks that a node has memories, by their number.
func (tr *trio) holds(i int, ids map[string]string) {
	tr.t.Helper()
	for id, record := range ids {
		if rec, err := tr.nodes[i].reads.Get(tr.t.Context(), memory.Access{Namespace: "default", As: "a"}, record, 0); err != nil || rec.RecordID != record {
			tr.t.Errorf("node %d: %s: %+v %v", i+1, id, rec, err)
		}
	}
}

// deposes has another node lead the first shard than the one that does.
func (tr *trio) deposes(lead int) { tr.deposesOf(0, lead) }

func (tr *trio) deposesOf(shard, lead int) {
	tr.t.Helper()
	await(tr.t, "another leader", func() bool {
		_ = tr.nodes[lead].served[shard].replica.Group().TransferLeadership(tr.t.Context()) // it may be one no more
		return slices.ContainsFunc(tr.nodes, func(n *Node) bool { return n != tr.nodes[lead] && n.served[shard].replica.Leads() })
	})
}

// loseLogs removes the folder of the log at all nodes, which are stopped.
func (tr *trio) loseLogs() {
	tr.t.Helper()
	for _, cfg := range tr.cfgs {
		if err := os.RemoveAll(cfg.DataDir + "/nats"); err != nil {
			tr.t.Fatal(err)
		}
	}
}

// stoppedAt is what a node says of why the first shard takes no writes, as status and cluster
// status do.
func (tr *trio) stoppedAt(i int) *memory.WritesStopped {
	tr.t.Helper()
	status, err := tr.nodes[i].operator.Status(tr.t.Context(), false)
	if err != nil {
		tr.t.Fatal(err)
	}
	in, err := tr.nodes[i].operator.Cluster(tr.t.Context())
	if err != nil {
		tr.t.Fatal(err)
	}
	a, b := status.Shards[0].WritesStopped, in.Shards[0].WritesStopped
	if (a == nil) != (b == nil) || a != nil && *a != *b {
		tr.t.Logf("node %d: %+v and then %+v", i+1, a, b) // it may change in between
	}
	return b
}

// All nodes of a cluster have lost their copies of the log. They came up never; now they
// serve reads, take no writes, and the one that leads writes the log again from the state,
// as another stream that all of them go on with.
func TestLogLostOnAllNodesIsWrittenAgain(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	acked := map[string]string{}
	write := func(i int) {
		t.Helper()
		id := fmt.Sprintf("m%d", len(acked))
		acked[id] = tr.writes(i, id, "a memory of the harbour").RecordID
	}
	for i := range tr.nodes {
		write(i)
	}
	tr.same()
	tr.stop()
	tr.loseLogs()
	tr.start()
	lead := tr.leader()
	for i, n := range tr.nodes {
		tr.holds(i, acked)
		_, err := n.changes.CreateNamespace(t.Context(), memory.CreateNamespace{Name: "new"})
		if memory.CodeOf(err) != memory.CodeLogDiverged || !strings.Contains(memory.AsError(err).Hint, "memctl log repair") {
			t.Errorf("node %d takes a write, or does not say what helps: %v, %q", i+1, err, memory.AsError(err).Hint)
		}
		told := tr.stoppedAt(i)
		if told == nil || told.Node != tr.id(lead) || !strings.Contains(told.Why, "disagree") || !strings.Contains(told.Hint, "memctl log repair") {
			t.Errorf("node %d says of writes %+v", i+1, told)
		}
		if ready, _ := n.doctor.Ready(); !ready || !slices.ContainsFunc(n.doctor.Led(t.Context()), func(c memory.Check) bool {
			return c.State == "warn" && strings.HasPrefix(c.Detail, tr.id(lead)+" leads; writes are stopped: ") && c.Hint == told.Hint
		}) {
			t.Errorf("node %d: ready %v, %+v", i+1, ready, n.doctor.Led(t.Context()))
		}
		if i == lead {
			continue
		}
		if _, err := n.operator.RepairLog(t.Context(), nil); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), tr.cfgs[lead].Cluster.NodeID) {
			t.Errorf("node %d does not lead, and repairs: %v", i+1, err)
		}
	}
	found := lead // what is wrong with the log
	lead = (lead + 1) % len(tr.nodes)
	tr.moves(0, lead)
	was := tr.nodes[lead].served[0].state.Cursor()
	report, err := tr.nodes[lead].operator.RepairLog(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Shards[0]; s.Epoch <= was.Epoch || s.Restored != was.Seq {
		t.Errorf("written again: %+v; the state stood at %d of epoch %d", s, was.Seq, was.Epoch)
	}
	for i := range tr.nodes {
		write(i)
		await(t, "writes to be told as taken", func() bool { return tr.stoppedAt(i) == nil })
	}
	tr.same()
	// The node that found the log gone leads again, and goes on with the stream that it did not make.
	tr.moves(0, found)
	for i := range tr.nodes {
		write(i)
	}
	tr.same()
	now := tr.leader()
	tr.eventually(now, func() error {
		verified, err := tr.nodes[now].operator.VerifyLog(t.Context(), nil)
		if err == nil && !verified.Shards[0].OK {
			return fmt.Errorf("the log is not whole: %+v", verified)
		}
		return err
	})
	for i := range tr.nodes {
		tr.holds(i, acked)
	}
}

// The node that writes the log again goes away in the middle. The next one that leads
// finishes it without being asked, in the same stream.
func TestNextLeaderFinishesTheRepair(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	record := tr.writes(0, "m", "a memory of the harbour").RecordID
	tr.same()
	tr.stop()
	tr.loseLogs()
	tr.start()
	lead := tr.leader()
	n := tr.nodes[lead]
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.beforeStep(func(name string) {
		if name == "use" {
			once.Do(func() { close(reached) })
			<-goOn
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	if _, err := n.operator.RepairLog(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("it was not cut off: %v", err)
	}
	reserved := n.served[0].state.Cursor().Next
	tr.deposes(lead)
	at := tr.leader()
	tr.nodes[lead] = nil
	close(goOn)
	await(t, "the repair to end at the node that leads no more", func() bool {
		if !n.upkeep.one.try() {
			return false
		}
		n.upkeep.one.end()
		return true
	})
	shut(t, n)
	await(t, "the other node to finish the repair", func() bool {
		at = tr.leader()
		c := tr.nodes[at].served[0].state.Cursor()
		return c.Stream() == reserved
	})
	other := tr.writes(at, "n", "another one").RecordID
	tr.open(lead)
	tr.same()
	for i := range tr.nodes {
		tr.holds(i, map[string]string{"m": record, "n": other})
	}
}
