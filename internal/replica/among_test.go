package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mneme/internal/projections"
)

// A replica with peers whose state cannot be used builds it again by itself, also where
// its own snapshot shares the damage, as files do that are one and the same, and keeps
// one copy of what it set aside. It ended, and a person had to let the node join anew.
func TestDamagedStateAmongPeersIsBuiltAgain(t *testing.T) {
	c := newCluster(t)
	lead := c.replicas[0]
	lead.namespace("team")
	for round := range 4 {
		for i := range 5 {
			lead.mustCapture(fmt.Sprintf("memory %d of round %d", i, round))
		}
		c.same(lead)
		follower := c.replicas[2]
		if round > 0 { // the first time there is no snapshot
			if err := follower.Group().Snapshot(); err != nil {
				t.Fatal(err)
			}
			lead.mustCapture("behind the snapshot")
			c.same(lead)
		}
		follower.close()
		damage(t, c.dirs[2])
		if round > 1 {
			spoilSnapshots(t, c.dirs[2])
		}
		lead.mustCapture("while it was away")
		if round == 3 { // killed when some of the log was folded, and the state was set aside
			opt := c.options(2, false)
			opt.setDefaults()
			if err := opt.setAside(errors.New("damaged")); err != nil {
				t.Fatal(err)
			}
			foldSome(t, &opt, 3)
		}
		c.replicas[2] = c.open(2, false)
		c.same(lead)
		aside, err := filepath.Glob(filepath.Join(c.dirs[2], "state.damaged-*"))
		if err != nil || len(aside) != 1 {
			t.Errorf("round %d: set aside are %q, %v", round, aside, err)
		}
		if b, err := os.ReadFile(filepath.Join(aside[0], "CURRENT")); err != nil || string(b) != "nonsense" {
			t.Errorf("round %d: what was set aside has CURRENT %q, %v", round, b, err)
		}
	}
}

// spoilSnapshots writes over every table of a replica's snapshots.
func spoilSnapshots(t *testing.T, dir string) {
	t.Helper()
	spoilt := 0
	err := filepath.WalkDir(filepath.Join(dir, "snapshots"), func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		spoilt++
		return os.WriteFile(path, []byte("nonsense"), 0o600)
	})
	if err != nil || spoilt == 0 {
		t.Fatalf("%d tables were spoilt, %v", spoilt, err)
	}
}

// foldSome leaves of a state what a kill leaves that came when the first frames were
// flushed.
func foldSome(t *testing.T, opt *Options, frames uint64) {
	t.Helper()
	state := openFilling(t, opt)
	if _, err := replay(t.Context(), opt.Stream, opt.Keys, state, frames, nil); err != nil {
		t.Fatal(err)
	}
	if err := state.Close(); err != nil {
		t.Fatal(err)
	}
}

func openFilling(t *testing.T, opt *Options) *projections.State {
	t.Helper()
	so := opt.StateOptions()
	so.Filling, so.OnApply = true, nil
	state, err := projections.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	return state
}
