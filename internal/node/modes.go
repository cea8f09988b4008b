package node

import (
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/memory"
)

// secureDir refuses a data directory that others may write to: who can replace what
// is in it has the node do as they like, whatever the modes of the files are. An
// empty one is the node's to make fit. What is not there yet is made with mode 0700.
func secureDir(fsys vfs.FS, path string) error {
	if fsys != vfs.Default || !openToOthers(path) {
		return nil
	}
	if names, err := os.ReadDir(path); err == nil && len(names) == 0 && os.Chmod(path, 0o700) == nil {
		return nil
	}
	return usage(othersMayWrite(path), chmodHint(path)+"; if somebody else may have changed files in it, memctl restore brings a backup back into a new directory")
}

// openToOthers reports whether others than its owner may write to a folder.
func openToOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && filePermissions && info.Mode().Perm()&0o022 != 0
}

func othersMayWrite(path string) string {
	return fmt.Sprintf("others may write to the data directory %s", path)
}

func chmodHint(path string) string { return "chmod 700 " + path }

// checkDir tells doctor when the data directory was opened to others.
func (d *doctor) checkDir() memory.Check {
	path := d.n.dir.path
	return check("data directory", !openToOthers(path), path, othersMayWrite(path), chmodHint(path))
}
