package encfs

import (
	"bytes"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

func openPebble(t testing.TB, fsys vfs.FS, dir string) *pebble.DB {
	t.Helper()
	db, err := pebble.Open(dir, pebbleOptions(fsys))
	ok(t, err)
	return db
}

func pebbleOptions(fsys vfs.FS) *pebble.Options {
	return &pebble.Options{FS: fsys, FormatMajorVersion: pebble.FormatTableFormatV6, MemTableSize: 64 << 10,
		L0CompactionThreshold: 2, Logger: quiet{}}
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func row(i int) []byte   { return fmt.Appendf(nil, "plaintextkey%06d", i) }
func value(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "plaintextvalue%06d ", i), 1+i%30) }

func holdsRow(t testing.TB, db *pebble.DB, i int) {
	t.Helper()
	v, closer, err := db.Get(row(i))
	ok(t, err)
	if !bytes.Equal(v, value(i)) {
		t.Fatalf("row %d holds %.40q", i, v)
	}
	ok(t, closer.Close())
}

// Everything that Pebble does with files works, and nothing of what was written
// stands in any of them.
func TestPebble(t *testing.T) {
	for _, base := range []vfs.FS{vfs.NewMem(), vfs.Default} {
		dir := "root"
		if base == vfs.Default {
			dir = t.TempDir()
		}
		e := New(base, newRing())
		db := openPebble(t, e, dir+"/db")
		for i := range 2000 {
			ok(t, db.Set(row(i), value(i), pebble.NoSync))
		}
		ok(t, db.Flush())
		ok(t, db.DeleteRange(row(100), row(200), pebble.Sync))
		ok(t, db.Compact(t.Context(), []byte("a"), []byte("z"), true))
		ingest(t, e, db, dir+"/in.sst")
		ok(t, db.Set(row(2001), value(2001), pebble.Sync)) // in the log only
		ok(t, db.Checkpoint(dir+"/checkpoint", pebble.WithFlushedWAL()))
		ok(t, db.Close())
		for _, name := range []string{"/db", "/checkpoint"} {
			db := openPebble(t, e, dir+name)
			for _, i := range []int{0, 99, 200, 1999, 2000, 2001} {
				holdsRow(t, db, i)
			}
			if _, _, err := db.Get(row(150)); !errors.Is(err, pebble.ErrNotFound) {
				t.Error("a deleted row is there:", err)
			}
			ok(t, db.Close())
		}
		hidden := 0
		for name, b := range tree(t, base, dir) {
			for _, word := range []string{"plaintextkey", "plaintextvalue", "pebble.", "comparer", "leveldb"} {
				if bytes.Contains(bytes.ToLower(b), []byte(word)) {
					t.Errorf("%s holds %q", name, word)
				}
			}
			if len(b) > headerSize {
				hidden++
			}
		}
		if hidden < 10 {
			t.Errorf("%d files with content", hidden)
		}
	}
}

func ingest(t testing.TB, e vfs.FS, db *pebble.DB, name string) {
	t.Helper()
	f, err := e.Create(name, vfs.WriteCategoryUnspecified)
	ok(t, err)
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), sstable.WriterOptions{TableFormat: sstable.TableFormatPebblev5})
	ok(t, w.Set(row(2000), value(2000)))
	ok(t, w.Close())
	ok(t, db.Ingest(t.Context(), []string{name}))
}

// After a crash that keeps a random part of what was not synced, the database
// opens, twice, and its rows are a prefix that holds all that was synced.
func TestCrashKeepsAPrefixOfAnEncryptedDatabase(t *testing.T) {
	lost := 0
	seeds(t, 60, func(t testing.TB, rng *mathrand.Rand) {
		keys, mem := newRing(), vfs.NewCrashableMem()
		durable, n := -1, rng.IntN(600)
		percent := []int{0, 50, 90, rng.IntN(101)}[rng.IntN(4)]
		db := openPebble(t, New(mem, keys), "db")
		for i := range n {
			sync := rng.IntN(25) == 0
			opt := pebble.NoSync
			if sync {
				opt = pebble.Sync
			}
			ok(t, db.Set(row(i), value(i), opt))
			if rng.IntN(80) == 0 {
				ok(t, db.Flush())
				sync = true
			}
			if sync {
				durable = i
			}
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		ok(t, db.Close())
		for range 2 {
			db := openPebble(t, New(crashed, keys), "db")
			have := 0
			it, err := db.NewIter(nil)
			ok(t, err)
			for there := it.First(); there; there = it.Next() { // the keys sort as they were written
				if !bytes.Equal(it.Key(), row(have)) {
					t.Fatalf("%s is there without row %d", it.Key(), have)
				}
				if !bytes.Equal(it.Value(), value(have)) {
					t.Fatalf("row %d holds %.40q", have, it.Value())
				}
				have++
			}
			ok(t, errors.Join(it.Error(), it.Close()))
			if have <= durable {
				t.Fatalf("%d rows, row %d was synced", have, durable)
			}
			ok(t, db.Close())
			lost += n - have
		}
	})
	if lost == 0 && *oneSeed == 0 {
		t.Error("no crash lost anything")
	}
}

// A database whose keys are gone says which and what to do, and is not taken for
// a damaged one, in whose place an empty one would begin.
func TestDatabaseWithoutItsKeys(t *testing.T) {
	mem := vfs.NewMem()
	db, err := storage.Open(storage.Options{Dir: "db", FS: New(mem, newRing())})
	ok(t, err)
	ok(t, db.Close())
	_, err = storage.Open(storage.Options{Dir: "db", FS: New(mem, newRingAt(2))})
	if !errors.Is(err, storage.ErrMissingKey) || errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), "keys/storage.keys") {
		t.Fatal(err)
	}
}
