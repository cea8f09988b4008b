package node

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/storage"
	"mneme/memory"
)

// again opens a node that has ended to start again, as memnode does.
func (tr *trio) again(i int) {
	tr.t.Helper()
	n := tr.nodes[i]
	select {
	case <-n.Done():
	case <-time.After(patience):
		tr.t.Fatalf("node %d goes on as it is", i+1)
	}
	if err := n.Err(); !errors.Is(err, ErrRestart) {
		tr.t.Fatalf("node %d ended with %v", i+1, err)
	}
	tr.nodes[i] = nil
	shut(tr.t, n)
	tr.open(i)
}

// A database that halted on a full disk stays locked until the process ends: a start in the same
// one found the directory in use, by itself, and the node ended for good.
func TestHaltedDatabaseNeedsANewProcess(t *testing.T) {
	full := fmt.Errorf("%w: no space left on device", storage.ErrNoSpace)
	if err := restartFor(&raftfsm.HaltError{Index: 7, Cause: full}); !errors.Is(err, ErrRestart) || errors.Is(err, ErrNewProcess) {
		t.Errorf("a full disk: %v", err)
	}
	halted := &raftfsm.HaltError{Index: 7, Cause: errors.Join(full, storage.ErrHalted)}
	if err := restartFor(halted); !errors.Is(err, ErrRestart) || !errors.Is(err, ErrNewProcess) {
		t.Errorf("a database that halted: %v", err)
	}
}

// A node whose state lost what Raft had applied to it halts, and has it built again by
// itself, from the beginning and from where a snapshot stands. A person had to remove the
// node.
func TestHaltedReplicaIsBuiltAgain(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	written := 0
	write := func(i int) {
		t.Helper()
		tr.writes(i, fmt.Sprintf("memory-%d", written), "a memory of the harbour")
		written++
	}
	for i := range tr.nodes {
		write(i)
	}
	lead := tr.leader()
	for round, at := range []int{(lead + 1) % 3, (lead + 2) % 3} {
		n := tr.nodes[at]
		if round > 0 {
			if err := n.served[0].replica.Group().Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		// The next commands of Raft count as applied and are not.
		replica := n.served[0].replica
		if err := replica.Still(func(s *projections.State) error {
			_, term := s.AppliedIndex()
			return s.SetOrigin(replica.Group().Stats().LastIndex+2, term, n.served[0].stream.Ref())
		}); err != nil {
			t.Fatal(err)
		}
		for n.served[0].replica.Group().Halted() == nil {
			if write((at + 1 + written%2) % 3); written > 100 { // the nemesis bites
				t.Fatal("it did not halt")
			}
		}
		write((at + 1) % 3)
		tr.again(at)
		tr.same()
		write(at)
		tr.same()
		if got := shardOf(t, tr.nodes[at]); got.Records != uint64(written) || got.Halted != "" {
			t.Errorf("%+v, %d were written", got, written)
		}
		if at := tr.nodes[at].served[0].keepsAside(); at.IsZero() {
			t.Error("the state that halted was not kept")
		}
		if _, err := os.Stat(tr.nodes[at].served[0].rebuildMark()); !os.IsNotExist(err) {
			t.Errorf("the next start builds the state again: %v", err)
		}
	}
}

// Only what most nodes say counts, and only of nodes that stand where this one does.
func TestStatesAreComparedWhereTheyStandTogether(t *testing.T) {
	report := func(position, hash string) shardReport {
		return shardReport{Replica: memory.ClusterReplica{Position: position, StateHash: hash}}
	}
	own := report("p5", "a")
	for name, c := range map[string]struct {
		others       []shardReport
		same, differ int
	}{
		"all agree":      {[]shardReport{report("p5", "a"), report("p5", "a")}, 2, 0},
		"elsewhere":      {[]shardReport{report("p4", "b"), report("p6", "c")}, 0, 0},
		"one differs":    {[]shardReport{report("p5", "a"), report("p5", "b")}, 1, 1},
		"it differs":     {[]shardReport{report("p5", "b"), report("p5", "b")}, 0, 2},
		"no answer":      {[]shardReport{{}, report("p5", "b")}, 0, 1},
		"a halted state": {[]shardReport{{Replica: memory.ClusterReplica{Position: "p5", StateHash: "b"}, Halted: true}}, 0, 0},
	} {
		if same, differ := agreement(own, c.others); same != c.same || differ != c.differ {
			t.Errorf("%s: %d are the same and %d differ, want %d and %d", name, same, differ, c.same, c.differ)
		}
	}
}

// A state that differs from those of most nodes is built again by the next start, once.
func TestStateThatDiffersIsBuiltAgain(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.writes(0, "first", "a memory of the harbour")
	at := (tr.leader() + 1) % 3
	n := tr.nodes[at]
	err := mender{n.served[0]}.rebuild(7, errors.New("most nodes have another state"))
	if !errors.Is(err, ErrRestart) {
		t.Fatal(err)
	}
	n.end(err)
	tr.again(at)
	tr.same()
	if n = tr.nodes[at]; n.served[0].keepsAside().IsZero() {
		t.Error("the state was not kept")
	}
	if err := (mender{n.served[0]}).rebuild(7, errors.New("again")); errors.Is(err, ErrRestart) || err == nil {
		t.Errorf("it would be built again and again: %v", err)
	}
}
