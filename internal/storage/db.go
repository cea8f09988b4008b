package storage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// DB is one open database. Reads go to the embedded pebble.DB (Get, NewIter,
// NewSnapshot, NewBatch, NewIndexedBatch) and may run concurrently with
// everything but Close. Writes go through Commit: pebble's own Batch.Commit, Set
// and so on would pass by the checks for space and for a halted database.
type DB struct {
	*pebble.DB
	dir     string
	opt     Options
	faults  *faults
	lock    *pebble.Lock
	reserve reserve
	pace    pace

	closed    atomic.Bool
	closeOnce sync.Once
	closeErr  error
}

// Commit applies b whole or not at all; it does not close b. With sync, b and all
// before it are on disk when Commit returns, else they may be lost by a crash of
// the machine, always from the end. Errors: ErrNoSpace (nothing changed, the same
// batch may be tried again), ErrHalted, ErrReadOnly, ErrClosed.
func (d *DB) Commit(b *pebble.Batch, sync bool) error {
	err := d.write("commit", func() error {
		if err := d.reserve.check(b.Len()); err != nil {
			return err
		}
		return d.DB.Apply(b, d.writeOptions(sync))
	})
	if err == nil && sync && d.opt.Filling {
		return d.Flush()
	}
	return err
}

func (d *DB) writeOptions(sync bool) *pebble.WriteOptions {
	if sync && !d.opt.Filling {
		return pebble.Sync
	}
	return pebble.NoSync
}

// Apply is Commit under Pebble's name, so that it cannot be missed.
func (d *DB) Apply(b *pebble.Batch, o *pebble.WriteOptions) error { return d.Commit(b, o.GetSync()) }

// Sync returns when everything committed before is on disk.
func (d *DB) Sync() error {
	if d.opt.Filling {
		return d.Flush()
	}
	return d.write("sync", func() error { return d.DB.LogData(nil, pebble.Sync) })
}

// Flush writes the memtable to an sstable and waits for it. Afterwards nothing
// depends on the write-ahead log. A database that is filled gives up when the tables
// cannot be written; another one waits until they can be.
func (d *DB) Flush() error {
	return d.write("flush", func() error {
		var failed chan error
		if d.opt.Filling {
			failed = d.faults.failed
			select {
			case <-failed: // an earlier one
			default:
			}
		}
		done, err := d.DB.AsyncFlush()
		if err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-d.faults.stopped: // the flushing goroutine may be the one that ended
			return d.faults.halted.Load()
		case err := <-failed:
			return err
		}
	})
}

// Sort compacts all tables, so that no two of them overlap. An Open of a database that
// was filled begins to do that in the background, and may have to wait for it.
func (d *DB) Sort(ctx context.Context) error {
	return d.write("sort", func() error { return d.DB.Compact(ctx, []byte{0}, []byte{0xff}, true) })
}

// Checkpoint makes dir, which must not exist, a database with everything that
// was committed before the call; by hard links where the filesystem has them.
// Writers are not blocked. A failed one removes dir.
func (d *DB) Checkpoint(dir string) error {
	if d.opt.Filling {
		if err := d.Flush(); err != nil {
			return err
		}
	}
	return d.write("checkpoint "+dir+" of", func() error {
		return d.DB.Checkpoint(dir, pebble.WithFlushedWAL())
	})
}

// Fault returns the first error of background work since Open, or nil. Test it
// with IsNoSpace, IsCorrupt and errors.Is(err, ErrHalted).
func (d *DB) Fault() error { return d.faults.earliest() }

// Close waits for background work, syncs the write-ahead log, or flushes a database
// that has none, and releases the directory. All iterators, snapshots and batches must
// have been closed before.
// A halted database is abandoned instead: ErrHalted, directory still locked.
// Further calls return the first one's result.
func (d *DB) Close() error {
	d.closeOnce.Do(func() {
		var flushed error
		if d.opt.Filling {
			flushed = d.Flush()
		}
		d.closed.Store(true)
		if h := d.faults.halted.Load(); h != nil {
			d.closeErr = fmt.Errorf("close %s: %w", d.dir, h)
			return
		}
		err := d.guard(d.DB.Close)
		d.closeErr = errors.Join(flushed, typed("close", d.dir, errors.Join(err, d.lock.Close())))
	})
	return d.closeErr
}

// write runs a call into Pebble that may write.
func (d *DB) write(op string, f func() error) error {
	switch h := d.faults.halted.Load(); {
	case d.closed.Load():
		return fmt.Errorf("%s %s: %w", op, d.dir, ErrClosed)
	case d.opt.ReadOnly:
		return fmt.Errorf("%s %s: %w", op, d.dir, ErrReadOnly)
	case h != nil:
		return typed(op, d.dir, h)
	}
	return typed(op, d.dir, d.guard(f))
}

// guard turns a panic of Pebble into the error that halts the database. Pebble
// panics inside a commit with its commit lock held, so that no later write could
// succeed.
func (d *DB) guard(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *haltError:
			err = r
		default:
			err = d.faults.halt(panicError(r))
			d.opt.Logger.Error("pebble panicked", "err", err, "stack", string(debug.Stack()))
		}
	}()
	return f()
}

func panicError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return fmt.Errorf("panic: %v", r)
}
