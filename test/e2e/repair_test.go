package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/client"
	"mneme/memory"
)

func TestStateDeletedIsRebuilt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := launch{self: true}.start(t, dir)
	want := populate(t, d)
	hits := d.find("default", "harbour of Genoa")
	d.term()
	shard := filepath.Join("shards", "0")
	for name, lost := range map[string][]string{
		"state":            {filepath.Join(shard, "state")},
		"raft.db":          {filepath.Join(shard, "raft.db")},
		"state, raft.db":   {filepath.Join(shard, "state"), filepath.Join(shard, "raft.db")},
		"vectors":          {filepath.Join(shard, "vectors")},
		"snapshots":        {filepath.Join(shard, "snapshots")},
		"membership":       {filepath.Join(shard, "membership")},
		"state, snapshots": {filepath.Join(shard, "state"), filepath.Join(shard, "snapshots")},
		"the whole shard":  {shard},
		"CURRENT":          {filepath.Join(shard, "state", "CURRENT")},
		"logs and cache":   {"logs", "cache"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, dir)
			bit := 0
			for _, l := range lost {
				if _, err := os.Stat(filepath.Join(dir, l)); err == nil {
					bit++
				}
				if err := os.RemoveAll(filepath.Join(dir, l)); err != nil {
					t.Fatal(err)
				}
			}
			if bit == 0 && name != "vectors" && name != "logs and cache" { // small sets have no graph file
				t.Fatalf("there was nothing to delete: %v", lost)
			}
			d := start(t, dir)
			if got := d.truth(); got != want {
				t.Errorf("without %s: %s with %d records, want %s with %d\n%s", name, got.hash, got.records, want.hash, want.records, d.stderr)
			}
			if got := d.find("default", "harbour of Genoa"); strings.Join(got, "|") != strings.Join(hits, "|") {
				t.Errorf("found %q, before %q", got, hits)
			}
			if r := d.capture("default", "and life goes on"); r.Status != memory.StatusCreated {
				t.Errorf("a write says %+v", r)
			}
		})
	}
}

// diverged checks a node whose log is behind its state: writes are refused with
// the repair command, reads are up, and everything says so.
func diverged(t *testing.T, d *daemon, want truth) {
	t.Helper()
	if got := d.truth(); got != want {
		t.Errorf("reads are not what they were: %s, want %s", got.hash, want.hash)
	}
	status, body := d.call("POST", "/v1/namespaces/default/events", `{"agent":"tester","text":"must not be taken"}`)
	refusedREST(t, status, body, memory.CodeLogDiverged)
	if status != 503 || !strings.Contains(body, "memctl log repair") {
		t.Errorf("the refusal does not name the repair: %d %s", status, body)
	}
	if ack, code := ask(t, d.bus(), "mem.in.default.tester.capture", []byte("must not be taken"), nil); code != 503 {
		t.Errorf("NATS: %v", ack)
	}
	plainEnd(t, d.memctl("capture", "-n", "default", "must not be taken"), 7, "log repair")
	if status, body := d.call("GET", "/readyz", ""); status != 200 {
		t.Errorf("readyz: %d %s", status, body)
	}
	if status, body := d.call("GET", "/readyz?verbose", ""); status != 200 || !strings.Contains(body, "writes are stopped") {
		t.Errorf("readyz?verbose does not say that writes are stopped: %d %s", status, body)
	}
	if d.shard().Log.Diverged == "" {
		t.Error("the status does not say so")
	}
	if _, metrics := d.call("GET", "/metrics", ""); !strings.Contains(metrics, "diverged") {
		t.Error("the metrics do not say so")
	}
	plainEnd(t, d.memctl("log", "verify"), 7)
	if e := d.memctl("rebuild"); e.code != 7 {
		t.Errorf("a rebuild from a log with a hole: %d %s%s", e.code, e.out, e.err)
	}
	if len(d.find("default", "lighthouse")) == 0 {
		t.Error("search finds nothing")
	}
}

