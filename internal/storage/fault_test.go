package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// After a crash that keeps a random part of what was not synced, the rows are a
// prefix of the commits and hold all that were synced, flushed or checkpointed.
func TestCrashKeepsAPrefix(t *testing.T) { crashKeepsAPrefix(t, false) }

// The same of a database that is filled, which has no write-ahead log.
func TestCrashWhileFillingKeepsAPrefix(t *testing.T) { crashKeepsAPrefix(t, true) }

func crashKeepsAPrefix(t *testing.T, filling bool) {
	t.Helper()
	lost := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		fs := vfs.NewCrashableMem()
		opt := testOptions(fs)
		opt.Filling = filling
		d := mustOpen(t, opt)
		durable, n := -1, rng.IntN(400)
		for i := range n {
			sync := rng.IntN(20) == 0
			// A batch of two rows shows a half-applied one.
			b := d.NewBatch()
			_ = b.Set(fmt.Appendf(nil, "a%06d", i), make([]byte, rng.IntN(3000)), nil)
			_ = b.Set(fmt.Appendf(nil, "b%06d", i), nil, nil)
			err := d.Commit(b, sync)
			_ = b.Close()
			switch rng.IntN(60) {
			case 0:
				err, sync = errors.Join(err, d.Flush()), true
			case 1:
				err, sync = errors.Join(err, d.Sync()), true
			case 2:
				err, sync = errors.Join(err, d.Checkpoint(fmt.Sprint("checkpoint", i))), true
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if sync {
				durable = i
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		mustClose(t, d)
		d = mustOpen(t, testOptions(crashed))
		have := 0
		for i := range n {
			_, ca, errA := d.Get(fmt.Appendf(nil, "a%06d", i))
			_, cb, errB := d.Get(fmt.Appendf(nil, "b%06d", i))
			switch {
			case (errA == nil) != (errB == nil):
				t.Fatalf("seed %d: batch %d is half there", seed, i)
			case errA == nil && have != i:
				t.Fatalf("seed %d: batch %d without %d", seed, i, have)
			case errA != nil && i <= durable:
				t.Fatalf("seed %d: batch %d was durable: %v", seed, i, errA)
			case errA == nil:
				have++
				_, _ = ca.Close(), cb.Close()
			}
		}
		lost += n - have
		mustClose(t, d)
	}
	if lost == 0 {
		t.Error("no crash lost anything")
	}
}

// Pebble makes a new manifest at each start and then a marker that names it. A
// disk that kept the marker's name and not the manifest's had a database that did
// not open.
func TestCrashWhileTheManifestChanges(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 11))
		mem := vfs.NewCrashableMem()
		d := mustOpen(t, testOptions(mem))
		if err := set(d, "k", "v", true); err != nil {
			t.Fatal(err)
		}
		mustClose(t, d)
		var mu sync.Mutex // Pebble removes files in a goroutine of its own
		var left []*vfs.MemFS
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpRemove {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}))
			}
			return nil
		}))
		mustClose(t, mustOpen(t, testOptions(fs)))
		if len(left) < 3 {
			t.Fatalf("%d moments only", len(left))
		}
		for i, fs := range left {
			d, err := Open(testOptions(fs))
			if err != nil {
				t.Fatalf("seed %d, moment %d of %d: %v", seed, i, len(left), err)
			}
			if get(t, d, "k") != "v" {
				t.Fatalf("seed %d, moment %d of %d: the row is gone", seed, i, len(left))
			}
			mustClose(t, d)
		}
	}
}

// fullFS fails writes to files whose name holds part with ENOSPC, while on.
type fullFS struct {
	part string
	on   atomic.Bool
	hits atomic.Int64
}

func (f *fullFS) MaybeError(op errorfs.Op) error {
	if !f.on.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !strings.Contains(op.Path, f.part) {
		return nil
	}
	f.hits.Add(1)
	return syscall.ENOSPC
}

func (f *fullFS) String() string { return "full " + f.part }

func TestDiskFullHaltsWritesNotReads(t *testing.T) {
	for _, part := range []string{".log", "MANIFEST"} {
		t.Run(part, func(t *testing.T) {
			full := &fullFS{part: part}
			opt := testOptions(errorfs.Wrap(vfs.NewMem(), full))
			var faults atomic.Int64
			opt.OnFault = func(error) { faults.Add(1) }
			d := mustOpen(t, opt)
			if err := set(d, "k", "v", true); err != nil {
				t.Fatal(err)
			}
			full.on.Store(true)
			var err error
			if part == "MANIFEST" { // fails on Pebble's own goroutine
				err = d.Flush()
			} else {
				err = set(d, "k2", "v", true)
			}
			if full.hits.Load() == 0 || !IsNoSpace(err) || !errors.Is(err, ErrHalted) {
				t.Fatalf("%d faults injected: %v", full.hits.Load(), err)
			}
			full.on.Store(false)
			if err := set(d, "k3", "v", false); !errors.Is(err, ErrHalted) || !errors.Is(err, ErrNoSpace) {
				t.Error("wrote after the halt:", err)
			}
			if get(t, d, "k") != "v" {
				t.Error("cannot read after the halt")
			}
			if err := d.Close(); !errors.Is(err, ErrHalted) {
				t.Error(err)
			}
			if faults.Load() == 0 || !errors.Is(d.Fault(), ErrHalted) || !d.Metrics().Halted {
				t.Error("the halt was not reported:", d.Fault())
			}
			if _, err := Open(opt); !errors.Is(err, ErrInUse) {
				t.Error("an abandoned directory was opened again:", err)
			}
		})
	}
}

