package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// TestOlderStateBesideAShortLogLostMemories: an older copy of the state was put back, the
// newest snapshot was lost or damaged, and the log had lost its end. Doctor advised a
// start, which moved the sound Raft log aside, went on without the end, said that all is
// well and gave its positions out again.
func TestOlderStateBesideAShortLogLostMemories(t *testing.T) {
	running := t.TempDir()
	n := open(t, quiet(running))
	for i := range 5 {
		must(t, n, fmt.Sprint("early ", i))
	}
	shut(t, n)
	state, snapshots := filepath.Join("shards", "0", "state"), filepath.Join("shards", "0", "snapshots")
	older := image(t, filepath.Join(running, state))
	n = open(t, quiet(running))
	for i := range 20 {
		must(t, n, fmt.Sprint("memory of the harbour, number ", i))
	}
	if err := n.served[0].replica.Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		must(t, n, fmt.Sprint("behind the snapshot ", i))
	}
	want := shardOf(t, n)
	shut(t, n)
	off := Offline{Config: quiet("")}
	for name, damage := range map[string]func(dir string) error{
		"lost": func(dir string) error { return os.RemoveAll(dir) },
		"damaged": func(dir string) error {
			tables, err := filepath.Glob(filepath.Join(dir, "*", "data", "*.sst"))
			for _, table := range tables {
				edit(t, table, func(b []byte) { b[len(b)-100] ^= 4 })
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := image(t, running)
			whole := filepath.Join(dir, "nats")
			putBack(t, older, filepath.Join(dir, state))
			if err := damage(filepath.Join(dir, snapshots)); err != nil {
				t.Fatal(err)
			}
			log := image(t, whole)
			cutLog(t, dir, 3)
			if name == "lost" { // else the server's index tells of a gap at the end
				indexes, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*", "msgs", "index.db"))
				if err != nil || len(indexes) != 1 || os.Remove(indexes[0]) != nil {
					t.Fatal(indexes, err)
				}
			}
			for _, asked := range []string{"before", "after"} { // the start, which changes nothing that helps
				d, err := off.Doctor(t.Context(), image(t, dir))
				last := d.Checks[len(d.Checks)-1]
				if err != nil || d.OK || last.State != "fail" || strings.Contains(last.Hint, "start memnode") || !strings.Contains(last.Hint, "memctl restore") {
					t.Errorf("doctor %s a start: %+v, %v", asked, d, err)
				}
				if e := fails(t, quiet(dir), StartDamaged); !strings.Contains(e.Hint, "put nats/") || !strings.Contains(e.Message, "what was applied went to") {
					t.Errorf("%s (%s)", e.Message, e.Hint)
				}
			}
			if aside, err := filepath.Glob(filepath.Join(dir, "shards", "0", "raft.db.*")); err != nil || len(aside) > 0 {
				t.Errorf("Raft's log was set aside: %q, %v", aside, err)
			}
			putBack(t, log, whole) // the remedy
			n := open(t, quiet(dir))
			if got := shardOf(t, n); got.StateHash != want.StateHash || got.Log.Diverged != "" {
				t.Errorf("%+v, want %+v", got, want)
			}
			must(t, n, "life goes on")
			shut(t, n)
		})
	}
	t.Run("intact", func(t *testing.T) { // then the start that is advised builds all of it
		dir := image(t, running)
		if err := os.RemoveAll(filepath.Join(dir, state)); err != nil {
			t.Fatal(err)
		}
		cutLog(t, dir, 3)
		if _, err := off.VerifyLog(t.Context(), image(t, dir), nil); err == nil {
			t.Error("a log without its end is content")
		}
		d, err := off.Doctor(t.Context(), image(t, dir))
		if last := d.Checks[len(d.Checks)-1]; err != nil || !strings.Contains(last.Hint, "start memnode") {
			t.Errorf("doctor: %+v, %v", d, err)
		}
		n := open(t, quiet(dir))
		if got := shardOf(t, n); got.StateHash != want.StateHash {
			t.Errorf("%+v, want %+v", got, want)
		}
		if _, err := capture(n, "must not be taken"); memory.CodeOf(err) != memory.CodeLogDiverged {
			t.Error(err)
		}
	})
}
