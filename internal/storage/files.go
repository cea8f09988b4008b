package storage

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The functions of this file are how Mneme writes small files. Each takes the
// file system to write on; nil is the operating system's. Permissions count only
// where that file system has them.

// ReplaceFile puts data in place of a file, or makes it. After a crash at any
// moment the file is whole, old or new; once ReplaceFile has returned it is the
// new one. An error of the last step, the sync of the directory, leaves open which
// of the two a crash would leave.
func ReplaceFile(fsys vfs.FS, path string, data []byte, perm os.FileMode) error {
	return ReplaceWith(fsys, path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// ReplaceWith is ReplaceFile for what is written piece by piece. If write fails,
// the file stays as it was.
func ReplaceWith(fsys vfs.FS, path string, perm os.FileMode, write func(io.Writer) error) error {
	fsys = orDefault(fsys)
	tmp, err := writeBeside(fsys, path, perm, write)
	if err == nil {
		if err = fsys.Rename(tmp, path); err != nil {
			err = errors.Join(err, fsys.Remove(tmp))
		}
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return SyncDir(fsys, fsys.PathDir(path))
}

// CreateFile makes a file that must not be there yet, as durably as ReplaceFile.
// Of several that create the same file one succeeds; the others get fs.ErrExist.
func CreateFile(fsys vfs.FS, path string, data []byte, perm os.FileMode) error {
	fsys = orDefault(fsys)
	tmp, err := writeBeside(fsys, path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err == nil {
		err = errors.Join(fsys.Link(tmp, path), fsys.Remove(tmp))
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return SyncDir(fsys, fsys.PathDir(path))
}

// writeBeside writes and syncs a new file in the directory of path. The name is
// random, so that two writers never share a file.
func writeBeside(fsys vfs.FS, path string, perm os.FileMode, write func(io.Writer) error) (tmp string, err error) {
	tmp = fsys.PathJoin(fsys.PathDir(path), "."+fsys.PathBase(path)+".tmp-"+rand.Text()[:8])
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", err
	}
	if err = setMode(f, perm); err == nil {
		err = write(ownBytes{f})
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, fsys.Remove(tmp))
	}
	return tmp, nil
}

// Sweep removes what a crash left in dir of files that were being replaced. Nobody
// may be replacing one there. A directory that is not there has none.
func Sweep(fsys vfs.FS, dir string) error {
	fsys = orDefault(fsys)
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if IsLeftover(name) {
			err = errors.Join(err, fsys.Remove(fsys.PathJoin(dir, name)))
		}
	}
	if err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	return nil
}

// IsLeftover reports whether a file's name is one that it has while it is being written.
func IsLeftover(name string) bool {
	return strings.HasPrefix(name, ".") && strings.Contains(name, ".tmp-")
}

// ownBytes writes a copy: a vfs.File may change the bytes that it is given.
type ownBytes struct{ f vfs.File }

func (w ownBytes) Write(p []byte) (int, error) { return w.f.Write(bytes.Clone(p)) }

// ReadFile reads a file whole.
func ReadFile(fsys vfs.FS, path string) (data []byte, err error) {
	f, err := orDefault(fsys).Open(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil { // else it grows as it is read
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	if _, err = b.ReadFrom(f); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return b.Bytes(), nil
}

// MkdirAll makes a directory and what is missing above it, so that a crash
// afterwards keeps them.
func MkdirAll(fsys vfs.FS, dir string, perm os.FileMode) error {
	fsys = orDefault(fsys)
	var parents []string // of the directories that are missing
	for d := dir; ; d = fsys.PathDir(d) {
		_, err := fsys.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make %s: %w", dir, err)
		}
		if fsys.PathDir(d) == d {
			break
		}
		parents = append(parents, fsys.PathDir(d))
	}
	if err := fsys.MkdirAll(dir, perm); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	for _, p := range parents {
		if err := SyncDir(fsys, p); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes new names, renames and removals in dir durable. Where directories
// cannot be synced, the operating system does so by itself.
func SyncDir(fsys vfs.FS, dir string) error {
	d, err := orDefault(fsys).OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

func orDefault(fsys vfs.FS) vfs.FS {
	if fsys == nil {
		return vfs.Default
	}
	return fsys
}
