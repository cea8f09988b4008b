package node

import (
	"io"
	"strings"
	"testing"

	"mneme/memory"
)

// Work that reads the log answered `internal` while the log has no leader.
func TestWorkDuringAnElection(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.writes(0, "first", "a memory of the harbour")
	n := tr.nodes[0]
	for i := range tr.nodes[1:] { // an election that nobody wins
		shut(t, tr.nodes[i+1])
		tr.nodes[i+1] = nil
	}
	await(t, "the log to have no leader", func() bool { _, err := n.served[0].stream.Info(t.Context()); return err != nil })
	for what, work := range map[string]func() error{
		"rebuild": func() error { _, err := n.operator.Rebuild(t.Context(), nil); return err },
		"verify":  func() error { _, err := n.operator.VerifyLog(t.Context(), nil); return err },
		"backup":  func() error { _, err := n.operator.BackupLog(t.Context(), io.Discard, ""); return err },
	} {
		if e := memory.AsError(work()); e == nil || e.Code != memory.CodeUnavailable || !strings.Contains(e.Hint, "elect") {
			t.Errorf("%s: %v (%+v)", what, e, e)
		}
	}
	d, err := n.operator.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Checks {
		if c.Name == "log against state" && (c.State != "warn" || !strings.Contains(c.Hint, "elect") || strings.Count(c.Detail, "no leader") != 1) {
			t.Errorf("%+v", c)
		}
	}
	if len(find(t, n, "harbour")) == 0 {
		t.Error("reads are down")
	}
}
