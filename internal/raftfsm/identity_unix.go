//go:build !windows

package raftfsm

import (
	"os"
	"syscall"
)

// sameFile tells whether two descriptions are of one file. Where the file system
// does not say, they are not: then its checksum is computed again.
func sameFile(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Dev == y.Dev && x.Ino == y.Ino && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
