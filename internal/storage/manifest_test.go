package storage

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"
)

// A manifest in which any bit has changed is refused, or all rows are there. Pebble opened an
// earlier database, from before rows that had been flushed, whose logs were deleted.
func TestFlippedBitInTheManifestWasItsEnd(t *testing.T) {
	base := vfs.NewMem()
	d := mustOpen(t, testOptions(base))
	const rows = 6
	for i := range rows {
		if err := errors.Join(set(d, fmt.Sprint("k", i), "v", false), d.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, d)
	marked, err := atomicfs.ReadMarker(base, "db", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	whole := readAll(t, base, "db/"+marked)
	refused := 0
	for bit := range 8 * len(whole) {
		fs := vfs.NewMem()
		if _, err := vfs.Clone(base, fs, "db", "db"); err != nil {
			t.Fatal(err)
		}
		changed := append([]byte(nil), whole...)
		changed[bit/8] ^= 1 << (bit % 8)
		writeAll(t, fs, "db/"+marked, changed)
		d, err := Open(testOptions(fs))
		if err != nil {
			if refused++; !errors.Is(err, ErrDamaged) {
				t.Errorf("bit %d: %v", bit, err)
			}
			continue
		}
		for i := range rows {
			if get(t, d, fmt.Sprint("k", i)) != "v" {
				t.Errorf("bit %d of %d: opened without row %d", bit, 8*len(whole), i)
			}
		}
		mustClose(t, d)
	}
	if refused == 0 {
		t.Error("none was refused")
	}
	t.Logf("%d of %d were refused", refused, 8*len(whole))
}

// A manifest that is cut short is one whose last record was being written; one that spans
// blocks is read as Pebble writes it.
func TestManifestOfManyRecords(t *testing.T) {
	fs := vfs.NewMem()
	d := mustOpen(t, testOptions(fs))
	for i := range 700 {
		if err := errors.Join(set(d, fmt.Sprint("k", i), "v", false), d.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, d)
	marked, err := atomicfs.ReadMarker(fs, "db", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	b := readAll(t, fs, "db/"+marked)
	if len(b) <= manifestBlock {
		t.Fatalf("the manifest has %d bytes, and is to have more than a block", len(b))
	}
	if at, ok := chunks(b); !ok || at != len(b) {
		t.Errorf("a whole manifest of %d bytes is read to %d, %t", len(b), at, ok)
	}
	for cut := len(b) - 200; cut < len(b); cut++ {
		if at, ok := chunks(b[:cut]); !ok {
			t.Errorf("cut at %d, it is damaged at %d", cut, at)
		}
	}
}
