package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/memory"
)

func (tr *trio) recovers(i int, opt RecoverOptions) (memory.RecoverReport, error) {
	cfg := tr.cfgs[i]
	opt.Certs = cfg.Cluster.Certs
	cfg.Cluster = nil
	return Offline{Config: cfg}.Recover(tr.t.Context(), cfg.DataDir, opt)
}

// anew gives a node an empty data directory, and returns the one that it had.
func (tr *trio) anew(i int) (old string) {
	old = tr.cfgs[i].DataDir
	tr.cfgs[i].DataDir = filepath.Join(tr.t.TempDir(), "data")
	return old
}

// Two of three nodes are lost with their disks. The third one's data become a new cluster,
// which the others join with nothing; what it had is on all of them, and nodes of the former
// one are told that it is no more.
func TestMajorityIsLostAndRecovered(t *testing.T) {
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
	if _, err := tr.recovers(0, RecoverOptions{}); memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(err.Error(), "in use") {
		t.Errorf("recovered beside a node that runs on the directory: %v", err)
	}
	shut(t, tr.nodes[0])
	tr.nodes[0] = nil
	seen, err := tr.recovers(0, RecoverOptions{})
	if memory.CodeOf(err) != memory.CodeConflict || len(seen.Running) != 2 || seen.Recovered {
		t.Errorf("recovered from a cluster that is alive: %+v %v", seen, err)
	}
	write(1)
	tr.stop()
	before, err := tr.recovers(1, RecoverOptions{DryRun: true})
	if err != nil || before.Recovered || len(before.Shards) != 1 || before.Shards[0].Reaches == 0 || before.Keys == 0 {
		t.Fatalf("%+v %v", before, err)
	}
	behind, err := tr.recovers(0, RecoverOptions{DryRun: true})
	if err != nil || behind.Shards[0].Reaches >= before.Shards[0].Reaches {
		t.Errorf("n1 lacks the last memory, and says that it reaches as far: %+v %+v %v", behind.Shards, before.Shards, err)
	}
	was := before.ClusterID
	after, err := tr.recovers(1, RecoverOptions{})
	if err != nil || !after.Recovered || after.Shards[0].Reaches < before.Shards[0].Reaches || after.NewCluster == was {
		t.Fatalf("%+v %v", after, err)
	}
	if again, err := tr.recovers(1, RecoverOptions{}); err != nil || !again.Before || again.NewCluster != after.NewCluster {
		t.Errorf("recovered twice: %+v %v", again, err)
	}
	old := tr.anew(0)
	tr.anew(2)
	tr.start()
	for i := range tr.nodes {
		write(i)
	}
	tr.same()
	for i, n := range tr.nodes {
		tr.holds(i, acked)
		if n.dir.node.ClusterID != after.NewCluster {
			t.Errorf("node %d is of %s", i+1, n.dir.node.ClusterID)
		}
	}
	at, err := events.ParsePosition(after.Shards[0].State)
	now := tr.nodes[1].served[0].state.Cursor()
	if err != nil || now.Epoch <= at.Epoch+1 || now.Term < termsAbove {
		t.Errorf("it goes on in epoch %d, term %d, after %v: %v", now.Epoch, now.Term, at, err)
	}
	// A node of the former cluster turns up.
	shut(t, tr.nodes[0])
	tr.nodes[0] = nil
	cfg := tr.cfgs[0]
	cfg.DataDir = old
	var refused *StartError
	if n, err := Open(t.Context(), cfg); !errors.As(err, &refused) || refused.Kind != StartDamaged || !strings.Contains(refused.Message, "recovered from the data of one node") || refused.Hint == "" {
		if err == nil {
			shut(t, n)
		}
		t.Errorf("a node of the former cluster starts, or says nothing of it: %v", err)
	}
	tr.open(0)
}

// A recovery may be cut short before each of its steps, and called again. Until it is done
// no memnode opens the directory.
func TestRecoveryKilledAnywhere(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	record := tr.writes(0, "m", "a memory of the harbour")
	tr.same()
	tr.stop()
	source := tr.cfgs[0].DataDir
	older := image(t, source)
	tr.start()
	onlyInLog := tr.writes(1, "l", "what only the node's copy of the log holds")
	late := sent{"default", "s", "ada"}.to(t, tr.nodes[1]) // under a key of its own
	tr.same()
	at := tr.nodes[0].served[0].state.Cursor()
	await(t, "its own copy of the log", func() bool {
		last, _ := tr.nodes[0].nats.Holds(events.StreamName(0, at.Epoch))
		return last >= at.Seq
	})
	tr.stop()
	stoppedBackups(t, source, older, map[string]memory.CaptureResult{"m": record, "l": onlyInLog, "s": late}, "s")
	putBack(t, filepath.Join(older, "shards"), filepath.Join(source, "shards"))
	cfg := tr.cfgs[0]
	cfg.Cluster = nil
	killed := errors.New("killed")
	var last string
	for n, done := 0, false; !done; n++ {
		dir := filepath.Join(t.TempDir(), "data")
		if err := copyStopped(source, dir); err != nil {
			t.Fatal(err)
		}
		left := n
		off := Offline{Config: cfg, step: func(name string) error {
			if left--; left < 0 {
				last = name
				return killed
			}
			return nil
		}}
		_, err := off.Recover(t.Context(), dir, RecoverOptions{Certs: tr.cfgs[0].Cluster.Certs})
		done = err == nil
		if !done && !errors.Is(err, killed) {
			t.Fatalf("after %d steps: %v", n, err)
		}
		if !done && n > 0 {
			c := tr.cfgs[0]
			c.DataDir = dir
			var refused *StartError
			if _, err := Open(t.Context(), c); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "memctl cluster recover") {
				t.Errorf("a node opens what a recovery has left before %q: %v", last, err)
			}
		}
		off.step = nil
		report, err := off.Recover(t.Context(), dir, RecoverOptions{Certs: tr.cfgs[0].Cluster.Certs})
		if err != nil || !report.Recovered || report.Shards[0].Reaches < at.Seq {
			t.Fatalf("again, after it was killed before %q: %+v %v", last, report, err)
		}
		for _, gone := range []string{"nats", "keys/raft/raft.db", "shards/0/raft.db", "shards/0/membership"} {
			if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
				t.Errorf("killed before %q: %s is there", last, gone)
			}
		}
		if done {
			if last != "found" {
				t.Errorf("the last step was %q", last)
			}
			tr.cfgs[0].DataDir = dir
		}
	}
	tr.anew(1)
	tr.anew(2)
	tr.start()
	acked := map[string]string{"m": record.RecordID, "l": onlyInLog.RecordID, "s": late.RecordID}
	tr.holds(0, acked)
	acked["n"] = tr.writes(2, "n", "another one").RecordID
	tr.same()
	for i := range tr.nodes {
		tr.holds(i, acked)
	}
}

// What is no cluster node's directory is refused, with what helps.
func TestRecoverRefusesWhatIsNoClusterNode(t *testing.T) {
	alone := t.TempDir()
	cfg := quiet(alone)
	shut(t, open(t, cfg))
	off := Offline{Config: quiet("")}
	for dir, says := range map[string]string{
		alone:         "belongs to a node on its own",
		t.TempDir():   "is not a data directory",
		alone + "/no": "is not a data directory",
	} {
		if _, err := off.Recover(context.Background(), dir, RecoverOptions{}); memory.CodeOf(err) != memory.CodeInvalid || !strings.Contains(err.Error(), says) || memory.AsError(err).Hint == "" {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
