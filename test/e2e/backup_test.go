package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mneme/memory"
)

// TestBackupPlaces walks the runbook of backups with the programs: backups that go on from
// each other, verify, drill beside the running node, an erasure, a moment in time.
func TestBackupPlaces(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	want := populate(t, d)
	out := t.TempDir()
	place, keys := filepath.Join(out, "place"), filepath.Join(out, "keys")
	from := []string{"--from", place, "--keys-from", keys}
	off := func(code int, args ...string) ended {
		t.Helper()
		e := memctl(t, "", nil, args...)
		if e.code != code {
			t.Fatalf("memctl %v: exit %d, want %d: %s", args, e.code, code, e.err)
		}
		return e
	}
	var first, second memory.BackupMade
	mustJSON(t, d.must("backup", "--to", place, "--keys-to", keys, "--json"), &first)
	d.capture("default", "a later memory")
	was := d.shard()
	mustJSON(t, d.must("backup", "--to", place, "--keys-to", keys, "--json"), &second)
	if second.Parent != first.ID || second.Events != 1 || second.Position != was.Position {
		t.Errorf("%+v behind %+v, at %s", second, first, was.Position)
	}
	var verified memory.BackupVerifyReport
	mustJSON(t, off(0, append([]string{"backup", "verify", "--json"}, from...)...).out, &verified)
	if !verified.OK || verified.Backups != 2 {
		t.Errorf("%+v", verified)
	}
	scratch := t.TempDir()
	var drill memory.BackupDrillReport
	mustJSON(t, off(0, append([]string{"backup", "drill", "--scratch", scratch, "--json"}, from...)...).out, &drill)
	if !drill.OK || drill.Shards[0].Want != was.StateHash || drill.Records != was.Records {
		t.Errorf("%+v, want %s", drill, was.StateHash)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("the drill left %v, %v", left, err)
	}
	if got := d.shard(); got.StateHash != was.StateHash { // it goes on as before
		t.Errorf("the node has %s, had %s", got.StateHash, was.StateHash)
	}
	dir := filepath.Join(t.TempDir(), "new")
	var report memory.RestoreReport
	mustJSON(t, off(0, append([]string{"restore", "--data-dir", dir, "--backup", first.ID, "--json"}, from...)...).out, &report)
	if report.Shards[0].StateHash != want.hash || report.Backup != first.ID {
		t.Errorf("%+v, want %s", report, want.hash)
	}
	dir = filepath.Join(t.TempDir(), "before")
	mustJSON(t, off(0, append([]string{"restore", "--data-dir", dir, "--to-position", first.Position, "--json"}, from...)...).out, &report)
	if report.Shards[0].StateHash != want.hash {
		t.Errorf("%+v, want %s", report, want.hash)
	}
	again := start(t, dir)
	if got := again.truth(); got != want {
		t.Errorf("restored %s, want %s", got.hash, want.hash)
	}
	again.term()
	d.term()
	off(5, append([]string{"restore", "--data-dir", dir}, from...)...)

	// Cut, it is named, and not restored.
	log := filepath.Join(place, "log", first.ID+".log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, b[:len(b)-10], 0o600); err != nil {
		t.Fatal(err)
	}
	e := off(7, append([]string{"backup", "verify"}, from...)...)
	if !strings.Contains(e.out, first.ID+"  truncated") || !strings.Contains(e.out, second.ID) {
		t.Errorf("%s", e.out)
	}
	plainEnd(t, memctl(t, "", nil, append([]string{"backup", "drill"}, from...)...), 7)
	plainEnd(t, memctl(t, "", nil, append([]string{"restore", "--data-dir", filepath.Join(t.TempDir(), "new")}, from...)...), 7)
	// The only chain is bad: nothing is removed, by age or as damaged.
	for _, which := range [][]string{{"--keep", "1"}, {"--damaged"}} {
		plainEnd(t, memctl(t, "", nil, append(append([]string{"backup", "prune", "--yes"}, which...), from...)...), 7)
	}
	var anew memory.BackupMade
	mustJSON(t, off(0, "backup", "--data-dir", d.dir, "--to", place, "--keys-to", keys, "--json").out, &anew)
	if anew.Parent != "" || anew.Begun == "" {
		t.Errorf("a chain that is broken was gone on from: %+v", anew)
	}
	off(0, append([]string{"backup", "drill"}, from...)...)
	if e := off(7, append([]string{"backup", "verify"}, from...)...); !strings.Contains(e.err, anew.ID+", can be restored") || !strings.Contains(e.err, "memctl backup prune --damaged") {
		t.Errorf("%s", e.err)
	}
	off(0, append([]string{"backup", "verify", "--newest"}, from...)...)
	var pruned memory.BackupPruneReport
	mustJSON(t, off(0, append([]string{"backup", "prune", "--damaged", "--yes", "--json"}, from...)...).out, &pruned)
	if len(pruned.Pruned) != 2 || len(pruned.Kept) != 1 || pruned.Checked != anew.ID {
		t.Errorf("%+v", pruned)
	}
	off(0, append([]string{"backup", "prune", "--keep", "1", "--yes"}, from...)...)
	off(0, append([]string{"backup", "verify"}, from...)...)
}

// TestKilledBackup: a backup that is killed at any moment leaves nothing that counts, and the
// next one makes a whole one.
func TestKilledBackup(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	populate(t, d)
	out := t.TempDir()
	place, keys := filepath.Join(out, "place"), filepath.Join(out, "keys")
	whole := 0
	for i := range 12 {
		d.capture("default", "another memory")
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i*i)*time.Millisecond)
		if e := memctlContext(ctx, t, "", []string{"MNEME_ADDR=" + d.http}, "backup", "--to", place, "--keys-to", keys, "-q"); e.code == 0 {
			whole++
		}
		cancel()
		list := memory.BackupList{}
		mustJSON(t, d.must("backup", "list", "--from", place, "--json"), &list)
		if len(list.Backups) == 0 {
			continue
		}
		if e := memctl(t, "", nil, "backup", "verify", "--from", place, "--keys-from", keys); e.code != 0 {
			t.Errorf("after a kill: exit %d %s%s", e.code, e.out, e.err)
		}
	}
	d.must("backup", "--to", place, "--keys-to", keys)
	if e := memctl(t, "", nil, "backup", "drill", "--from", place, "--keys-from", keys); e.code != 0 {
		t.Errorf("exit %d %s%s", e.code, e.out, e.err)
	}
	t.Logf("%d of 12 came through", whole)
}
