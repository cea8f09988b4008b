package storage

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// waitingDB is a database with compactions that wait.
type waitingDB struct {
	t *testing.T
	s *compactions

	allowed atomic.Int64
	mu      sync.Mutex // taken by all calls of Pebble's but the one for allowed
	waiting int
	running int
	asked   int
	begins  chan struct{} // nil or what a compaction that waits begins after
}

func (d *waitingDB) GetAllowedWithoutPermission() int { return int(d.allowed.Load()) }

func (d *waitingDB) GetWaitingCompaction() (bool, pebble.WaitingCompaction) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	return d.waiting > 0, pebble.WaitingCompaction{}
}

func (d *waitingDB) Schedule(pebble.CompactionGrantHandle) bool {
	if d.begins != nil {
		<-d.begins
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == 0 {
		return false
	}
	d.waiting--
	d.runs()
	return true
}

// wants asks for a compaction as Pebble does.
func (d *waitingDB) wants() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ok, _ := d.s.TrySchedule(); !ok {
		d.waiting++
		return
	}
	d.runs()
}

func (d *waitingDB) runs() {
	if d.running++; d.running > d.GetAllowedWithoutPermission() {
		d.t.Errorf("%d compactions run, %d may", d.running, d.GetAllowedWithoutPermission())
	}
}

func (d *waitingDB) ends() {
	d.mu.Lock()
	d.running--
	d.mu.Unlock()
	d.s.Done()
}

// may changes how many may run.
func (d *waitingDB) may(n int) { d.allowed.Store(int64(n)) }

// Each open database woke the process ten times a second, whether or not it had anything to do.
func TestDatabaseWithoutCompactionsDoesNotWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &waitingDB{t: t, s: &compactions{}}
		d.may(1)
		d.s.Register(2, d)
		d.wants()
		d.ends()
		time.Sleep(time.Hour)
		d.s.Unregister()
		if d.asked > 3 {
			t.Errorf("it was asked %d times what waits", d.asked)
		}
	})
}

// What waits runs once it may, also where only the database knows that it may by now, and
// nothing runs that may not.
func TestCompactionsThatWaitRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &waitingDB{t: t, s: &compactions{}}
		d.may(1)
		d.s.Register(2, d)
		time.Sleep(time.Minute)
		synctest.Wait()
		for range 6 {
			d.wants()
		}
		expect := func(running, waiting int) {
			t.Helper()
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.running != running || d.waiting != waiting {
				t.Fatalf("%d run and %d wait, want %d and %d", d.running, d.waiting, running, waiting)
			}
		}
		expect(1, 5)
		d.may(2)
		time.Sleep(lookEvery)
		expect(2, 4)
		d.ends() // which has the next one run
		expect(2, 3)
		d.may(3)
		time.Sleep(lookEvery)
		expect(3, 2)
		d.may(5)
		d.s.UpdateGetAllowedWithoutPermission()
		expect(5, 0)
		d.may(1)
		d.wants()
		for range 4 {
			d.ends()
		}
		time.Sleep(time.Minute)
		expect(1, 1)
		d.ends()
		expect(1, 0)
		d.s.Unregister()
		d.may(9)
		d.wants()
		d.s.UpdateGetAllowedWithoutPermission()
		d.ends()
		time.Sleep(time.Minute)
		expect(0, 1)
	})
}

// A database that closes waits for what is begun in it, and is asked nothing afterwards.
func TestEndWaitsForACompactionThatBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &waitingDB{t: t, s: &compactions{}, waiting: 1, begins: make(chan struct{})}
		d.may(1)
		d.s.Register(2, d)
		time.Sleep(lookEvery)
		synctest.Wait()
		var ended atomic.Bool
		go func() {
			d.s.Unregister()
			ended.Store(true)
		}()
		synctest.Wait()
		if ended.Load() {
			t.Error("it has ended, and a compaction begins")
		}
		close(d.begins)
		synctest.Wait()
		if !ended.Load() || d.running != 1 || d.asked != 1 {
			t.Errorf("ended: %t; %d compactions run, asked %d times", ended.Load(), d.running, d.asked)
		}
	})
}
