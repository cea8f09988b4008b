package local

import "golang.org/x/sys/cpu"

// pickKernels returns the fastest kernels of this processor.
func pickKernels() kernelSet {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return kernelSet{small: kernelAVX2, large: kernelAVX512}
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return kernelSet{small: kernelAVX2}
	}
	return kernelSet{small: kernelGo}
}

func kernelAVX2(k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	checkBounds(rowStep, k, a, lda, b, c, ldc, bias)
	if k > 0 {
		multiply4x16(k, &a[0], lda, &b[0], &c[0], ldc, &bias[0])
	}
}

func kernelAVX512(k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	checkBounds(2*rowStep, k, a, lda, b, c, ldc, bias)
	if k > 0 {
		multiply8x16(k, &a[0], lda, &b[0], &c[0], ldc, &bias[0])
	}
}

// checkBounds panics where the assembly would leave the slices.
func checkBounds(rows, k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	_ = a[(rows-1)*lda+k-1]
	_ = b[k*panel-1]
	_ = c[(rows-1)*ldc+panel-1]
	_ = bias[panel-1]
}

// multiply4x16 needs AVX2 and FMA, and k > 0.
//
//go:noescape
func multiply4x16(k int, a *float32, lda int, b, c *float32, ldc int, bias *float32)

// multiply8x16 needs AVX-512F, and k > 0.
//
//go:noescape
func multiply8x16(k int, a *float32, lda int, b, c *float32, ldc int, bias *float32)
