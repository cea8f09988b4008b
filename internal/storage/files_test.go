package storage

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func mustRead(t testing.TB, fs vfs.FS, name, want string) {
	t.Helper()
	got, err := ReadFile(fs, name)
	if err != nil || string(got) != want {
		t.Fatalf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

func mustHold(t testing.TB, dir string, want int) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != want {
		t.Fatalf("%d entries wanted: %v, %v", want, left, err)
	}
}

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, want := range []string{"one", "another, longer one", ""} {
		if err := ReplaceFile(nil, name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		mustRead(t, nil, name, want)
	}
	st, err := os.Stat(name)
	if err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", st.Mode(), err)
	}
	mustHold(t, dir, 1)
	if err := ReplaceFile(nil, filepath.Join(name, "below a file"), nil, 0o600); err == nil {
		t.Fatal("a file below a file was written")
	}
	// A target that cannot be replaced leaves nothing behind.
	if err := os.MkdirAll(filepath.Join(dir, "full", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(nil, filepath.Join(dir, "full"), []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced")
	}
	mustHold(t, dir, 2)
}

func TestReplaceLeavesTheOldFileWhenWritingFails(t *testing.T) {
	dir := t.TempDir()
	name, bad := filepath.Join(dir, "file"), errors.New("bad")
	if err := ReplaceFile(nil, name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := ReplaceWith(nil, name, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "half")
		return errors.Join(err, bad)
	})
	if !errors.Is(err, bad) {
		t.Fatal(err)
	}
	mustRead(t, nil, name, "old")
	mustHold(t, dir, 1)
}

func TestCreateFileNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	var wg sync.WaitGroup
	won := make(chan string, 8)
	for i := range 8 {
		wg.Go(func() {
			err := CreateFile(nil, name, fmt.Append(nil, i), 0o600)
			if err == nil {
				won <- fmt.Sprint(i)
			} else if !errors.Is(err, iofs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("%d creators of one file", len(won))
	}
	mustRead(t, nil, name, <-won)
	mustHold(t, dir, 1)
}

func TestFilesInDirectoriesThatAreNot(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := ReplaceFile(nil, name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(name, "a", "b")
	for what, err := range map[string]error{"make": MkdirAll(nil, below, 0o700), "sync": SyncDir(nil, below), "create": CreateFile(nil, below, nil, 0o600)} {
		if err == nil {
			t.Errorf("%s below a file succeeded", what)
		}
	}
	if _, err := ReadFile(nil, below); err == nil {
		t.Error("read below a file succeeded")
	}
}

// crashes takes a copy of a file system as a crash would leave it before each of
// its operations, and fails the operation number failAt.
type crashes struct {
	mem    *vfs.MemFS
	rng    *rand.Rand
	keep   int // percent of what was not synced
	clones []*vfs.MemFS
	ops    int
	failAt int
}

func (c *crashes) MaybeError(errorfs.Op) error {
	c.clones = append(c.clones, c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng}))
	c.ops++
	if c.ops == c.failAt {
		return errorfs.ErrInjected
	}
	return nil
}

func (c *crashes) String() string { return "crashes" }

// content returns what a file holds, or "" and false if there is none.
func content(t testing.TB, fs vfs.FS, name string) (string, bool) {
	t.Helper()
	b, err := ReadFile(fs, name)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", false
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b), true
}

// A crash before any operation of a replacement leaves the old or the new file,
// whole; one afterwards leaves the new file. The contents span several blocks, of
// which a crash keeps any.
func TestCrashWhileReplacing(t *testing.T) {
	was, want := strings.Repeat("old ", 5000), strings.Repeat("new, longer ", 5000)
	old, new := 0, 0
	for seed := range uint64(60) {
		mem := vfs.NewCrashableMem()
		if err := errors.Join(MkdirAll(mem, "a/b", 0o700), ReplaceFile(mem, "a/b/file", []byte(was), 0o600)); err != nil {
			t.Fatal(err)
		}
		c := &crashes{mem: mem, rng: rand.New(rand.NewPCG(seed, 3)), keep: []int{0, 50, 90}[seed%3]}
		if err := ReplaceFile(errorfs.Wrap(mem, c), "a/b/file", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, fs := range c.clones {
			switch got, _ := content(t, fs, "a/b/file"); got {
			case was:
				old++
			case want:
				new++
			default:
				t.Fatalf("seed %d, operation %d: the file is neither old nor new: %d bytes", seed, i, len(got))
			}
		}
		mustRead(t, mem.CrashClone(vfs.CrashCloneCfg{}), "a/b/file", want)
	}
	if old == 0 || new == 0 {
		t.Errorf("the crashes left %d old and %d new files: they did not bite", old, new)
	}
}

// The same of a new file, which is whole or not there.
func TestCrashWhileCreating(t *testing.T) {
	want := strings.Repeat("token ", 5000)
	absent := 0
	for seed := range uint64(60) {
		mem := vfs.NewCrashableMem()
		c := &crashes{mem: mem, rng: rand.New(rand.NewPCG(seed, 4)), keep: []int{0, 50, 90}[seed%3]}
		if err := CreateFile(errorfs.Wrap(mem, c), "file", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, fs := range c.clones {
			got, there := content(t, fs, "file")
			if !there {
				absent++
			} else if got != want {
				t.Fatalf("seed %d, operation %d: %d bytes", seed, i, len(got))
			}
		}
		mustRead(t, mem.CrashClone(vfs.CrashCloneCfg{}), "file", want)
	}
	if absent == 0 {
		t.Error("the crashes did not bite")
	}
}

// Whatever operation fails, the error is told, and the file is old or new.
func TestFaultWhileReplacing(t *testing.T) {
	for n := 1; ; n++ {
		mem := vfs.NewCrashableMem()
		if err := ReplaceFile(mem, "file", []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &crashes{mem: mem, failAt: n}
		err := ReplaceFile(errorfs.Wrap(mem, c), "file", []byte("new"), 0o600)
		if c.ops < n {
			if n < 6 {
				t.Fatalf("only %d operations failed", n-1)
			}
			return
		}
		if !errors.Is(err, errorfs.ErrInjected) {
			t.Fatalf("operation %d: %v", n, err)
		}
		for _, fs := range append(c.clones, mem) {
			if got, _ := content(t, fs, "file"); got != "old" && got != "new" {
				t.Fatalf("operation %d: %q", n, got)
			}
		}
	}
}

// A directory and all that had to be made above it survive a crash; so does a
// database that was opened below directories that were missing.
func TestCrashAfterMakingDirectories(t *testing.T) {
	mem := vfs.NewCrashableMem()
	opt := testOptions(mem)
	opt.Dir = "a/b/db"
	d := mustOpen(t, opt)
	if err := set(d, "k", "v", true); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(mem, "c/d/e", 0o700); err != nil {
		t.Fatal(err)
	}
	opt.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, d)
	if _, err := opt.FS.Stat("c/d/e"); err != nil {
		t.Error(err)
	}
	opt.ReadOnly = true // it must be there, not made anew
	d = mustOpen(t, opt)
	defer mustClose(t, d)
	if get(t, d, "k") != "v" {
		t.Error("a synced row is lost")
	}
}
