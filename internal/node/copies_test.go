package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"mneme/memory"
)

// copyStopped copies a file or a folder as a kill -9 leaves it; the admin socket,
// which cannot be copied, is replaced at a start. What goes away meanwhile is left out:
// the server removes a stream's folder in its own time.
func copyStopped(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if path != from && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		rel, rerr := filepath.Rel(from, path)
		if err = errors.Join(err, rerr); err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if !e.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o600)
	})
}

// image is a copy of a folder as a kill -9 would leave it.
func image(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := copyStopped(from, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// putBack puts a copy in place of a file or folder of a stopped node.
func putBack(t *testing.T, copied, place string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(place), copyStopped(copied, place)); err != nil {
		t.Fatal(err)
	}
}

// backUp backs a stopped node up.
func backUp(t *testing.T, dir string) (log, keys string) {
	t.Helper()
	out := t.TempDir()
	log, keys = filepath.Join(out, "log"), filepath.Join(out, "keys")
	if _, err := (Offline{Config: quiet("")}).Backup(t.Context(), dir, log, keys, nil); err != nil {
		t.Fatal(err)
	}
	return log, keys
}

// backedUp makes the two files of a backup.
func backedUp(t *testing.T) (log, keys string, want memory.ShardStatus) {
	t.Helper()
	dir, want := filled(t)
	log, keys = backUp(t, dir)
	return log, keys, want
}
