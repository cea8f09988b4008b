// Package files writes small files of the system: whole or not at all, and so that what has
// returned survives the loss of power.
//
// Invariant: it needs the standard library only, for memctl starts in an instant.
//
// Not its job: files on which tests cut the power (internal/storage), which lie on the file
// system that their owner was given.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Replace puts what write writes in the place of a file, or makes it. If write fails, the file
// stays as it was.
func Replace(path string, mode fs.FileMode, write func(*os.File) error) error {
	tmp, err := beside(path, mode, write)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}

// Bytes is for Replace and Create.
func Bytes(b []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(b)
		return err
	}
}

// Create makes a file that must not be there yet. Of several that create the same file one
// succeeds; the others get fs.ErrExist.
func Create(path string, mode fs.FileMode, write func(*os.File) error) error {
	tmp, err := beside(path, mode, write)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Link(tmp, path), os.Remove(tmp)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// besideMark is in the names of files that are not whole yet.
const besideMark = ".tmp-mneme-"

// Sweep removes what calls of Replace and Create for a path left that were killed. Nobody may
// be writing it meanwhile.
func Sweep(path string) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+filepath.Base(path)+besideMark) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // else the next one does
		}
	}
}

// beside writes and syncs a new file in the folder of path.
func beside(path string, mode fs.FileMode, write func(*os.File) error) (tmp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+besideMark+"*")
	if err != nil {
		var named *fs.PathError
		if errors.As(err, &named) { // a file that was never there helps nobody to look
			err = &fs.PathError{Op: "write in", Path: filepath.Dir(path), Err: named.Err}
		}
		return "", err
	}
	if err = f.Chmod(mode); err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// MkdirAll makes a folder and what is missing above it.
func MkdirAll(dir string, mode fs.FileMode) error {
	var parents []string // of the folders that are missing
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		_, err := os.Stat(d)
		if err == nil || filepath.Dir(d) == d {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parents = append(parents, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	for _, p := range parents {
		if err := syncDir(p); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes names in a folder durable. Systems that cannot sync one do so by themselves.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	_ = d.Sync()
	return d.Close()
}
