package static

import "golang.org/x/sys/cpu"

// addAVX2 is addGo for processors with AVX2; see add_amd64.s.
//
//go:noescape
func addAVX2(sums *[semantic]int64, vector *[semantic]byte, scale int64)

var hasAVX2 = cpu.X86.HasAVX2

// addScaled adds scale times a vector of signed bytes. scale has 16 bits.
func addScaled(sums *[semantic]int64, vector *[semantic]byte, scale int64) {
	if hasAVX2 {
		addAVX2(sums, vector, scale)
		return
	}
	addGo(sums, vector, scale)
}
