package node

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// powerFS is the file system of a node whose power can be cut before any step
// that writes. Each step holds the lock for reading and the cut holds it for
// writing, so that nothing becomes durable while the disk's image is taken.
type powerFS struct {
	vfs.FS
	mem  *vfs.MemFS
	lock sync.RWMutex

	mu    sync.Mutex
	steps int    // steps that write, so far
	cutAt int    // the step before which cut is called; 0 = never
	cut   func() // with lock held for writing
}

func newPowerFS(mem *vfs.MemFS) *powerFS { return &powerFS{FS: mem, mem: mem} }

// arm has the power cut before the step that is so many steps away.
func (p *powerFS) arm(steps int, cut func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutAt, p.cut = p.steps+steps, cut
}

// now cuts the power if that has not happened yet.
func (p *powerFS) now() {
	p.mu.Lock()
	cut := p.cut
	p.cut = nil
	p.mu.Unlock()
	if cut != nil {
		p.lock.Lock()
		defer p.lock.Unlock()
		cut()
	}
}

// step counts one step and returns what ends it.
func (p *powerFS) step() func() {
	p.mu.Lock()
	p.steps++
	due := p.cut != nil && p.steps >= p.cutAt
	p.mu.Unlock()
	if due {
		p.now()
	}
	p.lock.RLock()
	return p.lock.RUnlock
}

func (p *powerFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	defer p.step()()
	return p.file(p.FS.Create(name, c))
}

func (p *powerFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	defer p.step()()
	return p.file(p.FS.OpenReadWrite(name, c, o...))
}

func (p *powerFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	defer p.step()()
	return p.file(p.FS.ReuseForWrite(from, to, c))
}

func (p *powerFS) OpenDir(name string) (vfs.File, error) { return p.file(p.FS.OpenDir(name)) }

func (p *powerFS) Link(from, to string) error {
	defer p.step()()
	return p.FS.Link(from, to)
}

func (p *powerFS) Rename(from, to string) error {
	defer p.step()()
	return p.FS.Rename(from, to)
}

func (p *powerFS) Remove(name string) error {
	defer p.step()()
	return p.FS.Remove(name)
}

func (p *powerFS) RemoveAll(name string) error {
	defer p.step()()
	return p.FS.RemoveAll(name)
}

func (p *powerFS) MkdirAll(dir string, perm os.FileMode) error {
	defer p.step()()
	return p.FS.MkdirAll(dir, perm)
}

func (p *powerFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return powerFile{f, p}, nil
}

type powerFile struct {
	vfs.File
	fs *powerFS
}

func (f powerFile) Write(b []byte) (int, error) {
	defer f.fs.step()()
	return f.File.Write(b)
}

func (f powerFile) WriteAt(b []byte, at int64) (int, error) {
	defer f.fs.step()()
	return f.File.WriteAt(b, at)
}

func (f powerFile) Sync() error {
	defer f.fs.step()()
	return f.File.Sync()
}

func (f powerFile) SyncData() error {
	defer f.fs.step()()
	return f.File.SyncData()
}

func (f powerFile) SyncTo(length int64) (bool, error) {
	defer f.fs.step()()
	return f.File.SyncTo(length)
}

// diskImage is what a loss of power leaves of a node: of the files on the seam
// what was synced and keep percent of the rest, and of the files that NATS and
// bolt write on the real disk a copy.
type diskImage struct {
	fs   *vfs.MemFS
	real map[string][]byte // by path below the data directory
}

// takeImage makes an image of the data directory dir. early is raft.db as it was
// when the node had opened, or nil.
//
// NATS syncs each message before it acknowledges it, so the present file holds
// what it has to. Its index is a cache that need not be synced, and is missing
// at random. bolt does not sync entries on a single voter: each page of raft.db
// is the present one or, as if it had not reached the disk, the early one.
func takeImage(t *testing.T, fs *powerFS, dir string, keep int, rng *rand.Rand, early *raftFile) *diskImage {
	img := &diskImage{fs: fs.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: keep, RNG: rng}), real: restingFiles(t, dir)}
	for _, name := range slices.Sorted(maps.Keys(img.real)) { // in order, so that a seed repeats
		b := img.real[name]
		switch {
		case strings.HasSuffix(name, "index.db") && rng.IntN(100) >= keep:
			delete(img.real, name)
		case strings.HasSuffix(name, raftFileName) && early.is(filepath.Join(dir, name)):
			img.real[name] = mixPages(b, early.data, keep, rng)
		}
	}
	return img
}

const raftFileName = "raft.db"

// raftFile is raft.db at a moment since which bolt has synced nothing: term and
// vote, which it syncs, change only while the node opens, and a file that takes the
// place of this one was synced as a whole. The open file keeps its number from
// being used again.
type raftFile struct {
	data []byte
	file *os.File
}

func keepRaftFile(t *testing.T, dir string) *raftFile {
	f, err := os.Open(filepath.Join(dir, "shards", "0", raftFileName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return &raftFile{data, f}
}

// is tells whether the file at path is still this one.
func (r *raftFile) is(path string) bool {
	if r == nil {
		return false
	}
	now, err := os.Stat(path)
	if err != nil {
		return false
	}
	then, err := r.file.Stat()
	return err == nil && os.SameFile(now, then)
}

func mixPages(now, early []byte, keep int, rng *rand.Rand) []byte {
	page := os.Getpagesize()
	for at := 0; at+page <= min(len(now), len(early)); at += page {
		if rng.IntN(100) >= keep {
			copy(now[at:at+page], early[at:])
		}
	}
	return now
}

// restingFiles reads the real disk when nothing moves there any more: a copy of
// files that are being written, one after the other, would be of no moment that a
// disk has ever seen. It does not take long, because all else waits for the seam
// or the ledger.
func restingFiles(t *testing.T, dir string) map[string][]byte {
	files := realFiles(t, dir)
	for range 100 {
		again := realFiles(t, dir)
		if maps.EqualFunc(files, again, bytes.Equal) {
			return files
		}
		files = again
	}
	t.Error("NATS or bolt goes on writing although nobody asks them to")
	return files
}

// realFiles reads what lies in the data directory on the real disk. Files may
// change, come and go meanwhile.
func realFiles(t *testing.T, dir string) map[string][]byte {
	out := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, rerr := filepath.Rel(dir, path)
		out[name] = b
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Error(err)
	}
	return out
}

// restore puts the real part of the image into dir, which loses all else.
func (img *diskImage) restore(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, b := range img.real {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
