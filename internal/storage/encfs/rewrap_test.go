package encfs

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/storage"
)

// change makes a new storage key and rewraps; the former keys are destroyed.
func change(t testing.TB, e *FS, keys *ring, dirs ...string) Rewrapped {
	t.Helper()
	ok(t, e.SwitchKey(keys.rotate))
	done, err := e.Rewrap(dirs...)
	ok(t, err)
	keys.destroyBefore(keys.last)
	return done
}

func TestRewrap(t *testing.T) {
	base, keys := vfs.NewMem(), newRing()
	e := New(base, keys)
	ok(t, e.MkdirAll("state/gen-1", 0o700))
	put(t, e, "state/gen-1/a.sst", "a")
	put(t, e, "state/CURRENT", "gen-1")
	put(t, e, "other", "o")
	ok(t, e.Link("state/gen-1/a.sst", "state/copy.sst"))
	f, err := e.Create("state/marker", vfs.WriteCategoryUnspecified)
	ok(t, errors.Join(err, f.Close()))
	put(t, base, "state/foreign", strings.Repeat("not ours ", 2000))
	if done := change(t, e, keys, "state", "missing"); done.Files != 2 || !slices.Equal(done.Unreadable, []string{"state/foreign"}) {
		t.Fatalf("%+v: two inodes have a header", done)
	}
	is(t, e, "state/gen-1/a.sst", "a")
	is(t, e, "state/copy.sst", "a")
	is(t, e, "state/CURRENT", "gen-1")
	is(t, e, "state/marker", "")
	if _, err := e.Open("other"); !errors.Is(err, storage.ErrMissingKey) {
		t.Error("a file that was not rewrapped opens:", err)
	}
	if done, err := e.Rewrap("state"); err != nil || done.Files != 0 || done.Passes != 1 {
		t.Errorf("again: %+v, %v", done, err)
	}
	for name, b := range tree(t, base, "state") {
		if strings.Contains(name, rewrapPrefix) {
			t.Error("left behind:", name)
		}
		if len(b) > headerSize && name != "state/foreign" && string(b[:slotEnd]) != string(b[slotSize:slotSize+slotEnd]) {
			t.Error(name, "has one slot only")
		}
	}
}

// TestHalfChangedHeaderKeptTheFormerKey: a crash between the two slots of a header
// leaves one of the current key and one of the former. The next pass took such a
// header for done, and whoever had the destroyed key opened the file by its other
// slot.
func TestHalfChangedHeaderKeptTheFormerKey(t *testing.T) {
	for at := range 2 {
		base, keys := vfs.NewMem(), newRing()
		e := New(base, keys)
		ok(t, e.MkdirAll("d", 0o700))
		put(t, e, "d/a", "a")
		thief := newRing()
		thief.last, thief.keys[1] = 1, keys.keys[1]
		old := tree(t, base, "d")["d/a"][:slotSize]
		change(t, e, keys, "d")
		overwrite(t, base, "d/a", int64(at)*slotSize, old)
		is(t, e, "d/a", "a")
		is(t, New(base, thief), "d/a", "a")
		done, err := e.Rewrap("d")
		ok(t, err)
		if done.Files != 1 {
			t.Errorf("slot %d is of the former key: %+v", at, done)
		}
		is(t, e, "d/a", "a")
		if _, err := New(base, thief).Open("d/a"); !errors.Is(err, storage.ErrMissingKey) {
			t.Errorf("slot %d is of the former key, which opens the file: %v", at, err)
		}
	}
}

// TestFileThatMovedDuringARewrapWasLost: a file that is renamed, or linked, to where
// a pass has been keeps its header. Once the former keys were destroyed nothing
// opened it.
func TestFileThatMovedDuringARewrapWasLost(t *testing.T) {
	for _, others := range []int{0, 3} { // files that change in the same pass
		mem, keys := vfs.NewMem(), newRing()
		var move func() error
		inject := errorfs.InjectorFunc(func(op errorfs.Op) (err error) {
			if f := move; f != nil && op.Kind == errorfs.OpList && op.Path == "d/late" {
				move = nil
				err = f()
			}
			return err
		})
		e := New(errorfs.Wrap(mem, inject), keys)
		ok(t, errors.Join(e.MkdirAll("d/early", 0o700), e.MkdirAll("d/late", 0o700)))
		put(t, e, "d/late/a", "a")
		for i := range others {
			put(t, e, fmt.Sprint("d/early/", i), "other")
		}
		ok(t, e.SwitchKey(keys.rotate))
		move = func() error { return e.Rename("d/late/a", "d/early/a") }
		_, err := e.Rewrap("d")
		ok(t, err)
		if move != nil {
			t.Fatal("nothing was moved")
		}
		keys.destroyBefore(keys.last)
		is(t, e, "d/early/a", "a")
	}
}

