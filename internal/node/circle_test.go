package node

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mneme/memory"
)

// A bit flips in a table of the state, and the log has lost its last three messages, while
// Raft's files hold everything: repair named the start, the start named the repair, and
// the last advice was a backup. Every refusal names what works.
func TestRemediesPointedAtEachOther(t *testing.T) {
	t.Parallel()
	dir, tables, _, want := tabled(t)
	rng := rand.New(rand.NewPCG(8, 1))
	stuck := 0
	for range 8 {
		table := tables[rng.IntN(len(tables))]
		c := image(t, dir)
		flipOne(t, filepath.Join(c, table), rng)
		cutLog(t, c, 3)
		stopped, aside := image(t, c), image(t, c)
		_, err := Offline{Config: quiet("")}.RepairLog(t.Context(), stopped, nil)
		if err == nil {
			continue // the repair does not read the rows in it
		}
		stuck++
		saysAside(t, table+": repair of the stopped node", err)
		n, err := Open(t.Context(), quiet(c))
		if err != nil {
			saysAside(t, table+": start", err)
		} else {
			if _, err := n.operator.RepairLog(t.Context(), nil); err != nil {
				saysAside(t, table+": repair of the running node", err)
			}
			shut(t, n)
		}
		if err := os.Rename(filepath.Join(aside, "shards", "0", "state"), filepath.Join(t.TempDir(), "state")); err != nil {
			t.Fatal(err)
		}
		m := open(t, quiet(aside))
		if _, err := m.operator.RepairLog(t.Context(), nil); err != nil {
			t.Errorf("%s: with the state moved away: %v", table, err)
		}
		if got := shardOf(t, m); got.Records != want.Records || got.StateHash != want.StateHash || got.Log.Diverged != "" {
			t.Errorf("%s: with the state moved away %+v, want %+v", table, got, want)
		}
		shut(t, m)
	}
	if stuck == 0 {
		t.Error("no flip kept the repair from its work")
	}
}

func saysAside(t *testing.T, what string, err error) {
	t.Helper()
	hint := memory.AsError(err).Hint
	if e := (*StartError)(nil); errors.As(err, &e) {
		hint = e.Hint
	}
	if !strings.Contains(hint, asideHint) {
		t.Errorf("%s: %v\n\thint: %s", what, err, hint)
	}
}
