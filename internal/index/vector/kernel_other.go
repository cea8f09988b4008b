//go:build !amd64 && !arm64

package vector

import "unsafe"

// prefetch does nothing here.
func prefetch(unsafe.Pointer) {}

// detectKernels returns what this processor can run, fastest first.
func detectKernels() []kernel { return []kernel{goKernel()} }
