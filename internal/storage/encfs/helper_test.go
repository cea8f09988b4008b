package encfs

import (
	"bytes"
	"crypto/rand"
	"errors"
	"flag"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

var oneSeed = flag.Uint64("seed", 0, "run the crash and twin tests with this seed only")

// seeds runs a test with seeds that differ in each run of the test, and prints
// how to run one that fails again.
func seeds(t *testing.T, n int, run func(t testing.TB, rng *mathrand.Rand)) {
	t.Helper()
	first := uint64(time.Now().UnixNano())
	if *oneSeed != 0 {
		first, n = *oneSeed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		run(seeded{t, seed}, mathrand.New(mathrand.NewPCG(seed, 7)))
	}
}

type seeded struct {
	*testing.T
	seed uint64
}

func (s seeded) Fatal(args ...any) {
	s.Helper()
	s.replay()
	s.T.Fatal(args...)
}

func (s seeded) Fatalf(format string, args ...any) {
	s.Helper()
	s.replay()
	s.T.Fatalf(format, args...)
}

func (s seeded) replay() {
	s.Helper()
	s.Logf("again: go test ./internal/storage/encfs -run '^%s$' -seed %d", s.Name(), s.seed)
}

// ring is a KeySource whose keys come and go.
type ring struct {
	mu   sync.Mutex
	keys map[uint32][32]byte
	last uint32
}

func newRing() *ring {
	r := &ring{keys: map[uint32][32]byte{}}
	_ = r.rotate()
	return r
}

func (r *ring) rotate() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var key [32]byte
	_, _ = rand.Read(key[:])
	r.last++
	r.keys[r.last] = key
	return nil
}

func (r *ring) destroyBefore(id uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.keys {
		if k < id {
			delete(r.keys, k)
		}
	}
}

func (r *ring) Current() (uint32, [32]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.keys[r.last]
}

func (r *ring) Key(id uint32) ([32]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.keys[id]
	return k, ok
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file through fsys.
func put(t testing.TB, fsys vfs.FS, name, text string) {
	t.Helper()
	ok(t, storage.ReplaceFile(fsys, name, []byte(text), 0o600))
}

// is checks a file's content as fsys shows it.
func is(t testing.TB, fsys vfs.FS, name, want string) {
	t.Helper()
	b, err := storage.ReadFile(fsys, name)
	if err != nil || string(b) != want {
		t.Fatalf("%s holds %.40q, %v; want %.40q", name, b, err, want)
	}
}

// overwrite changes bytes of a file on the base.
func overwrite(t testing.TB, base vfs.FS, name string, off int64, b []byte) {
	t.Helper()
	f, err := base.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	ok(t, err)
	_, err = f.WriteAt(bytes.Clone(b), off)
	ok(t, errors.Join(err, f.Sync(), f.Close()))
}

// tree reads every file below a directory.
func tree(t testing.TB, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	names, err := fsys.List(dir)
	ok(t, err)
	for _, name := range names {
		p := path.Join(dir, name)
		info, err := fsys.Stat(p)
		ok(t, err)
		if info.IsDir() {
			for k, v := range tree(t, fsys, p) {
				out[k] = v
			}
			continue
		}
		f, err := fsys.Open(p)
		ok(t, err)
		b, err := io.ReadAll(f)
		ok(t, errors.Join(err, f.Close()))
		out[p] = b
	}
	return out
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
