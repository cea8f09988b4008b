package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
)

const (
	appendPrefix = 0x10
	sumPrefix    = 0x11
	failPrefix   = 0x12
)

var errFold = errors.New("fold refused")

func sumMerge(acc, operand []byte) ([]byte, error) {
	if len(operand) != 8 {
		return nil, errFold
	}
	if len(acc) == 0 {
		return append(acc, operand...), nil
	}
	binary.BigEndian.PutUint64(acc, binary.BigEndian.Uint64(acc)+binary.BigEndian.Uint64(operand))
	return acc, nil
}

// packMarks folds each run of '+' to one, so that packing shows and may be repeated.
func packMarks(v []byte) ([]byte, error) {
	return slices.CompactFunc(v, func(a, b byte) bool { return a == '+' && b == '+' }), nil
}

func testOptions(fs vfs.FS) Options {
	return Options{Dir: "db", FS: fs, CacheBytes: 1 << 20, MemTableBytes: 256 << 10, Logger: slog.New(slog.DiscardHandler),
		Merge: MergeTable{
			appendPrefix: {Pack: packMarks},
			sumPrefix:    {Fold: sumMerge},
			failPrefix:   {Fold: func([]byte, []byte) ([]byte, error) { return nil, errFold }},
		}}
}

func mustOpen(t testing.TB, opt Options) *DB {
	t.Helper()
	d, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustClose(t testing.TB, d *DB) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func set(d *DB, key, value string, sync bool) error {
	b := d.NewBatch()
	defer b.Close()
	if err := b.Set([]byte(key), []byte(value), nil); err != nil {
		return err
	}
	return d.Commit(b, sync)
}

func get(t testing.TB, d *DB, key string) string {
	t.Helper()
	v, c, err := d.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return string(v)
}

func TestOpenWriteReopen(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	opt := testOptions(nil)
	opt.Dir = filepath.Join(t.TempDir(), "a", "b")
	d := mustOpen(t, opt)
	if err := set(d, "k", "v", false); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(opt); !errors.Is(err, ErrInUse) {
		t.Fatal("opened twice:", err)
	}
	if err := errors.Join(d.Sync(), d.Flush()); err != nil {
		t.Fatal(err)
	}
	if m := d.Metrics(); m.Flushes == 0 || m.DiskBytes == 0 || m.Halted {
		t.Errorf("%+v", m)
	}
	mustClose(t, d)
	mustClose(t, d)
	if err := set(d, "k", "w", false); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	ro := opt
	ro.ReadOnly = true
	d = mustOpen(t, ro)
	if get(t, d, "k") != "v" {
		t.Error("lost a row")
	}
	if err := set(d, "k", "w", false); !errors.Is(err, ErrReadOnly) {
		t.Error(err)
	}
	mustClose(t, d)
	if d.Fault() != nil {
		t.Error(d.Fault())
	}
}

// TestFormerLogsAreRemoved is that of a log that was kept to be overwritten, which
// took as much room as the memtable that it had held.
func TestFormerLogsAreRemoved(t *testing.T) {
	opt := testOptions(vfs.NewMem())
	d := mustOpen(t, opt)
	for i := range 4 {
		if err := errors.Join(set(d, fmt.Sprint(i), strings.Repeat("x", 1000), true), d.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, d)
	names, err := opt.FS.List(opt.Dir)
	if err != nil {
		t.Fatal(err)
	}
	logs := slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") })
	if len(logs) != 1 {
		t.Errorf("%d logs are left: %q", len(logs), logs)
	}
}

// TestFillingLeavesTablesAlone: sorting the tables of a database that was being filled
// took a third of the time, and each row was written several times. That their number
// is bounded all the same is what its reads depend on.
func TestFillingLeavesTablesAlone(t *testing.T) {
	opt := testOptions(vfs.NewMem())
	opt.Filling = true
	d := mustOpen(t, opt)
	defer mustClose(t, d)
	layers := func() (n int, compactions int64) {
		m := d.DB.Metrics()
		return int(m.Levels[0].Sublevels), m.Compact.Count
	}
	for i := range 3 * fillingStopLayers {
		if err := errors.Join(set(d, "first", fmt.Sprint(i), false), set(d, "last", fmt.Sprint(i), false), d.Flush()); err != nil {
			t.Fatal(err)
		}
		n, compactions := layers()
		if i+1 < fillingLayers && (n <= i || compactions > 0) {
			t.Fatalf("after %d flushes: %d layers, %d compactions", i+1, n, compactions)
		}
		if n > fillingStopLayers {
			t.Fatalf("%d layers", n)
		}
	}
	if _, compactions := layers(); compactions == 0 {
		t.Error("nothing was ever compacted")
	}
}

// TestOpenWaitedForTheCompactionsOfAFilling: a rebuilt state was opened while nothing
// could be applied, and that took as long as to sort its tables.
func TestOpenWaitedForTheCompactionsOfAFilling(t *testing.T) {
	opt := testOptions(vfs.NewMem())
	opt.Filling = true
	d := mustOpen(t, opt)
	for i := range 10 {
		if err := errors.Join(set(d, "first", fmt.Sprint(i), false), set(d, "last", fmt.Sprint(i), false), d.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.Sort(t.Context()), set(d, "first", "a bit more", false)); err != nil {
		t.Fatal(err)
	}
	if n := d.DB.Metrics().Levels[0].Sublevels; n != 0 {
		t.Errorf("%d layers after sorting", n)
	}
	mustClose(t, d)
	opt.Filling = false
	d = mustOpen(t, opt)
	defer mustClose(t, d)
	if n := d.DB.Metrics().Compact.Count; n != 0 {
		t.Errorf("opening it made %d compactions", n)
	}
	if first, last := get(t, d, "first"), get(t, d, "last"); first != "a bit more" || last != "9" {
		t.Errorf("%q, %q", first, last)
	}
}

func TestEmptyIsSmall(t *testing.T) {
	d := mustOpen(t, Options{Dir: "db", FS: vfs.NewMem()})
	defer d.Close()
	if m := d.Metrics(); m.MemTableBytes > 1<<20 || m.CacheBytes > 1<<20 {
		t.Errorf("%+v", m)
	}
}

func TestOpenRefuses(t *testing.T) {
	cases := map[string]struct {
		want  error
		spoil func(fs vfs.FS, opt *Options)
	}{
		"no dir":          {ErrOptions, func(_ vfs.FS, o *Options) { o.Dir = "" }},
		"reserved prefix": {ErrOptions, func(_ vfs.FS, o *Options) { o.Merge = MergeTable{0: {}} }},
		"tiny memtable":   {ErrOptions, func(_ vfs.FS, o *Options) { o.MemTableBytes = 1 }},
		"negative cache":  {ErrOptions, func(_ vfs.FS, o *Options) { o.CacheBytes = -1 }},
		"nothing there":   {ErrNoDatabase, func(_ vfs.FS, o *Options) { o.ReadOnly, o.Dir = true, "other" }},
		"empty directory": {ErrNoDatabase, func(fs vfs.FS, o *Options) { _ = fs.MkdirAll("e", 0o755); o.ReadOnly, o.Dir = true, "e" }},
		"newer row":       {ErrNewerFormat, func(fs vfs.FS, _ *Options) { setFormat(fs, formatMagic+"\x00\x00\x00\x02") }},
		"version 0":       {ErrDamaged, func(fs vfs.FS, _ *Options) { setFormat(fs, formatMagic+"\x00\x00\x00\x00") }},
		"strange row":     {ErrDamaged, func(fs vfs.FS, _ *Options) { setFormat(fs, "?") }},
		"no row":          {ErrDamaged, func(fs vfs.FS, _ *Options) { setFormat(fs, "") }},
		"newer Pebble": {ErrNewerFormat, func(fs vfs.FS, _ *Options) {
			eachFile(fs, "marker.format-version.", func(n string) { _ = fs.Rename(n, "db/marker.format-version.000009.999") })
		}},
		"no manifest marker": {ErrDamaged, func(fs vfs.FS, _ *Options) {
			eachFile(fs, "marker.manifest.", func(n string) { _ = fs.Remove(n) })
		}},
		"no manifest": {ErrDamaged, func(fs vfs.FS, _ *Options) {
			eachFile(fs, "MANIFEST", func(n string) { _ = fs.Remove(n) })
		}},
		"an sstable gone": {ErrDamaged, func(fs vfs.FS, _ *Options) {
			eachFile(fs, "0", func(n string) {
				if strings.HasSuffix(n, ".sst") {
					_ = fs.Remove(n)
				}
			})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			opt := testOptions(fs)
			d := mustOpen(t, opt)
			if err := errors.Join(set(d, "k", "v", true), d.Flush()); err != nil {
				t.Fatal(err)
			}
			mustClose(t, d)
			c.spoil(fs, &opt)
			for range 2 { // the lock must have been given back
				d, err := Open(opt)
				if !errors.Is(err, c.want) {
					t.Fatalf("%v, %v; want %v", d, err, c.want)
				}
			}
		})
	}
}

func eachFile(fs vfs.FS, prefix string, f func(name string)) {
	names, _ := fs.List("db")
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			f("db/" + n)
		}
	}
}

func setFormat(fs vfs.FS, row string) {
	d, err := Open(testOptions(fs))
	if err != nil {
		panic(err)
	}
	if row == "" {
		err = d.DB.Delete(formatKey(), pebble.Sync)
	} else {
		err = d.DB.Set(formatKey(), []byte(row), pebble.Sync)
	}
	if err = errors.Join(err, d.Close()); err != nil {
		panic(err)
	}
}

// Any file with bytes changed or cut opens, or is refused as damaged or newer; it
// never panics, and what is read is right or an error.
func TestDamagedFilesNeverPanic(t *testing.T) {
	base := vfs.NewMem()
	d := mustOpen(t, testOptions(base))
	for i := range 200 {
		if err := set(d, fmt.Sprintf("k%03d", i), fmt.Sprint("value", i), i == 199); err != nil {
			t.Fatal(err)
		}
		if i == 100 {
			if err := d.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustClose(t, d)
	names, err := base.List("db")
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewMem()
		if _, err := vfs.Clone(base, fs, "db", "db"); err != nil {
			t.Fatal(err)
		}
		name := names[rng.IntN(len(names))]
		if err := damage(fs, "db/"+name, rng); err != nil {
			t.Fatal(err)
		}
		d, err := Open(testOptions(fs))
		if err != nil {
			refused++
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewerFormat) {
				t.Errorf("seed %d, %s: %v", seed, name, err)
			}
			continue
		}
		for i := range 200 {
			k := fmt.Sprintf("k%03d", i)
			v, c, err := d.Get([]byte(k))
			if err == nil {
				if string(v) != fmt.Sprint("value", i) {
					t.Errorf("seed %d, %s: %s = %q", seed, name, k, v)
				}
				_ = c.Close()
			} else if !errors.Is(err, pebble.ErrNotFound) && !IsCorrupt(err) {
				t.Errorf("seed %d, %s: %v", seed, name, err)
			}
		}
		_ = d.Close()
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

func damage(fs *vfs.MemFS, name string, rng *rand.Rand) error {
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	data := make([]byte, st.Size())
	if len(data) > 0 {
		if _, err := f.ReadAt(data, 0); err != nil {
			return err
		}
	}
	_ = f.Close()
	if len(data) == 0 {
		return nil
	}
	if rng.IntN(2) == 0 {
		data = data[:rng.IntN(len(data))]
	} else {
		for range 1 + rng.IntN(8) {
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		}
	}
	w, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return errors.Join(err, w.Close())
}

func TestMergeAgainstTwin(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 2))
		fs := vfs.NewMem()
		d := mustOpen(t, testOptions(fs))
		texts, sums := map[string]string{}, map[string]uint64{}
		for i := range 3000 {
			k := fmt.Sprint(rng.IntN(20))
			b := d.NewBatch()
			part := fmt.Sprint(i, ",")
			texts[k] += part
			sums[k] += uint64(i)
			_ = b.Merge([]byte("\x10"+k), []byte(part), nil)
			_ = b.Merge([]byte("\x11"+k), binary.BigEndian.AppendUint64(nil, uint64(i)), nil)
			if rng.IntN(100) == 0 {
				_ = b.Set([]byte("\x10"+k), []byte("base"), nil)
				texts[k] = "base"
			}
			if err := d.Apply(b, nil); err != nil {
				t.Fatal(err)
			}
			_ = b.Close()
			switch rng.IntN(400) {
			case 0:
				if err := d.Flush(); err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := d.Compact(context.Background(), []byte{0}, []byte{0xFF}, false); err != nil {
					t.Fatal(err)
				}
			case 2:
				mustClose(t, d)
				d = mustOpen(t, testOptions(fs))
			}
		}
		it, err := d.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		back := map[string]string{}
		for ok := it.Last(); ok; ok = it.Prev() {
			back[string(it.Key())] = string(it.Value())
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		for k, want := range texts {
			sum := string(binary.BigEndian.AppendUint64(nil, sums[k]))
			if get(t, d, "\x10"+k) != want || back["\x10"+k] != want || get(t, d, "\x11"+k) != sum || back["\x11"+k] != sum {
				t.Fatalf("seed %d: key %s", seed, k)
			}
		}
		mustClose(t, d)
	}
}

func TestMergeRefused(t *testing.T) {
	d := mustOpen(t, testOptions(vfs.NewMem()))
	defer d.Close()
	for _, k := range []string{"\x77none", "\x12fails", "\x11bad"} {
		if err := d.Merge([]byte(k), []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Get([]byte(k)); !errors.Is(err, ErrMerge) {
			t.Errorf("%q: %v", k, err)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	opt := testOptions(nil)
	opt.Dir = filepath.Join(t.TempDir(), "db")
	d := mustOpen(t, opt)
	defer d.Close()
	if err := errors.Join(set(d, "a", "1", false), d.Flush(), set(d, "b", "2", false)); err != nil {
		t.Fatal(err)
	}
	to := opt.Dir + "-copy"
	if err := d.Checkpoint(to); err != nil {
		t.Fatal(err)
	}
	if err := d.Checkpoint(to); !errors.Is(err, os.ErrExist) {
		t.Fatal("overwrote a checkpoint:", err)
	}
	if err := set(d, "a", "3", true); err != nil {
		t.Fatal(err)
	}
	opt.Dir = to
	c := mustOpen(t, opt)
	defer c.Close()
	if get(t, c, "a") != "1" || get(t, c, "b") != "2" {
		t.Error("the checkpoint is not what was committed")
	}
}

// What is stored is packed, what is read from operands is not.
func TestMergePacks(t *testing.T) {
	d := mustOpen(t, testOptions(vfs.NewMem()))
	defer mustClose(t, d)
	key := []byte("\x10k")
	for _, op := range []string{"a+", "+", "+b"} {
		if err := d.DB.Merge(key, []byte(op), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"a+++b", "a+b"} {
		v, closer, err := d.Get(key)
		if err != nil || string(v) != want {
			t.Fatalf("%q, %v, want %q", v, err, want)
		}
		if err := errors.Join(closer.Close(), d.Flush()); err != nil {
			t.Fatal(err)
		}
	}
}

// A new database's first log was in Pebble's oldest format: damage among its
// synced rows cut off all that followed, and nobody was told.
func TestDamageInTheFirstLogIsNotATornEnd(t *testing.T) {
	fs := vfs.NewMem()
	d := mustOpen(t, testOptions(fs))
	for i := range 500 {
		if err := set(d, fmt.Sprintf("key%06d", i), strings.Repeat("v", 300), i%10 == 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	// What a disk holds that lost one block: the database was not closed.
	damaged := vfs.NewMem()
	if ok, err := vfs.Clone(fs, damaged, "db", "db"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	mustClose(t, d)
	zeroed := 0
	names, err := damaged.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := damaged.Stat("db/" + name)
		if err != nil || !strings.HasSuffix(name, ".log") || info.Size() < 64<<10 {
			continue
		}
		f, err := damaged.OpenReadWrite("db/"+name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.WriteAt(make([]byte, 4096), 32<<10)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		zeroed++
	}
	if zeroed != 1 {
		t.Fatalf("%d logs in %v", zeroed, names)
	}
	opt := testOptions(damaged)
	if d, err := Open(opt); !errors.Is(err, ErrDamaged) {
		if err == nil {
			_, _, err = d.Get([]byte("key000499"))
			mustClose(t, d)
		}
		t.Fatal("the damage was taken for a torn end:", err)
	}
}
