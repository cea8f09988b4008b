package storage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Rows that were deleted stayed in the tables below the deletion, also in those
// of the lowest level, where no compaction by hand comes.
func TestDeletedRowsLeaveTheTables(t *testing.T) {
	d, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	write := func(f func(b *pebble.Batch) error) {
		t.Helper()
		b := d.NewBatch()
		defer b.Close()
		if err := f(b); err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(b, false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		write(func(b *pebble.Batch) error { return b.Set(fmt.Appendf(nil, "a%03d", i), make([]byte, 4096), nil) })
		write(func(b *pebble.Batch) error { return b.Set(fmt.Appendf(nil, "b%03d", i), make([]byte, 64), nil) })
	}
	if err := d.Compact(t.Context(), []byte("a"), []byte("c"), false); err != nil {
		t.Fatal(err)
	}
	old := d.NewSnapshot()
	write(func(b *pebble.Batch) error { return b.DeleteRange([]byte("a000"), []byte("a150"), nil) })
	write(func(b *pebble.Batch) error { return b.Delete([]byte("b007"), nil) })
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := d.PurgeDeleted(short); err == nil {
		t.Error("an old snapshot still reads the rows, and they are said to be gone")
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.PurgeDeleted(ctx); err != nil {
		t.Fatal(err)
	}
	levels, err := d.SSTables(pebble.WithProperties())
	if err != nil {
		t.Fatal(err)
	}
	rows := uint64(0)
	for _, level := range levels {
		for _, table := range level {
			rows += table.Properties.NumEntries
			if table.Properties.NumDeletions > 0 || table.Virtual {
				t.Errorf("table %d holds %d deletions, virtual %v", table.FileNum, table.Properties.NumDeletions, table.Virtual)
			}
		}
	}
	if want := uint64(50 + 199 + 1); rows != want { // and the format row
		t.Errorf("the tables hold %d rows, want %d", rows, want)
	}
}
