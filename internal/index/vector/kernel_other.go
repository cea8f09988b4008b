//go:build !amd64

package vector

// detectKernels returns what this processor can run, fastest first.
func detectKernels() []kernel { return []kernel{goKernel()} }
