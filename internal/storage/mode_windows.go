package storage

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// setMode does nothing: Windows has no such permissions.
func setMode(vfs.File, os.FileMode) error { return nil }
