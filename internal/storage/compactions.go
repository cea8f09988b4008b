package storage

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// compactions lets a database compact as much at a time as it says that it may. Pebble's own
// scheduler does the same and wakes ten times a second for as long as the database is open;
// this one does so while a compaction waits. It serves one database.
//
// Pebble's locks come before mu, so none of its calls that take them is made under mu.
type compactions struct {
	db      pebble.DBForCompaction // since Register
	ongoing sync.WaitGroup         // of what calls db

	mu      sync.Mutex
	running int
	waits   bool        // one does, or may
	looks   *time.Timer // has it run where it may, while waits
	ended   bool
}

// lookEvery is how often it looks whether a compaction that waits may run: what the database
// may do at a time grows with what there is to do.
const lookEvery = 100 * time.Millisecond

var (
	_ pebble.CompactionScheduler   = (*compactions)(nil)
	_ pebble.CompactionGrantHandle = (*compactions)(nil)
)

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.db, c.waits = db, true
	c.looks = time.AfterFunc(lookEvery, c.look)
}

// Unregister implements pebble.CompactionScheduler.
func (c *compactions) Unregister() {
	c.mu.Lock()
	c.ended = true
	c.looks.Stop()
	c.mu.Unlock()
	c.ongoing.Wait()
}

// TrySchedule implements pebble.CompactionScheduler.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.takeLocked() {
		return true, c
	}
	c.lookLaterLocked()
	return false, nil
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (c *compactions) UpdateGetAllowedWithoutPermission() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits && !c.ended {
		c.looks.Reset(0)
	}
}

// Done implements pebble.CompactionGrantHandle.
func (c *compactions) Done() {
	c.giveBack()
	c.grant()
}

// Started implements pebble.CompactionGrantHandle.
func (c *compactions) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

func (c *compactions) takeLocked() bool {
	if c.ended || c.db.GetAllowedWithoutPermission() <= c.running {
		return false
	}
	c.running++
	return true
}

func (c *compactions) giveBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}

func (c *compactions) lookLaterLocked() {
	if !c.waits && !c.ended {
		c.waits = true
		c.looks.Reset(lookEvery)
	}
}

// look has what waits run, and looks again as long as something may still wait.
func (c *compactions) look() {
	c.mu.Lock()
	c.waits = false
	c.mu.Unlock()
	c.grant()
}

// grant has compactions run that wait, as many as may.
func (c *compactions) grant() {
	for {
		c.mu.Lock()
		if c.ended {
			c.mu.Unlock()
			return
		}
		if !c.takeLocked() {
			c.lookLaterLocked()
			c.mu.Unlock()
			return
		}
		c.ongoing.Add(1)
		c.mu.Unlock()
		waits, _ := c.db.GetWaitingCompaction()
		runs := waits && c.db.Schedule(c)
		c.ongoing.Done()
		if !runs {
			c.giveBack()
			return
		}
	}
}
