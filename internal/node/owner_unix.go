//go:build !windows

package node

import (
	"io/fs"
	"syscall"
)

// ownerOf gives whom a file belongs to.
func ownerOf(info fs.FileInfo) (uid, gid int) {
	s := info.Sys().(*syscall.Stat_t)
	return int(s.Uid), int(s.Gid)
}
