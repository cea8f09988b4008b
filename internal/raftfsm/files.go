package raftfsm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// replaceFile puts data under path so that a crash leaves the old or the new
// file: write beside, fsync, rename, fsync the folder.
func replaceFile(path string, data []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes renames and new names in dir durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // folders cannot be synced there
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// moveAside renames path to path.damaged-N with the first N that is free.
func moveAside(path string) (string, error) {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.damaged-%d", path, n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, to); err != nil {
				return "", err
			}
			return to, syncDir(filepath.Dir(path))
		} else if err != nil {
			return "", err
		}
	}
}
