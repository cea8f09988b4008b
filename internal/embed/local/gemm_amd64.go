package local

import "golang.org/x/sys/cpu"

// pickKernels returns the fastest kernels of this processor.
func pickKernels() kernelSet {
	switch {
	case cpu.X86.HasAVX512F && cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return kernelSet{small: kernel4x16, large: kernel8x16}
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return kernelSet{small: kernel4x16}
	}
	return kernelSet{small: kernelGo}
}

func kernel8x16(k int, a []float32, lda int, b, c []float32, ldc int, bias []float32) {
	checkBounds(2*rowStep, k, a, lda, b, c, ldc, bias)
	multiply8x16(k, &a[0], lda, &b[0], &c[0], ldc, &bias[0])
}

// multiply8x16 needs AVX-512F, and k > 0.
//
//go:noescape
func multiply8x16(k int, a *float32, lda int, b, c *float32, ldc int, bias *float32)
