package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"mneme/internal/node"
	"mneme/memory"
)

// Three nodes are killed at once under writes, and each is backed up as it lies there. Of
// the backup that reaches furthest a node on its own is made, and of that three nodes again,
// two of which begin with nothing: what was acknowledged is on all of them, once.
func TestThreeKilledNodesAreBackedUpAndBecomeThreeAgain(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	tm.start(ctx)
	load := trickleTo(ctx, tm, "a", map[string]string{})
	load.more(ctx, 30)
	for _, p := range tm.nodes {
		must(t, p.cmd.Process.Kill())
	}
	for _, p := range tm.nodes {
		p.kill()
	}
	load.stop()

	var off node.Offline
	var furthest memory.BackupReport
	for _, p := range tm.nodes {
		out := t.TempDir()
		report, err := off.Backup(ctx, p.dir, filepath.Join(out, "log"), filepath.Join(out, "keys"), nil)
		if err != nil || report.Stopped == nil || report.Stopped.Node != p.id || len(report.Stopped.Lacks) > 0 {
			t.Fatalf("%s: %+v %v", p.id, report, err)
		}
		t.Logf("%s reaches %s", p.id, report.Position)
		if report.Frames > furthest.Frames {
			furthest = report
		}
	}
	one := filepath.Join(t.TempDir(), "one")
	_, err := off.Restore(ctx, one, furthest.Log, furthest.Keys, nil)
	must(t, err)
	verified, err := off.VerifyLog(ctx, one, nil)
	if err != nil || len(verified.Shards) != 1 || !verified.Shards[0].OK {
		t.Fatalf("the node on its own: %+v %v", verified, err)
	}
	first := tm.nodes[0]
	done, err := off.Init(ctx, one, node.InitOptions{NodeID: first.id, Certs: tm.certs}, nil)
	if err != nil || !done.Done {
		t.Fatalf("%+v %v", done, err)
	}
	first.dir = one
	for _, p := range tm.nodes[1:] {
		p.dir = filepath.Join(t.TempDir(), "data")
	}
	tm.start(ctx)
	for i, p := range tm.nodes {
		id := fmt.Sprintf("b%d", i)
		load.acked[id] = p.capture(ctx, id, "memory "+id).RecordID
	}
	load.everywhere(ctx)
	for id, record := range load.acked {
		got := tm.nodes[1].capture(ctx, id, "memory "+id)
		if got.Status != memory.StatusDuplicate || got.RecordID != record {
			t.Errorf("%s is sent again: %+v, was %s", id, got, record)
		}
	}
	for _, p := range tm.nodes {
		report, err := again(ctx, func() (memory.VerifyReport, error) { return p.verifies(ctx) })
		if err != nil || len(report.Shards) != 1 || !report.Shards[0].OK {
			t.Errorf("%s: %+v %v", p.id, report, err)
		}
	}
}

// verifies has a node verify its log.
func (p *process) verifies(ctx context.Context) (memory.VerifyReport, error) {
	operator, err := p.operator(ctx)
	if err != nil {
		return memory.VerifyReport{}, err
	}
	defer operator.Close()
	return operator.VerifyLog(ctx, nil)
}
