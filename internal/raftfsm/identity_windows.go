package raftfsm

import "os"

// sameFile tells whether two descriptions are of one file. They do not say so
// here, and a checksum is computed again.
func sameFile(_, _ os.FileInfo) bool { return false }
