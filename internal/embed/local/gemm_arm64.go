package local

// pickKernels returns the kernel that every arm64 processor can run.
func pickKernels() kernelSet { return kernelSet{small: kernel4x16} }