// repaired runs the repair and checks what it promises.
func repaired(t *testing.T, d *daemon, want truth, position string) {
	t.Helper()
	var report memory.RepairReport
	mustJSON(t, d.must("log", "repair", "--json"), &report)
	if s := report.Shards[0]; s.Epoch != 1 || s.Restored == 0 || s.StateHash != want.hash {
		t.Errorf("repair says %+v", s)
	}
	if got := d.truth(); got != want {
		t.Errorf("after the repair: %s, want %s", got.hash, want.hash)
	}
	if got := d.shard(); got.Epoch != 1 || got.Log.Diverged != "" || got.Log.Lost != 0 {
		t.Errorf("shard %+v", got)
	}
	// A position of before stays valid.
	if _, err := d.client.Search(t.Context(), "default", memory.SearchRequest{Query: "harbour", AtLeast: position}); err != nil {
		t.Errorf("reading at %s: %v", position, err)
	}
	var verify memory.VerifyReport
	mustJSON(t, d.must("log", "verify", "--json"), &verify)
	if !verify.Shards[0].OK || len(verify.Shards[0].Problems) != 0 {
		t.Errorf("verify: %+v", verify.Shards[0])
	}
	after := d.capture("default", "written after the repair")
	if after.Status != memory.StatusCreated || !strings.HasPrefix(after.Position, "p0.1.") {
		t.Errorf("a write after the repair: %+v", after)
	}
	if e := d.memctl("log", "repair"); e.code != 5 {
		t.Errorf("a second repair: %d %s", e.code, e.err)
	}
	now := d.truth()
	d.term()
	again := start(t, d.dir)
	if got := again.truth(); got != now {
		t.Errorf("after a restart: %s, want %s", got.hash, now.hash)
	}
	sameEverywhere(t, again)
}

func streamDir(dir string) string {
	return filepath.Join(dir, "nats", "jetstream", "NODE", "streams", "mneme-0")
}

func TestLogSuffixLostStopsWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := start(t, dir)
	d.capture("default", "the first memory of the harbour")
	d.term()
	older := copyDir(t, dir)
	d = start(t, dir)
	want := populate(t, d)
	position := d.shard().Position
	d.term()
	removeAll := func(t *testing.T, path string) {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, fault := range map[string]func(t *testing.T, dir string){
		"last block cut in the middle": func(t *testing.T, dir string) {
			blocks, err := filepath.Glob(filepath.Join(streamDir(dir), "msgs", "*.blk"))
			if err != nil || len(blocks) == 0 {
				t.Fatal(err, "no block files")
			}
			edit(t, blocks[len(blocks)-1], func(b []byte) []byte { return b[:len(b)*2/3] })
			removeAll(t, filepath.Join(streamDir(dir), "msgs", "index.db"))
		},
		"last block cut, index kept": func(t *testing.T, dir string) {
			blocks, _ := filepath.Glob(filepath.Join(streamDir(dir), "msgs", "*.blk"))
			edit(t, blocks[len(blocks)-1], func(b []byte) []byte { return b[:len(b)-100] })
		},
		"an older copy of nats/": func(t *testing.T, dir string) {
			removeAll(t, filepath.Join(dir, "nats"))
			if err := os.Rename(filepath.Join(copyDir(t, older), "nats"), filepath.Join(dir, "nats")); err != nil {
				t.Fatal(err)
			}
		},
		"nats/ deleted":         func(t *testing.T, dir string) { removeAll(t, filepath.Join(dir, "nats")) },
		"the messages deleted":  func(t *testing.T, dir string) { removeAll(t, filepath.Join(streamDir(dir), "msgs")) },
		"the stream's folder":   func(t *testing.T, dir string) { removeAll(t, streamDir(dir)) },
		"all block files empty": func(t *testing.T, dir string) { emptyBlocks(t, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyDir(t, dir)
			fault(t, dir)
			d := start(t, dir)
			diverged(t, d, want)
			d.kill() // it stays so over a restart
			d = start(t, dir)
			diverged(t, d, want)
			repaired(t, d, want, position)
		})
	}
	t.Run("lost together with the state", func(t *testing.T) {
		dir := copyDir(t, dir)
		removeAll(t, filepath.Join(dir, "nats"))
		removeAll(t, filepath.Join(dir, "shards"))
		d, e := launch{}.attempt(t, dir)
		if d == nil {
			plainEnd(t, e, 7)
			return
		}
		t.Errorf("log and state are gone, and the node starts empty without a word: %+v", d.shard())
	})
}

func emptyBlocks(t *testing.T, dir string) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(streamDir(dir), "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(err, "no block files")
	}
	for _, b := range blocks {
		edit(t, b, func([]byte) []byte { return nil })
	}
}

