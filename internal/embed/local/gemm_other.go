//go:build !amd64 && !arm64

package local

func pickKernels() kernelSet { return kernelSet{small: kernelGo} }
