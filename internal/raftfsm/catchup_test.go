package raftfsm

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// After a kill the newest commands are in the log alone. Whoever works on the stopped
// replica gets the machine that the next Open would lead to, and that Open finds its
// files as they were.
func TestCatchUpAppliesWhatTheNextOpenWould(t *testing.T) {
	if err := CatchUp(Options{}); err == nil {
		t.Error("without a machine")
	}
	running, whole := t.TempDir(), filepath.Join(t.TempDir(), "killed")
	s := openShard(t, running).lead(t)
	s.putMany(t, 0, 10)
	if err := s.group.Snapshot(); err != nil { // it flushes the state
		t.Fatal(err)
	}
	s.putMany(t, 10, 20)
	copyTree(t, running, whole)
	want := s.machine.get()
	s.close(t)
	for name, damage := range map[string]struct {
		do   func(t *testing.T, dir string)
		rows int
	}{
		"killed":                        {func(*testing.T, string) {}, 20},
		"state older than the snapshot": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "state")) }, 20},
		"no log":                        {func(t *testing.T, dir string) { remove(t, dbFile(dir)) }, 10},
		"a flipped log":                 {func(t *testing.T, dir string) { flipAll(t, dbFile(dir), "k015=v15") }, 10},
		"peers":                         {func(t *testing.T, dir string) { addPeerToMembership(t, dir) }, 10},
		"neither state, snapshots nor all": {func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "state"))
			remove(t, filepath.Join(dir, "raft", "snapshots"))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			copyTree(t, whole, dir)
			damage.do(t, dir)
			before, _ := os.ReadFile(dbFile(dir))
			m := newFileMachine(t, filepath.Join(dir, "state"))
			if err := CatchUp(Options{Dir: filepath.Join(dir, "raft"), ID: "n1", Bootstrap: true, Machine: m, FS: vfs.Default}); err != nil {
				t.Fatal(err)
			}
			checkRows(t, m.get(), damage.rows)
			if after, _ := os.ReadFile(dbFile(dir)); string(after) != string(before) {
				t.Error("the log has changed")
			}
			if damage.rows == 20 {
				if got := m.get(); !reflect.DeepEqual(got, want) {
					t.Errorf("state %+v, want %+v", got, want)
				}
				goesOn(t, dir, want, name).close(t)
			}
		})
	}
	m := newFileMachine(t, filepath.Join(whole, "state"))
	m.failAt = want.Index
	opt := Options{Dir: filepath.Join(whole, "raft"), ID: "n1", Bootstrap: true, Machine: m}
	if err := CatchUp(opt); !errors.Is(err, ErrHalted) {
		t.Errorf("a machine that fails: %v", err)
	}
	m = newFileMachine(t, t.TempDir())
	m.failNext["restore"] = errBoom
	opt.Machine = m
	if err := CatchUp(opt); !errors.Is(err, errBoom) {
		t.Errorf("a snapshot that cannot be restored: %v", err)
	}
	s = openShard(t, whole).lead(t)
	if err := CatchUp(opt); !errors.Is(err, ErrLocked) {
		t.Errorf("beside an open group: %v", err)
	}
	s.close(t)
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
