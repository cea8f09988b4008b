package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ReplaceFile puts data in place of a file: written beside it, synced, renamed,
// and the directory synced. After a crash the file is whole, old or new.
func ReplaceFile(path string, data []byte, perm os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes renames and removals in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	err = d.Sync()
	if err != nil && syncOptional {
		err = nil
	}
	return errors.Join(err, d.Close())
}
