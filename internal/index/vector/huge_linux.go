package vector

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for large pages: rows lie scattered over a set, and the walks
// of page tables cost as much as the rows themselves. It is only advice.
func adviseHuge(p unsafe.Pointer, n int) {
	const page = 4096
	start := (uintptr(p) + page - 1) &^ (page - 1)
	end := (uintptr(p) + uintptr(n)) &^ (page - 1)
	if start < end {
		off := start - uintptr(p)
		_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(p, off)), end-start), unix.MADV_HUGEPAGE)
	}
}
