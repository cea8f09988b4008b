package encfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/storage"
)

// twin does the same on an encrypting and on a plain file system.
type twin struct {
	t    testing.TB
	rng  *mathrand.Rand
	encs vfs.FS
	both [2]vfs.FS
}

func (w *twin) name() string { return fmt.Sprintf("d/%d", w.rng.IntN(6)) }

// each runs f on both and compares what it returns.
func (w *twin) each(what string, f func(fsys vfs.FS) (string, error)) {
	w.t.Helper()
	a, errA := f(w.both[0])
	b, errB := f(w.both[1])
	if a != b || (errA == nil) != (errB == nil) || isNotExist(errA) != isNotExist(errB) {
		w.t.Fatalf("%s: encrypted %.60q, %v; plain %.60q, %v", what, a, errA, b, errB)
	}
}

func (w *twin) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

// step does one random thing to both.
func (w *twin) step() {
	name, other := w.name(), w.name()
	switch w.rng.IntN(9) {
	case 0, 1: // create and write in pieces
		pieces := make([][]byte, w.rng.IntN(6))
		for i := range pieces {
			pieces[i] = w.bytes(w.rng.IntN([]int{2, 40, 5000, 200_000}[w.rng.IntN(4)]))
		}
		w.each("create", func(fsys vfs.FS) (string, error) {
			f, err := fsys.Create(name, vfs.WriteCategoryUnspecified)
			if err != nil {
				return "", err
			}
			for _, p := range pieces {
				if n, err := f.Write(bytes.Clone(p)); err != nil || n != len(p) {
					return "", fmt.Errorf("wrote %d: %w", n, err)
				}
			}
			return "", errors.Join(f.Sync(), f.Close())
		})
	case 2: // overwrite or append
		p, at := w.bytes(1+w.rng.IntN(3000)), w.rng.Float64()
		w.each("write at", func(fsys vfs.FS) (string, error) {
			f, err := fsys.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
			if err != nil {
				return "", err
			}
			info, err := f.Stat()
			if err == nil {
				_, err = f.WriteAt(bytes.Clone(p), int64(at*float64(info.Size()+1)))
			}
			return "", errors.Join(err, f.Close())
		})
	case 3: // the stream of a file opened for both
		p := w.bytes(w.rng.IntN(100))
		w.each("write", func(fsys vfs.FS) (string, error) {
			f, err := fsys.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
			if err != nil {
				return "", err
			}
			_, err = f.Write(bytes.Clone(p))
			rest, readErr := io.ReadAll(f)
			return string(rest), errors.Join(err, readErr, f.Close())
		})
	case 4:
		w.each("rename", func(fsys vfs.FS) (string, error) { return "", fsys.Rename(name, other) })
	case 5:
		w.each("remove", func(fsys vfs.FS) (string, error) { return "", fsys.Remove(name) })
	case 6:
		w.each("link", func(fsys vfs.FS) (string, error) { return "", fsys.Link(name, other) })
	case 7: // read anywhere
		off, n := w.rng.Int64N(250_000), w.rng.IntN(70_000)
		w.each("read at", func(fsys vfs.FS) (string, error) {
			f, err := fsys.Open(name)
			if err != nil {
				return "", err
			}
			p := make([]byte, n)
			n, err := f.ReadAt(p, off)
			return fmt.Sprintf("%x %v", p[:n], err), f.Close()
		})
	case 8:
		keys := w.encs.(*FS).keys.(*ring)
		ok(w.t, w.encs.(*FS).SwitchKey(keys.rotate))
		_, err := w.encs.(*FS).Rewrap("d")
		ok(w.t, err)
		keys.destroyBefore(keys.last)
	}
}

func (w *twin) compare() {
	w.t.Helper()
	w.each("list", func(fsys vfs.FS) (string, error) {
		names, err := fsys.List("d")
		slices.Sort(names)
		for i, name := range names {
			info, statErr := fsys.Stat("d/" + name)
			ok(w.t, statErr)
			b, readErr := storage.ReadFile(fsys, "d/"+name)
			ok(w.t, readErr)
			names[i] = fmt.Sprintf("%s %d %x", name, info.Size(), b)
		}
		return fmt.Sprint(names), err
	})
}

// Whatever is done to both, an encrypting file system shows what a plain one does.
func TestLooksLikeAPlainFileSystem(t *testing.T) {
	seeds(t, 8, func(t testing.TB, rng *mathrand.Rand) {
		e := New(vfs.NewMem(), newRing())
		w := &twin{t: t, rng: rng, encs: e, both: [2]vfs.FS{e, vfs.NewMem()}}
		w.each("mkdir", func(fsys vfs.FS) (string, error) { return "", fsys.MkdirAll("d", 0o700) })
		for range 60 {
			w.step()
			w.compare()
		}
	})
}

// The system's own files: descriptors, preallocation and sync by range pass through.
func TestOnTheSystemsFiles(t *testing.T) {
	dir := t.TempDir()
	e := New(nil, newRing())
	f, err := e.Create(dir+"/a.log", vfs.WriteCategoryUnspecified)
	ok(t, err)
	if f.Fd() == vfs.InvalidFd {
		t.Error("no descriptor: Pebble would not preallocate")
	}
	ok(t, f.Preallocate(0, 1<<20))
	_, err = f.Write([]byte("some text"))
	ok(t, err)
	_, err = f.SyncTo(9)
	ok(t, errors.Join(err, f.SyncData(), f.Close()))
	is(t, e, dir+"/a.log", "some text")
	if info, err := e.Stat(dir + "/a.log"); err != nil || info.Size() != 9 {
		t.Error(info.Size(), err)
	}
	r, err := e.Open(dir+"/a.log", vfs.RandomReadsOption)
	ok(t, err)
	_ = r.Prefetch(0, 9) // Linux's returns errno 0 as an error
	ok(t, r.Close())
	if base, err := vfs.Default.Stat(dir + "/a.log"); err != nil || base.Size() != headerSize+9 {
		t.Error(base.Size(), err)
	}
}

