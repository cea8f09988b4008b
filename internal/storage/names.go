package storage

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// namesFirst is the file system that Pebble writes on. Pebble makes a marker file
// whose name names the present manifest, and then syncs the directory once for the
// names of both. A loss of power in between may keep the marker and not the
// manifest, after which the database does not open. So the directory is synced
// before a marker is made, too.
type namesFirst struct{ vfs.FS }

const markerPrefix = "marker."

// Create implements vfs.FS.
func (f namesFirst) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), markerPrefix) {
		if err := SyncDir(f.FS, f.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return f.FS.Create(name, c)
}

// Unwrap implements vfs.FS.
func (f namesFirst) Unwrap() vfs.FS { return f.FS }
