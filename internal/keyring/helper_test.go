package keyring

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func seeded(n byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{n}) }

func mustOpen(t testing.TB, opt Options) *Keyring {
	t.Helper()
	k, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

var nsA, nsB = NamespaceID{1, 0xA}, NamespaceID{1, 0xB}

var errFault = errors.New("injected fault")

type inode struct{ data []byte }

// crashFS keeps files in memory and knows what a crash would leave: a file's
// bytes are durable once WriteSync returned, its name once SyncDir did. Step
// failAt fails, before, after or (for a write) in the middle of its effect;
// with crash set, every later step fails too.
type crashFS struct {
	mu      sync.Mutex
	visible map[string]*inode
	durable map[string]*inode
	steps   int
	failAt  int // 0: never
	mode    string
	crash   bool
	fired   bool
}

func newCrashFS() *crashFS {
	return &crashFS{visible: map[string]*inode{}, durable: map[string]*inode{}}
}

// step runs effect, or fails as planned.
func (c *crashFS) step(effect func(torn bool) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps++
	if c.fired && c.crash {
		return errFault
	}
	if c.failAt == 0 || c.steps != c.failAt {
		return effect(false)
	}
	c.fired = true
	switch c.mode {
	case "after":
		_ = effect(false)
	case "torn":
		_ = effect(true)
	}
	return errFault
}

func (c *crashFS) MkdirAll(string) error {
	return c.step(func(bool) error { return nil })
}

func (c *crashFS) ReadFile(name string) (out []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.visible[name]; ok {
		return append([]byte(nil), n.data...), nil
	}
	return nil, fs.ErrNotExist
}

func (c *crashFS) WriteSync(name string, data []byte) error {
	return c.step(func(torn bool) error {
		if torn {
			data = data[:len(data)/2]
		}
		if c.visible[name] == nil {
			c.visible[name] = new(inode)
		}
		c.visible[name].data = append([]byte(nil), data...)
		return nil
	})
}

func (c *crashFS) Rename(from, to string) error {
	return c.step(func(bool) error {
		n, ok := c.visible[from]
		if !ok {
			return fs.ErrNotExist
		}
		c.visible[to] = n
		delete(c.visible, from)
		return nil
	})
}

func (c *crashFS) Remove(name string) error {
	return c.step(func(bool) error {
		if c.visible[name] == nil {
			return fs.ErrNotExist
		}
		delete(c.visible, name)
		return nil
	})
}

func (c *crashFS) SyncDir(dir string) error {
	return c.step(func(bool) error {
		maps.DeleteFunc(c.durable, func(n string, _ *inode) bool { return filepath.Dir(n) == dir })
		for n, i := range c.visible {
			if filepath.Dir(n) == dir {
				c.durable[n] = i
			}
		}
		return nil
	})
}

// reboot drops what was not durable, or keeps it: a crash may do either.
func (c *crashFS) reboot(lose bool) {
	if lose {
		c.visible = maps.Clone(c.durable)
	}
	c.durable = maps.Clone(c.visible)
	c.failAt, c.fired, c.steps = 0, false, 0
}

func (c *crashFS) path(name string) string { return filepath.Join("data", KeysDir, name) }

func (c *crashFS) opt(seed byte) Options {
	return Options{Dir: "data", FS: c, Rand: seeded(seed), AllowCreate: true, TermCache: 64}
}

// recoverable opens every keyring file with the master key, and the old image
// with every intermediate key so found, and gives all data keys it comes by.
func recoverable(t testing.TB, c *crashFS, old []byte) map[secret]bool {
	t.Helper()
	found := map[secret]bool{}
	master, err := readMaster(c, filepath.Join("data", KeysDir))
	if err != nil || master == nil {
		t.Fatalf("master key: %v", err)
	}
	for name, n := range c.visible {
		_, image, err := decodeCopy(ringFormat.magic, n.data)
		if strings.HasSuffix(name, masterName) || err != nil {
			continue
		}
		tab, mid, err := openImage(image, master, new(macPool), newTermCache(2))
		if err != nil {
			t.Fatal(err)
		}
		tab.collect(found)
		if old == nil {
			continue
		}
		sealed := old[imageWrapEnd:]
		plain, err := newGCM(mid).Open(nil, sealed[:nonceSize], sealed[nonceSize:], old[:imageWrapEnd])
		if err == nil {
			tab, err := decodeTable(plain, new(macPool), newTermCache(2))
			if err != nil {
				t.Fatal(err)
			}
			tab.collect(found)
		}
	}
	return found
}

func (t *table) collect(into map[secret]bool) {
	for _, s := range t.spaces {
		into[*s.names.index] = true
		for _, d := range s.keys {
			into[*d.raw] = true
		}
	}
}

// withVersion changes the byte at i and mends the checksum at the end.
func withVersion(raw []byte, i int, v byte) []byte {
	out := append([]byte(nil), raw...)
	out[i] = v
	body := out[:len(out)-sha256.Size]
	sum := sha256.Sum256(body)
	return append(body[:len(body):len(body)], sum[:]...)
}

func be64(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