// A marker file is made and never written; it must stay empty, and open.
func TestEmptyFileStaysEmpty(t *testing.T) {
	base := vfs.NewMem()
	e := New(base, newRing())
	f, err := e.Create("marker", vfs.WriteCategoryUnspecified)
	ok(t, errors.Join(err, f.Sync(), f.Close()))
	if info, err := base.Stat("marker"); err != nil || info.Size() != 0 {
		t.Error("a file that nobody wrote to has", info.Size(), "bytes")
	}
	is(t, e, "marker", "")
	overwrite(t, base, "marker", 0, make([]byte, headerSize)) // a crash left a header that was never synced
	is(t, e, "marker", "")
	rw, err := e.OpenReadWrite("marker", vfs.WriteCategoryUnspecified)
	ok(t, err)
	_, err = rw.Write([]byte("now"))
	ok(t, errors.Join(err, rw.Close()))
	is(t, e, "marker", "now")
}

// A header of zeros with content behind it is damage, never an empty file: the
// last log of a database would lose synced rows without a word.
func TestZeroedHeaderIsDamage(t *testing.T) {
	base := vfs.NewMem()
	e := New(base, newRing())
	put(t, e, "000002.log", "synced rows")
	overwrite(t, base, "000002.log", 0, make([]byte, headerSize))
	if _, err := e.Open("000002.log"); !errors.Is(err, storage.ErrDamaged) {
		t.Fatal(err)
	}
}

// A file that is reused for another log gets another key: text under the same key
// at the same offset is read off two images of the disk.
func TestReusedLogGetsANewKey(t *testing.T) {
	base := vfs.NewMem()
	e := New(base, newRing())
	text := string(make([]byte, 4096))
	put(t, e, "1.log", text)
	before, err := storage.ReadFile(base, "1.log")
	ok(t, err)
	f, err := e.ReuseForWrite("1.log", "2.log", vfs.WriteCategoryUnspecified)
	ok(t, err)
	_, err = f.Write([]byte(text))
	ok(t, errors.Join(err, f.Close()))
	after, err := storage.ReadFile(base, "2.log")
	ok(t, err)
	if bytes.Equal(before[headerSize:], after[headerSize:]) {
		t.Error("the same key stream twice")
	}
	if _, err := e.Stat("1.log"); !isNotExist(err) {
		t.Error("the old log is still there:", err)
	}
}

// Pebble writes the same slice to two files and again after an error.
func TestWriteLeavesTheCallersBytes(t *testing.T) {
	e := New(vfs.NewMem(), newRing())
	f, err := e.Create("a", vfs.WriteCategoryUnspecified)
	ok(t, err)
	p := bytes.Repeat([]byte("caller"), 40_000)
	want := bytes.Clone(p)
	_, err = f.Write(p)
	ok(t, errors.Join(err, f.Close()))
	if !bytes.Equal(p, want) {
		t.Fatal("changed")
	}
}

// shortFS writes a part of what it is given, once, and fails.
type shortFS struct {
	vfs.FS
	short int // bytes; negative: no more
}

type shortFile struct {
	vfs.File
	fs *shortFS
}

func (s *shortFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	return &shortFile{f, s}, err
}

func (s *shortFile) Write(p []byte) (int, error) {
	if cut := s.fs.short; cut >= 0 && cut < len(p) {
		s.fs.short = -1
		n, err := s.File.Write(p[:cut])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return s.File.Write(p)
}

// After a short write the caller goes on with the rest, which must be encrypted
// for where it stands.
func TestGoesOnAfterAShortWrite(t *testing.T) {
	short := &shortFS{FS: vfs.NewMem(), short: -1}
	e := New(short, newRing())
	f, err := e.Create("a", vfs.WriteCategoryUnspecified)
	ok(t, err)
	_, err = f.Write([]byte("begins, "))
	ok(t, err)
	short.short = 5
	n, err := f.Write([]byte("and goes on"))
	if n != 5 || !storage.IsNoSpace(err) {
		t.Fatal(n, err)
	}
	_, err = f.Write([]byte("oes on"))
	ok(t, errors.Join(err, f.Close()))
	is(t, e, "a", "begins, and goes on")
}

// A header that is half written is not completed later: the key may have changed.
func TestHalfAHeaderEndsTheFile(t *testing.T) {
	short := &shortFS{FS: vfs.NewMem(), short: 100}
	f, err := New(short, newRing()).Create("a", vfs.WriteCategoryUnspecified)
	ok(t, err)
	for range 2 {
		if n, err := f.Write([]byte("text")); n != 0 || !storage.IsNoSpace(err) {
			t.Fatal(n, err)
		}
	}
	ok(t, f.Close())
}

// The first content follows only after the header is on disk.
func TestHeaderIsSyncedBeforeContent(t *testing.T) {
	var ops []errorfs.OpKind
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync {
			ops = append(ops, op.Kind)
		}
		return nil
	})
	f, err := New(errorfs.Wrap(vfs.NewMem(), inject), newRing()).Create("a", vfs.WriteCategoryUnspecified)
	ok(t, err)
	for range 3 {
		_, err = f.Write([]byte("text"))
		ok(t, err)
	}
	ok(t, f.Close())
	if want := []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSyncData, errorfs.OpFileWrite, errorfs.OpFileWrite, errorfs.OpFileWrite}; !slices.Equal(ops, want) {
		t.Fatal(ops)
	}
}
