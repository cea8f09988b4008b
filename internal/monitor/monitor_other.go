//go:build !linux

package monitor

// Yield does nothing here.
func Yield() error { return nil }
