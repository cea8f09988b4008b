//go:build !windows

package storage

// syncOptional says that directories cannot be synced here.
const syncOptional = false
