package keyring

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkModes refuses keys that others than their owner may read or replace. Windows
// has no such modes, and neither have the file systems of tests.
func checkModes(opt *Options) error {
	if opt.FS != vfs.Default || runtime.GOOS == "windows" {
		return nil
	}
	if err := checkMode(opt.FS, opt.keys(), ^fs.FileMode(0o022)); err != nil {
		return err
	}
	for _, name := range []string{masterName, secretFormat.name, ringFormat.name, storageFormat.name} {
		for _, suffix := range []string{"", copySuffix} {
			if err := checkMode(opt.FS, filepath.Join(opt.keys(), name+suffix), keyMode); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkMode(fsys vfs.FS, path string, allowed fs.FileMode) error {
	st, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if mode := st.Mode().Perm(); mode&^allowed != 0 {
		return fmt.Errorf("%w: %s has mode %#o", ErrMode, path, mode)
	}
	return nil
}
