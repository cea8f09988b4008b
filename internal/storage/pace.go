package storage

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pace makes compactions give way to readers while it is on. A compaction by
// hand works through its range in one go; on few cores every search meanwhile
// waited for time slices of it, and the slowest took ten times as long.
type pace struct{ on atomic.Int32 }

const (
	paceWork  = 500 * time.Microsecond // a compaction works so long
	pacePause = 3                      // and then pauses so many times as long as it worked
	paceMost  = 50 * time.Millisecond  // but no longer than this
)

// compactionCategory is Pebble's name for what compactions write.
const compactionCategory = "pebble-compaction"

// begin turns the pace on until end is called.
func (p *pace) begin() (end func()) {
	p.on.Add(1)
	return func() { p.on.Add(-1) }
}

// pacedFS is a file system whose compactions keep the pace.
type pacedFS struct {
	vfs.FS
	pace *pace
}

// Create implements vfs.FS.
func (f pacedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	if err != nil || category != compactionCategory {
		return file, err
	}
	return &pacedFile{File: file, pace: f.pace, since: time.Now()}, nil
}

// Unwrap implements vfs.FS.
func (f pacedFS) Unwrap() vfs.FS { return f.FS }

// pacedFile is a table that one compaction writes.
type pacedFile struct {
	vfs.File
	pace  *pace
	since time.Time // the end of the last pause
}

// Write implements vfs.File.
func (f *pacedFile) Write(b []byte) (int, error) {
	if worked := time.Since(f.since); worked >= paceWork {
		if f.pace.on.Load() > 0 {
			time.Sleep(min(pacePause*worked, paceMost))
		}
		f.since = time.Now()
	}
	return f.File.Write(b)
}
