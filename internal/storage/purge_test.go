package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
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
	if err := d.PurgeDeleted(short, []byte{0}, []byte{0xff}); err == nil {
		t.Error("an old snapshot still reads the rows, and they are said to be gone")
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.PurgeDeleted(ctx, []byte{0}, []byte{0xff}); err != nil {
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

// A row that was overwritten stayed in a table below, or in the same one if
// somebody had read it meanwhile: it leaves no deletion that a purge could follow.
func TestOverwrittenRowsLeaveTheTables(t *testing.T) {
	for _, where := range []string{"another table", "the same table", "the lowest level"} {
		d, err := Open(Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		write := func(value string) {
			t.Helper()
			for i := range 100 {
				if err := d.Set(fmt.Appendf(nil, "a%03d", i), append([]byte(value), make([]byte, 4096)...), nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		settle := func() {
			t.Helper()
			if err := errors.Join(d.Flush(), d.Compact(t.Context(), []byte("a"), []byte("c"), false)); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		if where != "the same table" {
			settle()
		}
		reader := d.NewSnapshot()
		write("new")
		if where != "another table" {
			settle()
		}
		if err := errors.Join(d.Flush(), reader.Close()); err != nil {
			t.Fatal(err)
		}
		rows := func() (rows uint64) {
			levels, err := d.SSTables(pebble.WithProperties())
			if err != nil {
				t.Fatal(err)
			}
			for _, level := range levels {
				for _, table := range level {
					rows += table.Properties.NumEntries
				}
			}
			return rows
		}
		if n := rows(); n < 200 {
			t.Fatalf("%s: the tables hold %d rows, the former ones are gone already", where, n)
		}
		if err := d.PurgeDeleted(t.Context(), []byte{0}, []byte{0xff}, pebble.KeyRange{Start: []byte("a"), End: []byte("b")}); err != nil {
			t.Fatal(err)
		}
		if n := rows(); n != 100+1 { // and the format row
			t.Errorf("%s: the tables hold %d rows, want 101", where, n)
		}
		if v, closer, err := d.Get([]byte("a007")); err != nil || string(v[:3]) != "new" {
			t.Errorf("%s: %v", where, err)
		} else if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A table of the lowest level with few deletions was waited for without end: Pebble
// rewrites one by itself only if a tenth of its rows are deletions.
func TestOneDeletionInTheLowestLevelLeaves(t *testing.T) {
	d, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i := range 500 {
		err = errors.Join(err, d.Set(fmt.Appendf(nil, "a%03d", i), make([]byte, 64), nil))
	}
	if err = errors.Join(err, d.Delete([]byte("a007"), nil), d.Flush()); err != nil { // no table below: it moves down as it is
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := d.PurgeDeleted(ctx, []byte{0}, []byte{0xff}); err != nil {
		t.Fatal(err)
	}
	if left, _, err := d.deletions(0, []byte{0}, []byte{0xff}); err != nil || len(left) > 0 {
		t.Errorf("deletions are left in %q, %v", left, err)
	}
}

// TestFormerManifestCameBackWithTheLights: a manifest names the first and the last
// key of every table, and a power cut brought the one back that had been removed.
func TestFormerManifestCameBackWithTheLights(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d, err := Open(Options{Dir: "state", FS: mem, ReserveBytes: -1})
	if err == nil {
		err = errors.Join(d.Set([]byte("a"), nil, nil), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if d, err = Open(Options{Dir: "state", FS: mem, ReserveBytes: -1}); err != nil { // it begins a manifest
		t.Fatal(err)
	}
	defer d.Close()
	manifests := func(fs vfs.FS) (n int) {
		names, err := fs.List("state")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, "MANIFEST-") {
				n++
			}
		}
		return n
	}
	if n := manifests(mem); n != 2 {
		t.Fatalf("%d manifests, there is none to remove", n)
	}
	if err := d.DropFormerManifests(); err != nil {
		t.Fatal(err)
	}
	if n := manifests(mem.CrashClone(vfs.CrashCloneCfg{})); n != 1 {
		t.Errorf("after a power cut there are %d manifests", n)
	}
}
