package hooks

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Every file that hooks change is changed here. They use the system's files, and not those of
// package storage: that brings the database along, and a hook has to start at once.

const maxLog = 256 << 10 // bytes of the log, before it is begun anew

func makeDir(path string) error { return os.MkdirAll(path, 0o700) }

func ownOnly(path string) error { return os.Chmod(path, 0o600) }

func remove(path string) error { return os.Remove(path) }

// writeFile puts a file in place whole. A durable one is there after a power failure, too.
func writeFile(path string, b []byte, durable bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
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
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	_ = folder.Sync() // systems that cannot make renames durable themselves
	return folder.Close()
}

const tempPrefix = ".new-"

// AppendLog adds a line to the log in a folder. It is best effort: there is nowhere else to
// say that it failed.
func AppendLog(dir, line string, now time.Time) {
	if makeDir(dir) != nil {
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
