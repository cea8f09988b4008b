package main

import "golang.org/x/sys/cpu"

//go:noescape
func dotAVX(a, b *float32, n int) float32

//go:noescape
func axpyAVX(alpha float32, x, y *float32, n int)

func dot(a, b []float32) float32 {
	if !cpu.X86.HasAVX {
		return dotGo(a, b)
	}
	return dotAVX(&a[0], &b[:len(a)][0], len(a))
}

func axpy(alpha float32, x, y []float32) {
	if !cpu.X86.HasAVX {
		axpyGo(alpha, x, y)
		return
	}
	axpyAVX(alpha, &x[0], &y[:len(x)][0], len(x))
}
