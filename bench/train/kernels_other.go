//go:build !amd64

package main

func dot(a, b []float32) float32 { return dotGo(a, b) }

func axpy(alpha float32, x, y []float32) { axpyGo(alpha, x, y) }
