package vector

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// gatherVNNI, gatherBW and gatherAVX2 are gatherFuncs; see kernel_amd64.s.
//
//go:noescape
func gatherVNNI(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)

//go:noescape
func gatherBW(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)

//go:noescape
func gatherAVX2(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)

// prefetch asks for the 128 bytes from p on, which need not be there.
//
//go:noescape
func prefetch(p unsafe.Pointer)

// detectKernels returns what this processor can run, fastest first.
func detectKernels() []kernel {
	var ks []kernel
	x := &cpu.X86
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VNNI {
		ks = append(ks, kernel{name: "avx512vnni", gatherRows: gatherVNNI})
	}
	if x.HasAVX512F && x.HasAVX512BW {
		ks = append(ks, kernel{name: "avx512bw", gatherRows: gatherBW})
	}
	if x.HasAVX2 {
		ks = append(ks, kernel{name: "avx2", gatherRows: gatherAVX2})
	}
	return append(ks, goKernel())
}