// A node whose log is lost under it keeps running.
func TestLogLostUnderARunningNode(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	want := populate(t, d)
	if err := os.RemoveAll(streamDir(d.dir)); err != nil {
		t.Fatal(err)
	}
	acked := uint64(0)
	for i := range 3 {
		_, err := d.client.Capture(t.Context(), "default", memory.Capture{Agent: "tester", ID: fmt.Sprint("x", i), Text: "into a log that is gone"}, client.CaptureOptions{})
		if err == nil {
			acked++ // log and state: one of them may be lost
		}
	}
	if len(d.find("default", "lighthouse")) == 0 {
		t.Error("search finds nothing")
	}
	d.kill()
	d = start(t, d.dir)
	if got := d.shard(); got.Log.Diverged == "" || got.Records < want.records+acked {
		t.Errorf("after the restart, with %d more acknowledged: %+v", acked, got)
	}
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	d := start(t, t.TempDir())
	want := populate(t, d)
	hits := strings.Join(d.find("default", "harbour of Genoa"), "|")
	out := t.TempDir()
	path := func(n string) string { return filepath.Join(out, n) }
	d.must("backup", "--log", path("on.log"), "--keys", path("on.keys"))
	d.term()
	var doctor memory.DoctorReport
	off := func(args ...string) string {
		e := memctl(t, "", nil, args...)
		if e.code != 0 {
			t.Fatalf("memctl %v: %d %s", args, e.code, e.err)
		}
		return e.out
	}
	off("backup", "--data-dir", d.dir, "--log", path("off.log"), "--keys", path("off.keys"))
	mustJSON(t, off("doctor", "--data-dir", d.dir, "--json"), &doctor)
	if !doctor.OK || len(doctor.Checks) < 4 {
		t.Errorf("offline doctor: %+v", doctor)
	}
	var verify memory.VerifyReport
	mustJSON(t, off("log", "verify", "--data-dir", d.dir, "--json"), &verify)
	if !verify.Shards[0].OK || verify.Shards[0].Events == 0 {
		t.Errorf("offline verify: %+v", verify)
	}
	for _, kind := range []string{"on", "off"} {
		dir := filepath.Join(t.TempDir(), "new")
		var report memory.RebuildReport
		e := memctl(t, "", nil, "restore", "--data-dir", dir, "--log", path(kind+".log"), "--keys", path(kind+".keys"), "--json")
		if e.code != 0 {
			t.Fatalf("restore of the %s-line backup: %d %s", kind, e.code, e.err)
		}
		mustJSON(t, e.out, &report)
		if report.Shards[0].StateHash != want.hash {
			t.Errorf("%s: restored state %s, want %s", kind, report.Shards[0].StateHash, want.hash)
		}
		again := start(t, dir)
		if got := again.truth(); got != want {
			t.Errorf("%s: restored %s, want %s", kind, got.hash, want.hash)
		}
		if got := strings.Join(again.find("default", "harbour of Genoa"), "|"); got != hits {
			t.Errorf("%s: found %q, before %q", kind, got, hits)
		}
		again.capture("default", "life goes on")
		again.term()
		if e := memctl(t, "", nil, "restore", "--data-dir", dir, "--log", path(kind+".log"), "--keys", path(kind+".keys")); e.code != 5 {
			t.Errorf("restore over something: %d %s", e.code, e.err)
		}
	}
	// A damaged backup makes nothing.
	for _, name := range []string{"off.log", "off.keys"} {
		b, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, bit := range bitsOf(int64(len(b)), 5, 1, name) {
			bad := path("bad." + name)
			if err := os.WriteFile(bad, flip(b, bit), 0o600); err != nil {
				t.Fatal(err)
			}
			log, keys := path("off.log"), bad
			if name == "off.log" {
				log, keys = bad, path("off.keys")
			}
			dir := filepath.Join(t.TempDir(), "new")
			plainEnd(t, memctl(t, "", nil, "restore", "--data-dir", dir, "--log", log, "--keys", keys), 7)
			if left, err := filepath.Glob(filepath.Join(dir, "[^L]*")); err != nil || len(left) > 0 { // all but LOCK
				t.Errorf("%s, bit %d: the failed restore left %v", name, bit, left)
			}
		}
		if err := os.WriteFile(path("cut."+name), b[:len(b)-10], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "new")
	plainEnd(t, memctl(t, "", nil, "restore", "--data-dir", dir, "--log", path("cut.off.log"), "--keys", path("off.keys")), 7)
}
