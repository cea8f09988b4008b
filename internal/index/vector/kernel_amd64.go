package vector

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// gatherAVX512 and gatherAVX2 are gatherFuncs; see kernel_amd64.s.
//
//go:noescape
func gatherAVX512(q *float32, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *float32)

//go:noescape
func gatherAVX2(q *float32, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *float32)

// detectKernels returns what this processor can run, fastest first.
func detectKernels() []kernel {
	var ks []kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		ks = append(ks, kernel{name: "avx512", gatherRows: gatherAVX512, dotBlocks: dotAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ks = append(ks, kernel{name: "avx2", gatherRows: gatherAVX2, dotBlocks: dotAVX2})
	}
	return append(ks, goKernel())
}

func dotAVX512(a, b *float32, blocks int) (sum float32) {
	row, id := unsafe.Pointer(b), uint32(0)
	gatherAVX512(a, &row, &id, 1, blocks, 0, 0, &sum)
	return sum
}

func dotAVX2(a, b *float32, blocks int) (sum float32) {
	row, id := unsafe.Pointer(b), uint32(0)
	gatherAVX2(a, &row, &id, 1, blocks, 0, 0, &sum)
	return sum
}
