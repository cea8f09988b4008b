package raftfsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskHolds tells whether text lies in clear in any file that the group keeps.
func diskHolds(t testing.TB, dir, text string) bool {
	t.Helper()
	for _, content := range listTree(t, filepath.Join(dir, "raft")) {
		if bytes.Contains([]byte(content), []byte(text)) {
			return true
		}
	}
	return false
}

// What a command wrote and a later one took away is in no file after Renew: not
// in the log, not in older snapshots, not in what repairs moved aside.
func TestRenewRemovesWhatIsOlder(t *testing.T) {
	for _, noSync := range []bool{true, false} {
		dir := t.TempDir()
		change := func(o *Options) { o.NoSync, o.TrailingLogs = noSync, 100 }
		s := openShard(t, dir, change).lead(t)
		s.put(t, "x=forgetmenow")
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
		aside := filepath.Join(dir, "raft", "raft.db.damaged-1")
		if err := os.WriteFile(aside, []byte("forgetmenow"), 0o600); err != nil {
			t.Fatal(err)
		}
		damaged := filepath.Join(dir, "raft", "snapshots", "damaged-1")
		if err := os.MkdirAll(damaged, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(damaged, "f"), []byte("forgetmenow"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.put(t, "x=")
		if !diskHolds(t, dir, "forgetmenow") {
			t.Fatal("the test does not bite")
		}
		term := s.group.Term()
		if err := s.group.Renew(testCtx(t)); err != nil {
			t.Fatal(err)
		}
		if diskHolds(t, dir, "forgetmenow") {
			t.Fatalf("the command is still on disk (NoSync %v)", noSync)
		}
		if s.group.Term() != term {
			t.Fatal("the term changed")
		}
		s.put(t, "y=1")
		s.close(t)
		want := s.machine.get()
		s = openShard(t, dir, change).lead(t)
		if got := s.machine.get(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if r := s.group.Stats().Repair; r != (Repair{}) || s.group.Term() <= term {
			t.Fatalf("%+v, term %d after %d", r, s.group.Term(), term)
		}
	}
}

// The key under which old entries were sealed may be destroyed after Renew.
func TestRenewSealsUnderThePresentKey(t *testing.T) {
	dir, box := t.TempDir(), newKeyBox()
	s := openShard(t, dir, withSealer(box)).lead(t)
	s.putMany(t, 0, 10)
	box.rotate()
	if err := s.group.Renew(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	box.destroyOlder()
	s.putMany(t, 10, 20)
	s.close(t)
	s = openShard(t, dir, withSealer(box)).lead(t)
	checkRows(t, s.machine.get(), 20)
	if r := s.group.Stats().Repair; r != (Repair{}) {
		t.Fatalf("%+v", r)
	}
}

// Renew right after a start, and twice in a row, when raft has nothing new.
func TestRenewWithNothingNew(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 5)
	for range 2 {
		if err := s.group.Renew(testCtx(t)); err != nil {
			t.Fatal(err)
		}
	}
	s.close(t)
	s = openShard(t, dir)
	if err := s.group.Renew(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	s.lead(t)
	checkRows(t, s.machine.get(), 5)
	if n := s.group.Stats().Snapshots; n != 1 {
		t.Fatalf("%d snapshots", n)
	}
}

// Power may fail at each step: what was acknowledged is there, no term is used
// twice, and the next Renew finishes.
func TestRenewSurvivesPowerLossAtEachStep(t *testing.T) {
	dir := t.TempDir()
	disk, names := vfs.NewCrashableMem(), &renameFS{FS: vfs.Default}
	type picture struct {
		step, dir string
		disk      *vfs.MemFS
	}
	var pictures []picture
	dbOnly := func(step string) picture {
		to := t.TempDir()
		if err := os.MkdirAll(filepath.Join(to, "raft"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"raft.db", "raft.db.new"} {
			if b, err := os.ReadFile(filepath.Join(dir, "raft", name)); err == nil {
				if err := os.WriteFile(filepath.Join(to, "raft", name), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		return picture{step, to, afterPowerLoss(disk)}
	}
	var old []byte
	armed := false
	s := openShard(t, dir, func(o *Options) {
		o.FS, o.dbFS, o.NoSync, o.TrailingLogs = disk, names, false, 100
		o.step = func(step string) {
			if !armed {
				return
			}
			p := dbOnly(step)
			pictures = append(pictures, p)
			if names.count() > 0 { // the rename may be lost: the old file has its name
				p = dbOnly(step + ", rename lost")
				if err := os.WriteFile(dbFile(p.dir), old, 0o600); err != nil {
					t.Fatal(err)
				}
				pictures = append(pictures, p)
			}
			if step == "log cut" {
				old = mustRead(t, dbFile(dir))
			}
		}
	}).lead(t)
	s.putMany(t, 0, 30)
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.putMany(t, 30, 40)
	want, term := s.machine.get(), s.group.Term()
	armed = true
	if err := s.group.Renew(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	armed = false
	if n := names.count(); n != 0 {
		t.Fatalf("%d renames are not on stable storage", n)
	}
	s.close(t)
	var steps []string
	for _, p := range pictures {
		steps = append(steps, p.step)
		// The machine's folder is named by its path on the disk that was lost.
		c := reopenCrashed(t, dir, p.dir, p.disk)
		if got := c.machine.get(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, want %+v", p.step, got, want)
		}
		if r := c.group.Stats().Repair; r.MovedTo != "" || c.group.Term() <= term {
			t.Fatalf("%s: repaired %+v, term %d after %d", p.step, r, c.group.Term(), term)
		}
		if err := c.group.Renew(testCtx(t)); err != nil {
			t.Fatalf("%s: %v", p.step, err)
		}
		if n := c.group.Stats().Snapshots; n != 1 {
			t.Fatalf("%s: %d snapshots", p.step, n)
		}
		c.put(t, "after=1")
		c.close(t)
	}
	if all := strings.Join(steps, "; "); len(steps) != 7 || !strings.Contains(all, "rename lost") {
		t.Fatalf("steps: %s", all)
	}
}

// reopenCrashed puts a crashed raft.db where the disk's other files are named.
func reopenCrashed(t *testing.T, dir, crashed string, disk *vfs.MemFS) *shard {
	t.Helper()
	for _, name := range []string{"raft.db", "raft.db.new"} {
		to := filepath.Join(dir, "raft", name)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(crashed, "raft", name)); err == nil {
			if err := os.WriteFile(to, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return openShard(t, dir, func(o *Options) { o.FS, o.NoSync, o.TrailingLogs = disk, false, 100 }).lead(t)
}

// A copy that cannot be written leaves the old file in use.
func TestFailedRenewGoesOnWithTheOldFile(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 5)
	block := filepath.Join(dir, "raft", "raft.db.new") // a folder that is in the way
	s.group.opt.dbFS = stuckFS{vfs.Default, block}
	if err := s.group.Renew(testCtx(t)); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	s.group.opt.dbFS = vfs.Default
	s.put(t, "k005=v5")
	if err := s.group.Renew(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	checkRows(t, s.machine.get(), 6)
}

type stuckFS struct {
	vfs.FS
	path string
}

func (f stuckFS) RemoveAll(name string) error {
	if name == f.path {
		return errBoom
	}
	return f.FS.RemoveAll(name)
}

// A member renews while the group works; entries behind its snapshot, its term
// and its vote stay, and a lagging peer is helped with a snapshot.
func TestRenewOnEachOfThree(t *testing.T) {
	c := openCluster(t, 3)
	c.shards[0].putMany(t, 0, 20)
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	done := make(chan error, 1)
	stop, cancel := context.WithCancel(ctx)
	go func() {
		var err error
		for i := 20; err == nil && stop.Err() == nil; i++ {
			_, _, err = c.shards[0].group.Propose(ctx, fmt.Appendf(nil, "k%03d=v%d", i, i)).Wait(ctx)
		}
		done <- err
	}()
	for i, s := range c.shards {
		before := s.group.Term()
		if err := s.group.Renew(ctx); err != nil {
			t.Fatalf("replica %d: %v", i, err)
		}
		if s.group.Halted() != nil || s.group.Term() < before {
			t.Fatalf("replica %d: %v, term %d after %d", i, s.group.Halted(), s.group.Term(), before)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	lead := c.leader(t)
	index, err := lead.group.LinearizableIndex(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	// A follower that was away comes back to a log that begins behind it.
	i := 2
	if c.shards[i] == lead {
		i = 1
	}
	c.shards[i].close(t)
	c.shards[i] = nil
	lead = c.leader(t)
	lead.put(t, "away=1")
	if err := lead.group.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	c.open(t, i)
	lead = c.leader(t)
	if index, err = lead.group.LinearizableIndex(ctx); err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
}
