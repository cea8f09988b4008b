package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// TestNewLogThatWasLostBeforeItsFirstStartWasWrittenAgain: a log that a restore, or a
// repair of the stopped node, had written was only reserved until the node started. If
// it was not there then, a volume that was not mounted, the node took that for a repair
// that had been interrupted: it wrote the log anew, with nobody asked, and took writes.
func TestNewLogThatWasLostBeforeItsFirstStartWasWrittenAgain(t *testing.T) {
	off := Offline{Config: quiet("")}
	for name, write := range map[string]func(t *testing.T) string{
		"restored": func(t *testing.T) string {
			log, keys, _ := backedUp(t)
			dir := filepath.Join(t.TempDir(), "new")
			if _, err := off.Restore(t.Context(), dir, log, keys, nil); err != nil {
				t.Fatal(err)
			}
			return dir
		},
		"repaired while stopped": func(t *testing.T) string {
			dir, _ := filled(t)
			if err := os.RemoveAll(filepath.Join(dir, "nats")); err != nil {
				t.Fatal(err)
			}
			if _, err := off.RepairLog(t.Context(), dir, nil); err != nil {
				t.Fatal(err)
			}
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, aside := write(t), filepath.Join(t.TempDir(), "nats")
			nats := filepath.Join(dir, "nats")
			if r, err := off.Doctor(t.Context(), dir); err != nil || !r.OK {
				t.Errorf("before it is lost: %+v, %v", r, err)
			}
			if err := os.Rename(nats, aside); err != nil {
				t.Fatal(err)
			}
			n := open(t, quiet(dir))
			if found := n.served[0].replica.Diverged(); found == nil || !strings.Contains(found.Hint, "memctl log repair") {
				t.Errorf("without its log: %v", found)
			}
			if _, err := capture(n, "into no log"); memory.CodeOf(err) != memory.CodeLogDiverged {
				t.Errorf("a write without the log: %v", err)
			}
			if (&repair{shard: n.shards[0]}).unfinished() {
				t.Error("it is taken for an interrupted repair")
			}
			shut(t, n)
			putBack(t, aside, nats) // mounted again
			n = open(t, quiet(dir))
			must(t, n, "and it goes on")
			if r, err := n.operator.VerifyLog(t.Context(), nil); err != nil || !r.Shards[0].OK {
				t.Errorf("mounted again: %+v, %v", r, err)
			}
			shut(t, n)
			if err := os.RemoveAll(nats); err != nil {
				t.Fatal(err)
			}
			n = open(t, quiet(dir))
			if _, err := n.operator.RepairLog(t.Context(), nil); err != nil { // lost for good: the remedy
				t.Fatal(err)
			}
			must(t, n, "and on")
		})
	}
}