// A flush that finds no space is reported, not fatal, and ends well when there is
// space again.
func TestFailedFlushIsRetried(t *testing.T) {
	full := &fullFS{part: ".sst"}
	opt := testOptions(errorfs.Wrap(vfs.NewMem(), full))
	heard := make(chan error, 1)
	var once sync.Once
	opt.OnFault = func(err error) { once.Do(func() { heard <- err; full.on.Store(false) }) }
	d := mustOpen(t, opt)
	if err := set(d, "k", "v", false); err != nil {
		t.Fatal(err)
	}
	full.on.Store(true)
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := <-heard; !errors.Is(err, ErrNoSpace) {
		t.Error(err)
	}
	if err := set(d, "k", "w", true); err != nil {
		t.Error(err)
	}
	if !IsNoSpace(d.Fault()) || d.Metrics().BackgroundFault == 0 {
		t.Error(d.Fault())
	}
	mustClose(t, d)
}

// The rows of a database that is filled are only in memory until they are flushed. A
// Close that found no space would have waited for it for ever, or lost them in silence.
func TestFillingOnAFullDiskIsNotClosedAsWhole(t *testing.T) {
	full := &fullFS{part: ".sst"}
	opt := testOptions(errorfs.Wrap(vfs.NewMem(), full))
	opt.Filling = true
	d := mustOpen(t, opt)
	if err := set(d, "k", "v", false); err != nil {
		t.Fatal(err)
	}
	full.on.Store(true)
	if err := d.Close(); full.hits.Load() == 0 || !errors.Is(err, ErrNoSpace) {
		t.Fatalf("%d faults injected: %v", full.hits.Load(), err)
	}
	full.on.Store(false)
	d = mustOpen(t, opt)
	if err := errors.Join(set(d, "k", "w", false), d.Close()); err != nil {
		t.Fatal(err)
	}
	d = mustOpen(t, opt)
	defer mustClose(t, d)
	if got := get(t, d, "k"); got != "w" {
		t.Errorf("after space came back: %q", got)
	}
}

func TestOpenOnFullDisk(t *testing.T) {
	for _, part := range []string{"MANIFEST", "LOCK", "marker", "OPTIONS", ".log"} {
		full := &fullFS{part: part}
		full.on.Store(true)
		_, err := Open(testOptions(errorfs.Wrap(vfs.NewMem(), full)))
		if full.hits.Load() > 0 && !errors.Is(err, ErrNoSpace) {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// smallFS says how much is free.
type smallFS struct {
	vfs.FS
	free atomic.Uint64
}

func (f *smallFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 40}, nil
}

func TestReserveRefusesInTime(t *testing.T) {
	fs := &smallFS{FS: vfs.NewMem()}
	fs.free.Store(1 << 30)
	opt := testOptions(fs)
	opt.ReserveBytes = 1 << 20
	d := mustOpen(t, opt)
	if err := set(d, "k", "v", false); err != nil {
		t.Fatal(err)
	}
	fs.free.Store(1<<20 - 1)
	if err := set(d, "big", string(make([]byte, askEvery)), false); !errors.Is(err, ErrNoSpace) || errors.Is(err, ErrHalted) {
		t.Fatal(err)
	}
	if err := set(d, "k", "w", false); !errors.Is(err, ErrNoSpace) || get(t, d, "k") != "v" {
		t.Fatal("a refused write changed something:", err)
	}
	fs.free.Store(1 << 30)
	if err := set(d, "k", "w", false); err != nil || get(t, d, "k") != "w" {
		t.Fatal("space came back:", err)
	}
	mustClose(t, d)
}

func TestErrorKinds(t *testing.T) {
	if IsNoSpace(nil) || IsCorrupt(nil) || typed("a", "b", nil) != nil {
		t.Error("nil")
	}
	deep := fmt.Errorf("x: %w", errors.Join(errors.New("y"), syscall.ENOSPC))
	if !IsNoSpace(deep) || !errors.Is(typed("a", "b", deep), ErrNoSpace) {
		t.Error(deep)
	}
	if c := fmt.Errorf("x: %w", pebble.ErrCorruption); !IsCorrupt(c) || !errors.Is(typed("a", "b", c), ErrDamaged) {
		t.Error(c)
	}
	if err := openError("d", syscall.EIO); errors.Is(err, ErrDamaged) {
		t.Error("an input/output error is no damage")
	}
	if err := lockError("d", syscall.EIO); errors.Is(err, ErrInUse) {
		t.Error(err)
	}
}
