//go:build unix

package eventlog

import "syscall"

// openFiles is how many files the process may open, 0 if it is not known.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) // signed on some systems
}
