//go:build unix

package project

import (
	"os"
	"syscall"
)

// mine reports that this process's user owns what lies at path, links not followed.
func mine(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}
