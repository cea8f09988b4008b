package vector

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// gatherSDOT is a gatherFunc; see kernel_arm64.s.
//
//go:noescape
func gatherSDOT(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)

// prefetch asks for the 128 bytes from p on, which need not be there.
//
//go:noescape
func prefetch(p unsafe.Pointer)

// detectKernels returns what this processor can run, fastest first.
func detectKernels() []kernel {
	if cpu.ARM64.HasASIMDDP {
		return []kernel{{name: "neon", gatherRows: gatherSDOT}, goKernel()}
	}
	return []kernel{goKernel()}
}
