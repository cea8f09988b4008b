//go:build !linux

package vector

import "unsafe"

// adviseHuge asks for large pages where there is a way to.
func adviseHuge(unsafe.Pointer, int) {}
