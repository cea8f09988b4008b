//go:build !amd64 && !arm64

package vector

// detectKernels returns what this processor can run, fastest first.
func detectKernels() []kernel { return []kernel{goKernel()} }