// Opening and closing LOCK would drop the lock that the process holds on it.
func TestRewrapLeavesTheLockAlone(t *testing.T) {
	dir := t.TempDir()
	var opened []string
	var mu sync.Mutex
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == errorfs.OpOpen || op.Kind == errorfs.OpLink {
			opened = append(opened, filepath.Base(op.Path))
		}
		return nil
	})
	keys := newRing()
	e := New(errorfs.Wrap(vfs.Default, inject), keys)
	lock, err := e.Lock(dir + "/LOCK")
	ok(t, err)
	put(t, e, dir+"/a", "a")
	opened = nil
	change(t, e, keys, dir)
	if len(opened) == 0 || slices.Contains(opened, "LOCK") {
		t.Errorf("opened %v", opened)
	}
	ok(t, lock.Close())
}

// A header under way when the key changes was written behind the pass, under the
// former key, and could never be opened again.
func TestKeySwitchWaitsForHeadersUnderWay(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && first.CompareAndSwap(false, true) {
			close(reached)
			<-release
		}
		return nil
	})
	keys := newRing()
	e := New(errorfs.Wrap(vfs.NewMem(), inject), keys)
	wrote := make(chan error, 1)
	go func() {
		f, err := e.Create("a", vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte("text"))
			err = errors.Join(err, f.Close())
		}
		wrote <- err
	}()
	<-reached
	switched := make(chan error, 1)
	go func() { switched <- e.SwitchKey(keys.rotate) }()
	for e.sealing.TryRLock() { // until the switch stands in line
		e.sealing.RUnlock()
		if len(switched) > 0 {
			break
		}
		runtime.Gosched()
	}
	if id, _ := keys.Current(); id != 1 {
		t.Fatal("the key changed while a header was under way")
	}
	close(release)
	ok(t, <-wrote)
	ok(t, <-switched)
	_, err := e.Rewrap("")
	ok(t, err)
	keys.destroyBefore(2)
	is(t, e, "a", "text")
}

// A rewrap must not bring back a file that is removed under it.
func TestRewrapBringsNothingBack(t *testing.T) {
	for _, moment := range []struct {
		kind errorfs.OpKind
		nth  int32
	}{{errorfs.OpOpen, 1}, {errorfs.OpLink, 1}, {errorfs.OpOpen, 2}, {errorfs.OpFileSyncData, 1}, {errorfs.OpFileWriteAt, 1}, {errorfs.OpFileWriteAt, 2}} {
		mem := vfs.NewMem()
		var on atomic.Bool
		var seen atomic.Int32
		inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if on.Load() && op.Kind == moment.kind && seen.Add(1) == moment.nth {
				on.Store(false)
				return mem.Remove("d/a")
			}
			return nil
		})
		keys := newRing()
		e := New(errorfs.Wrap(mem, inject), keys)
		ok(t, e.MkdirAll("d", 0o700))
		put(t, e, "d/a", "a")
		put(t, e, "d/b", "b")
		on.Store(true)
		change(t, e, keys, "d")
		if on.Load() {
			t.Fatalf("%v: nothing was removed", moment)
		}
		is(t, e, "d/b", "b")
		if names, err := mem.List("d"); err != nil || len(names) != 1 {
			t.Errorf("removed at %v: %v, %v", moment, names, err)
		}
	}
}

// errCrash is what everything returns once the machine is off.
var errCrash = errors.New("crash")

