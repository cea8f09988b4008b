package keyring

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// FS is the file system as the keyring uses it: each method is one step that
// may fail, or be the last one before a crash. Errors for a missing file match
// fs.ErrNotExist.
type FS interface {
	// MkdirAll makes dir (0700) and its parents.
	MkdirAll(dir string) error
	ReadFile(name string) ([]byte, error)
	// WriteSync creates or truncates name (0600), writes data and syncs it.
	WriteSync(name string, data []byte) error
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes renames and removals in dir durable.
	SyncDir(dir string) error
}

// OSFS is the operating system's file system.
type OSFS struct{}

// MkdirAll implements FS.
func (OSFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

// ReadFile implements FS.
func (OSFS) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// WriteSync implements FS.
func (OSFS) WriteSync(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Rename implements FS.
func (OSFS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OSFS) Remove(name string) error { return os.Remove(name) }

// SyncDir implements FS. Windows has no such call; there it does nothing.
func (OSFS) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// tempSuffix marks files on their way. The name is fixed, so that a crash
// leaves at most one behind and the next start knows which.
const tempSuffix = ".tmp"

// replace puts data at dir/name in one step: write, fsync, rename, fsync dir.
func replace(fsys FS, dir, path string, data []byte) error {
	temp := path + tempSuffix
	if err := fsys.WriteSync(temp, data); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", temp, err), removeIfThere(fsys, temp))
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("rename to %s: %w", path, err), removeIfThere(fsys, temp))
	}
	if err := fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

func removeIfThere(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
