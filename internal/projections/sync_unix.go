//go:build !windows

package projections

// isUnsupportedSync reports errors of syncing a directory that mean that the
// system has no such thing.
func isUnsupportedSync(error) bool { return false }
