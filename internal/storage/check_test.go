package storage

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestFlippedBitsInTablesAreFound, also where nobody reads the row.
func TestFlippedBitsInTablesAreFound(t *testing.T) {
	fs, rng := vfs.NewMem(), rand.New(rand.NewPCG(1, 1))
	d := mustOpen(t, testOptions(fs))
	for range 3 {
		b := d.NewBatch()
		for range 200 {
			if err := b.Set(fmt.Appendf([]byte{0x20}, "%x", rng.Uint64()), fmt.Appendf(nil, "%x", rng.Uint64()), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(d.Commit(b, true), b.Close(), d.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.CheckTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		name = fs.PathJoin("db", name)
		whole := readAll(t, fs, name)
		for range 40 {
			bit := rng.IntN(8 * len(whole))
			flipped := append([]byte(nil), whole...)
			flipped[bit/8] ^= 1 << (bit % 8)
			writeAll(t, fs, name, flipped)
			opt := testOptions(fs)
			opt.ReadOnly = true
			d, err := Open(opt)
			if err == nil {
				err = d.CheckTables(t.Context())
				if cerr := d.Close(); cerr != nil {
					t.Fatal(cerr)
				}
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("bit %d of %d in %s: %v", bit, 8*len(whole), name, err)
			}
		}
		writeAll(t, fs, name, whole)
	}
}

func readAll(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

func writeAll(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
