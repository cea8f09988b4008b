package storage

import (
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// askEvery is how many committed bytes may pass before the disk is asked again.
const askEvery = 1 << 20

// reserve refuses writes before the disk is full. A full disk would stop not
// only the write but also the flushes and manifest edits under way, which Pebble
// treats as fatal.
type reserve struct {
	fs   vfs.FS
	dir  string
	keep int64

	mu    sync.Mutex
	asked bool
	since int  // bytes since the disk was asked
	short bool // the last answer; asked again on each write until it is better
}

// check accounts n bytes and returns ErrNoSpace if too little is left.
func (r *reserve) check(n int) error {
	if r.keep < 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since += n
	if r.asked && !r.short && r.since < askEvery {
		return nil
	}
	u, err := r.fs.GetDiskUsage(r.dir)
	if err != nil { // unknown is not full; in-memory filesystems do not say
		r.asked, r.since, r.short = true, 0, false
		return nil
	}
	r.asked, r.since = true, 0
	r.short = u.AvailBytes < uint64(r.keep)
	if r.short {
		return fmt.Errorf("%w: %d bytes free, %d kept in reserve", ErrNoSpace, u.AvailBytes, r.keep)
	}
	return nil
}

// Metrics is a summary for /metrics and doctor. Bytes unless named otherwise.
type Metrics struct {
	DiskBytes       uint64 // sstables, write-ahead logs, manifests
	WALBytes        uint64 // live write-ahead log
	MemTableBytes   uint64
	CacheBytes      int64
	CacheHits       int64
	CacheMisses     int64
	L0Files         int64
	ReadAmp         int    // sstables a point read may visit
	CompactionDebt  uint64 // estimate
	Compactions     int64
	Flushes         int64
	WriteStalls     uint64        // times that writes waited for flushes or compactions
	WriteStalled    time.Duration // for how long they did, up to now
	BackgroundFault uint64        // errors of background work
	Halted          bool
}

// Metrics returns the numbers of now. It must not run after Close.
func (d *DB) Metrics() Metrics {
	m := d.DB.Metrics()
	stalls, stalled := d.faults.stalls.sum()
	return Metrics{
		DiskBytes:       m.DiskSpaceUsage(),
		WALBytes:        m.WAL.Size,
		MemTableBytes:   m.MemTable.Size,
		CacheBytes:      m.BlockCache.Size,
		CacheHits:       m.BlockCache.Hits,
		CacheMisses:     m.BlockCache.Misses,
		L0Files:         m.Levels[0].TablesCount,
		ReadAmp:         m.ReadAmp(),
		CompactionDebt:  m.Compact.EstimatedDebt,
		Compactions:     m.Compact.Count,
		Flushes:         m.Flush.Count,
		WriteStalls:     stalls,
		WriteStalled:    stalled,
		BackgroundFault: d.faults.count.Load(),
		Halted:          d.faults.halted.Load() != nil,
	}
}

var _ pebble.Reader = (*DB)(nil)