// tear is what a disk may hold after a crash: of each slot that was not synced
// the old bytes, the new ones, or some of the new before the old.
func tear(t testing.TB, mem *vfs.MemFS, rng *mathrand.Rand) map[string][]byte {
	synced, now := tree(t, mem.CrashClone(vfs.CrashCloneCfg{}), "d"), tree(t, mem, "d")
	for name, b := range synced {
		for at := 0; at < headerSize && len(now[name]) == len(b); at += slotSize {
			cut := []int{0, slotSize, rng.IntN(slotEnd)}[rng.IntN(3)]
			copy(b[at:at+slotSize], now[name][at:at+cut])
		}
	}
	for name, b := range now { // a link of its own file, which is not synced
		if strings.Contains(name, rewrapPrefix) {
			synced[name] = b
		}
	}
	return synced
}

// A crash at any moment of a rewrap, or after it, leaves every file open under the
// keys that are left, and the rewrap can be run again.
func TestCrashDuringRewrapLosesNothing(t *testing.T) {
	crashes := 0
	seeds(t, 300, func(t testing.TB, rng *mathrand.Rand) {
		mem, keys := vfs.NewCrashableMem(), newRing()
		files := 1 + rng.IntN(5)
		e := New(mem, keys)
		ok(t, storage.MkdirAll(e, "d", 0o700))
		for i := range files {
			put(t, e, fmt.Sprint("d/", i), fmt.Sprint("text ", i))
		}
		for range 4 { // rewraps, each of which may be cut short
			left := rng.IntN(35 * files) // a rewrap takes about 17 a file
			var crashed map[string][]byte
			inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
				if crashed != nil {
					return errCrash
				}
				if left--; left == 0 {
					crashed = tear(t, mem, rng)
					return errCrash
				}
				return nil
			})
			e := New(errorfs.Wrap(mem, inject), keys)
			ok(t, e.SwitchKey(keys.rotate))
			if _, err := e.Rewrap("d"); err == nil {
				keys.destroyBefore(keys.last)
			} else if crashed == nil {
				t.Fatal(err)
			}
			if crashed == nil && rng.IntN(2) == 0 { // after it
				crashed = tear(t, mem, rng)
			}
			if crashed != nil {
				crashes++
				// A crashable file system cannot be crashed twice: copy it.
				mem = vfs.NewCrashableMem()
				ok(t, storage.MkdirAll(mem, "d", 0o700))
				for name, b := range crashed {
					put(t, mem, name, string(b))
				}
			}
			for i := range files {
				is(t, New(mem, keys), fmt.Sprint("d/", i), fmt.Sprint("text ", i))
			}
		}
		change(t, New(mem, keys), keys, "d")
		for i := range files {
			is(t, New(mem, keys), fmt.Sprint("d/", i), fmt.Sprint("text ", i))
		}
		if names, err := mem.List("d"); err != nil || len(names) != files {
			t.Fatal(names, err)
		}
	})
	if crashes < 50 && *oneSeed == 0 {
		t.Errorf("%d crashes only", crashes)
	}
}

// Keys change while a database is written, flushed, compacted and checkpointed;
// at the end everything opens under the last key alone.
func TestKeysChangeUnderALiveDatabase(t *testing.T) {
	dir, keys := t.TempDir(), newRing()
	e := New(nil, keys)
	db := openPebble(t, e, dir+"/db")
	stop := make(chan struct{})
	var work sync.WaitGroup
	var rows atomic.Int64
	work.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			ok(t, db.Set(row(i), value(i), pebble.NoSync))
			rows.Store(int64(i + 1))
			if i%300 == 0 {
				ok(t, db.Flush())
			}
			if i%1500 == 0 {
				ok(t, db.Checkpoint(fmt.Sprintf("%s/checkpoint-%d", dir, i), pebble.WithFlushedWAL()))
			}
		}
	})
	changed := 0
	for k := 0; k < 12 || rows.Load() < 3500; k++ {
		changed += change(t, e, keys, dir).Files
	}
	close(stop)
	work.Wait()
	ok(t, db.Close())
	change(t, e, keys, dir)
	names, err := os.ReadDir(dir)
	ok(t, err)
	if len(names) < 3 || changed == 0 {
		t.Fatalf("%d directories, %d headers changed", len(names), changed)
	}
	for _, name := range names {
		db := openPebble(t, e, filepath.Join(dir, name.Name()))
		_, closer, err := db.Get(row(0))
		ok(t, err)
		ok(t, errors.Join(closer.Close(), db.Close()))
	}
}
