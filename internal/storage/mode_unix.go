//go:build !windows

package storage

import (
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// setMode gives a file its permissions before anything is in it. A file without
// a descriptor, for example in memory, has none.
func setMode(f vfs.File, perm os.FileMode) error {
	if f.Fd() == vfs.InvalidFd {
		return nil
	}
	return syscall.Fchmod(int(f.Fd()), uint32(perm.Perm()))
}
