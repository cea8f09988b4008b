//go:build !windows

package node

import (
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// movedAt is when something was given its name, which is later than it was written to.
func movedAt(path string, info fs.FileInfo) time.Time {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil { // of a file system that is not the machine's
		return info.ModTime()
	}
	if changed := time.Unix(st.Ctim.Unix()); changed.After(info.ModTime()) {
		return changed
	}
	return info.ModTime()
}
