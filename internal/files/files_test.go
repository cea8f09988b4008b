package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// holds checks a file, and that nothing else lies beside it.
func holds(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode && runtime.GOOS != "windows" {
		t.Errorf("%v, %v, want %v", info.Mode(), err, mode)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("%v lie there, %v", all, err)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	bad := errors.New("half a file")
	fails := func(f *os.File) error {
		_, _ = f.WriteString("half")
		return bad
	}
	if err := Replace(path, 0o600, fails); !errors.Is(err, bad) {
		t.Error(err)
	}
	if err := Replace(path, 0o600, Bytes([]byte("old"))); err != nil {
		t.Error(err)
	}
	if err := Replace(path, 0o600, fails); !errors.Is(err, bad) {
		t.Error(err)
	}
	holds(t, path, "old", 0o600)
	if err := Replace(path, 0o644, Bytes([]byte("new"))); err != nil {
		t.Error(err)
	}
	holds(t, path, "new", 0o644)
	if err := Replace(filepath.Join(path, "below"), 0o600, Bytes(nil)); err == nil {
		t.Error("a file was made below a file")
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var made, there atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch err := Create(path, 0o600, Bytes([]byte("one"))); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, fs.ErrExist):
				there.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 || there.Load() != 7 {
		t.Errorf("%d made it, %d found it there", made.Load(), there.Load())
	}
	holds(t, path, "one", 0o600)
}

func TestMkdirAll(t *testing.T) {
	top := t.TempDir()
	for range 2 {
		if err := MkdirAll(filepath.Join(top, "a", "b", "c"), 0o700); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(filepath.Join(top, "a", "b", "c")); err != nil || !info.IsDir() {
		t.Error(err)
	}
	if err := Replace(filepath.Join(top, "file"), 0o600, Bytes(nil)); err != nil {
		t.Error(err)
	}
	if err := MkdirAll(filepath.Join(top, "file", "x"), 0o700); err == nil {
		t.Error("a folder was made below a file")
	}
}
