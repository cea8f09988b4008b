package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/memory"
)

// meanwhileFS does something once, when a path is first opened or made.
type meanwhileFS struct {
	vfs.FS
	path string
	do   func()
}

func (m *meanwhileFS) at(path string) {
	if do := m.do; do != nil && path == m.path {
		m.do = nil
		do()
	}
}

func (m *meanwhileFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	m.at(name)
	return m.FS.Open(name, opts...)
}

func (m *meanwhileFS) MkdirAll(dir string, perm os.FileMode) error {
	m.at(dir)
	return m.FS.MkdirAll(dir, perm)
}

// meanwhile is Offline work that has do done when it first opens or makes path.
func meanwhile(path string, do func()) Offline {
	cfg := quiet("")
	cfg.FS = &meanwhileFS{FS: vfs.Default, path: path, do: do}
	return Offline{Config: cfg}
}

// TestRestoreDeletedALiveDirectory: a restore looked at the directory, read its
// backup, and then removed all that a node had written there meanwhile. The node
// went on acknowledging.
func TestRestoreDeletedALiveDirectory(t *testing.T) {
	log, keys, _ := backedUp(t)
	for _, stopped := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "new")
		var n *Node
		off := meanwhile(log, func() {
			n = open(t, quiet(dir))
			must(t, n, "acknowledged while the restore read its backup")
			if stopped {
				shut(t, n)
			}
		})
		_, err := off.Restore(t.Context(), dir, log, keys, nil)
		if code := memory.CodeOf(err); n == nil || code != memory.CodeConflict && code != memory.CodeUnavailable {
			t.Errorf("stopped %v: %v", stopped, err)
		}
		if !stopped {
			must(t, n, "acknowledged afterwards")
			shut(t, n)
		}
		if again := open(t, quiet(dir)); len(find(t, again, "acknowledged")) == 0 {
			t.Errorf("stopped %v: what was acknowledged is gone", stopped)
		}
	}
}

// TestTwoRestoresDestroyedEachOther: each removed what the other had written, and
// the first that failed removed the rest.
func TestTwoRestoresDestroyedEachOther(t *testing.T) {
	log, keys, want := backedUp(t)
	dir := filepath.Join(t.TempDir(), "new")
	off := Offline{Config: quiet("")}
	tried := false
	_, err := off.Restore(t.Context(), dir, log, keys, func(done, _ uint64) {
		if done != 3 {
			return
		}
		tried = true
		if _, err := off.Restore(t.Context(), dir, log, keys, nil); memory.CodeOf(err) != memory.CodeConflict {
			t.Errorf("a second restore meanwhile: %v", err)
		}
		fails(t, quiet(dir), StartInUse)
	})
	if err != nil || !tried {
		t.Fatalf("%v, the second one began: %v", err, tried)
	}
	if got := shardOf(t, open(t, quiet(dir))); got.StateHash != want.StateHash {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestFailedRestoreTookTheLockAway: whoever waited for the removed file, and
// whoever made a new one, both held the lock of the directory.
func TestFailedRestoreTookTheLockAway(t *testing.T) {
	log, keys, _ := backedUp(t)
	dir, damaged := t.TempDir(), keys+".damaged"
	if b, err := os.ReadFile(keys); err != nil || os.WriteFile(damaged, b[:len(b)/2], 0o600) != nil {
		t.Fatal("no damaged keys")
	}
	lock, err := lockDataDir(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(filepath.Join(dir, lockFile))
	if err = errors.Join(err, lock.unlock()); err != nil {
		t.Fatal(err)
	}
	if _, err := (Offline{Config: quiet("")}).Restore(t.Context(), dir, log, damaged, nil); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Fatalf("restored with damaged keys: %v", err)
	}
	after, err := os.Stat(filepath.Join(dir, lockFile))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the lock is another file: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	must(t, open(t, quiet(dir)), "a node begins in what is left")
}

// TestNodeOpenedWhatARestoreHadJustLeft: the mark was looked for before the lock
// was taken, so that a restore could begin and end in between.
func TestNodeOpenedWhatARestoreHadJustLeft(t *testing.T) {
	dir := t.TempDir()
	cfg := meanwhile(dir, func() {
		if err := os.WriteFile(filepath.Join(dir, restoringMark), nil, 0o600); err != nil {
			t.Error(err)
		}
	}).Config
	cfg.DataDir, cfg.HTTPAddr, cfg.NATSAddr = dir, "127.0.0.1:0", "127.0.0.1:0"
	fails(t, cfg, StartDamaged)
}

// TestRestoreIntoTheRootOfAVolume: what a file system keeps at its root was taken for
// somebody's files, and would have been removed.
func TestRestoreIntoTheRootOfAVolume(t *testing.T) {
	log, keys, want := backedUp(t)
	dir := t.TempDir()
	off := Offline{Config: quiet("")}
	kept := []string{filepath.Join(dir, "lost+found", "#12"), filepath.Join(dir, "config.yaml"), filepath.Join(dir, ".hidden")}
	left := filepath.Join(dir, "left by the one before")
	if err := errors.Join(os.Mkdir(filepath.Dir(kept[0]), 0o700), os.WriteFile(left, nil, 0o600), os.WriteFile(filepath.Join(dir, restoringMark), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range kept {
		if err := os.WriteFile(path, []byte("# "+path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keptAll := func(when string) {
		t.Helper()
		for _, path := range kept {
			if got, err := os.ReadFile(path); err != nil || string(got) != "# "+path {
				t.Errorf("%s: %s holds %q, %v", when, path, got, err)
			}
		}
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: what an interrupted restore left: %v", when, err)
		}
	}
	_, others, _ := backedUp(t)
	if _, err := off.Restore(t.Context(), dir, log, others, nil); err == nil {
		t.Fatal("restored with another node's keys")
	}
	keptAll("after a restore that failed")
	if _, err := off.Restore(t.Context(), dir, log, keys, nil); err != nil {
		t.Fatal(err)
	}
	if got := shardOf(t, open(t, quiet(dir))); got.StateHash != want.StateHash {
		t.Errorf("%+v, want %+v", got, want)
	}
	keptAll("after a restore")
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := off.Restore(t.Context(), other, log, keys, nil); memory.CodeOf(err) != memory.CodeConflict {
		t.Errorf("into somebody's folder: %v", err)
	}
}
