package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/internal/api"
	"mneme/memory"
)

// spacious is the directory of a stopped node on its own whose state has a table of many
// blocks, most of which nobody reads at a start.
func spacious(t *testing.T) (dir string, records []string) {
	t.Helper()
	dir = t.TempDir()
	n := open(t, quiet(dir))
	random := rand.New(rand.NewPCG(1, 2))
	var captures []memory.Capture
	for i := range 200 {
		text := fmt.Appendf(nil, "memory of the harbour, number %d", i)
		for range 300 { // what compresses to little would lie in few blocks
			text = fmt.Appendf(text, " %x", random.Uint32())
		}
		captures = append(captures, memory.Capture{Agent: "a", Text: string(text)})
	}
	resp, err := n.changes.Capture(t.Context(), "default", captures, api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitApplied)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.Results {
		records = append(records, r.RecordID)
	}
	shut(t, n)
	return dir, records
}

// flips damages the largest table of a state in several places behind its beginning.
func flips(t *testing.T, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "shards", "0", "state", "gen-*", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	var largest []byte
	var name string
	for _, table := range tables {
		b, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > len(largest) {
			largest, name = b, table
		}
	}
	if len(largest) < 256<<10 {
		t.Fatalf("%s has %d bytes", name, len(largest))
	}
	for i := 1; i < 8; i++ {
		largest[i*len(largest)/8] ^= 4
	}
	if err := os.WriteFile(name, largest, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A table of the state is damaged where nobody has read it. Neither an init nor a recovery
// takes such a state for whole and puts the log away: they say so, before anything changes,
// and a backup of the stopped node takes what is lost from its copy of the log.
func TestDamagedTableStopsAnInitAndARecovery(t *testing.T) {
	t.Parallel()
	source, records := spacious(t)
	tr := trioOf(t, nil)
	copied := func(from string) string {
		dir := filepath.Join(t.TempDir(), "data")
		if err := copyStopped(from, dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	node := func(dir string) string {
		b, err := os.ReadFile(filepath.Join(dir, nodeJSON))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	dir := copied(source)
	flips(t, dir)
	for _, dry := range []bool{true, false} {
		report, err := tr.inits(Offline{}, dir, InitOptions{DryRun: dry})
		if e := memory.AsError(err); e == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Hint, "start memnode") || report.Done {
			t.Errorf("init, dry run %v: %+v %+v", dry, report, e)
		}
	}
	if node(dir) != node(source) {
		t.Error("the init changed whose directory it is")
	}

	whole := copied(source)
	done, err := tr.inits(Offline{}, whole, InitOptions{})
	if err != nil || !done.Done {
		t.Fatalf("%+v %v", done, err)
	}
	tr.cfgs[0].DataDir = copied(whole)
	if seen, err := tr.recovers(0, RecoverOptions{DryRun: true}); err != nil || len(seen.Damage) > 0 || len(seen.Shards) != 1 {
		t.Errorf("a whole state: %+v %v", seen, err)
	}
	flips(t, whole)
	if err := os.Rename(filepath.Join(done.Aside, "nats"), filepath.Join(whole, "nats")); err != nil { // a node that has gone on has one
		t.Fatal(err)
	}
	before := filesOf(t, whole)
	tr.cfgs[0].DataDir = whole
	if seen, err := tr.recovers(0, RecoverOptions{DryRun: true}); err != nil || len(seen.Damage) != 1 || len(seen.Shards) != 0 {
		t.Errorf("dry run: %+v %v", seen, err)
	}
	report, err := tr.recovers(0, RecoverOptions{})
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Hint, "memctl backup --data-dir "+whole) || report.Recovered {
		t.Errorf("%+v %+v", report, e)
	}
	if !maps.Equal(before, filesOf(t, whole)) {
		t.Error("the recovery changed something")
	}
	backup, n := backsUpStopped(t, whole)
	if len(backup.Stopped.Lacks) > 0 {
		t.Errorf("%+v", backup.Stopped)
	}
	for _, id := range records {
		if _, err := n.reads.Get(t.Context(), memory.Access{Namespace: "default", As: "a"}, id, 0); err != nil {
			t.Error(err)
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := os.RemoveAll(filepath.Join(whole, "nats")); err != nil {
		t.Fatal(err)
	}
	_, err = (Offline{Config: quiet("")}).Backup(t.Context(), whole, log, log+".keys", nil)
	if e := memory.AsError(err); e == nil || e.Code != memory.CodeLogDiverged || !strings.Contains(e.Hint, "back up another node") {
		t.Errorf("a backup without the log: %+v", e)
	}
}
