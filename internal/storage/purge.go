package storage

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// purgeWait is how long PurgeDeleted waits for a reader that keeps deleted rows.
const purgeWait = 100 * time.Millisecond

// PurgeDeleted returns when no table holds a row that was deleted before the
// call. Rows that were deleted stay in the tables below until a compaction
// carries the deletion down to them; the deletion itself stays until then, so a
// database whose tables hold no deletion holds no deleted row. Only tables with
// deletions, and what lies below them, are rewritten, and of those only rows from
// key from (inclusive) to key to (exclusive).
//
// A row that was overwritten leaves no deletion. The ranges of rewrite hold such
// rows: every table that has some of them is rewritten.
//
// A snapshot that was opened before the rows were deleted keeps them, and
// PurgeDeleted waits for it. Writes and reads go on meanwhile, and compactions give
// way to them.
func (d *DB) PurgeDeleted(ctx context.Context, from, to []byte, rewrite ...pebble.KeyRange) error {
	defer d.pace.begin()()
	if err := d.mark(rewrite); err != nil {
		return err
	}
	var horizon pebble.SeqNum
	for first := true; ; first = false {
		left, last, err := d.deletions(horizon, from, to)
		if err != nil {
			return err
		}
		if first {
			horizon = last
		}
		if len(left) == 0 {
			return nil
		}
		if !first {
			if err := d.mark(left); err != nil {
				return err
			}
		}
		for _, r := range left {
			err := d.write("purge", func() error { return d.DB.Compact(ctx, r.Start, r.End, false) })
			if err != nil {
				return err
			}
		}
		if first {
			continue
		}
		select {
		case <-time.After(purgeWait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mark flushes a deletion of range keys, which nobody writes, over each range. A
// compaction by hand does not touch a table of the lowest level by itself; where
// this lies above it, it does.
func (d *DB) mark(ranges []pebble.KeyRange) error {
	for _, r := range ranges {
		err := d.write("purge", func() error { return d.DB.RangeKeyDelete(r.Start, r.End, pebble.NoSync) })
		if err != nil {
			return err
		}
	}
	return d.Flush()
}

// deletions lists the key ranges, between from and to, of tables with deletions
// that may be as old as horizon, 0 for any, and gives the newest sequence number of any table.
func (d *DB) deletions(horizon pebble.SeqNum, from, to []byte) (ranges []pebble.KeyRange, last pebble.SeqNum, err error) {
	levels, err := d.DB.SSTables(pebble.WithProperties())
	if err != nil {
		return nil, 0, typed("purge", d.dir, err)
	}
	for _, level := range levels {
		for _, t := range level {
			last = max(last, t.LargestSeqNum)
			deletes := t.Properties.NumDeletions > 0 || t.Properties.NumRangeDeletions > 0 || t.Properties.NumRangeKeyDels > 0
			// A virtual table shows a part of a file that may hold more.
			if !deletes && !t.Virtual || horizon != 0 && t.SmallestSeqNum > horizon {
				continue
			}
			start, end := bytes.Clone(t.Smallest.UserKey), append(bytes.Clone(t.Largest.UserKey), 0)
			if bytes.Compare(start, from) < 0 {
				start = from
			}
			if bytes.Compare(end, to) > 0 {
				end = to
			}
			if bytes.Compare(start, end) >= 0 {
				continue
			}
			if n := len(ranges); n > 0 && bytes.Compare(ranges[n-1].End, start) >= 0 && bytes.Compare(ranges[n-1].Start, start) <= 0 {
				if bytes.Compare(ranges[n-1].End, end) < 0 {
					ranges[n-1].End = end
				}
				continue
			}
			ranges = append(ranges, pebble.KeyRange{Start: start, End: end})
		}
	}
	return ranges, last, nil
}

// DropFormerManifests removes the manifests that the database no longer uses.
// Pebble keeps one of them to help in debugging, and a manifest names the first
// and the last key of each table there was.
func (d *DB) DropFormerManifests() error {
	current, err := atomicfs.ReadMarker(d.opt.FS, d.dir, "manifest")
	if err != nil {
		return typed("drop manifests", d.dir, err)
	}
	names, err := d.opt.FS.List(d.dir)
	if err != nil {
		return typed("drop manifests", d.dir, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") && name != current {
			if err := d.opt.FS.Remove(d.opt.FS.PathJoin(d.dir, name)); err != nil {
				return fmt.Errorf("drop manifests: %w", typed("remove", name, err))
			}
		}
	}
	return SyncDir(d.opt.FS, d.dir)
}
