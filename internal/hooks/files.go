package hooks

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Every file that hooks change is changed here. They use the system's files, and not those of
// package storage: that brings the database along, and a hook has to start at once.

const maxLog = 256 << 10 // bytes of the log, before it is begun anew

// files is what of the system's files a promise depends on, so that tests can cut the power.
type files interface {
	makeDirs(path string) error
	createTemp(dir string) (file, error)
	rename(from, to string) error
	remove(path string) error
	sync(path string) error
	syncDir(path string) error
	names(dir string) ([]string, error) // in any order
}

type file interface {
	io.WriteCloser
	Sync() error
	Name() string
}

type systemFiles struct{}

func (systemFiles) makeDirs(path string) error { return os.MkdirAll(path, 0o700) }

func (systemFiles) createTemp(dir string) (file, error) { return os.CreateTemp(dir, tempPrefix+"*") } // 0600

func (systemFiles) rename(from, to string) error { return os.Rename(from, to) }

func (systemFiles) remove(path string) error { return os.Remove(path) }

// names lists a folder. Of many files anything but their names takes longer.
func (systemFiles) names(path string) ([]string, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(-1)
	if closed := folder.Close(); err == nil {
		err = closed
	}
	return names, err
}

// sync makes a file durable, but not its name.
func (systemFiles) sync(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs what may be written
	if err != nil {
		return err
	}
	err = f.Sync()
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// syncDir makes renames durable. Systems that cannot sync a directory do so themselves.
func (systemFiles) syncDir(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = folder.Sync()
	return folder.Close()
}

func ownOnly(path string) error { return os.Chmod(path, 0o600) }

const tempPrefix = ".new-"

// writeFile puts a file in place whole. A durable one is there after a power failure, too.
func writeFile(fs files, path string, b []byte, durable bool) (err error) {
	f, err := fs.createTemp(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = fs.remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err == nil && durable {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := fs.rename(f.Name(), path); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	return fs.syncDir(filepath.Dir(path))
}

// makeDir makes a folder and those above it, durably.
func makeDir(fs files, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	above := filepath.Dir(path)
	if above != path {
		if err := makeDir(fs, above); err != nil {
			return err
		}
	}
	if err := fs.makeDirs(path); err != nil {
		return err
	}
	return fs.syncDir(above)
}

// AppendLog adds a line to the log in a folder. It is best effort: there is nowhere else to
// say that it failed.
func AppendLog(dir, line string, now time.Time) {
	if makeDir(systemFiles{}, dir) != nil {
		return
	}
	path := filepath.Join(dir, "log")
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		_ = os.Rename(path, path+".1")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%s %s\n", now.UTC().Format(time.RFC3339), line)
	_ = f.Close()
}
