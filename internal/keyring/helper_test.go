package keyring

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"mneme/internal/storage"
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

// disk is a file system in memory that loses on a crash what was not synced.
// Before each step that changes it, hook is asked whether the step fails.
type disk struct {
	*vfs.MemFS
	hook func() error
}

func newDisk() *disk { return &disk{MemFS: vfs.NewCrashableMem()} }

// MaybeError implements errorfs.Injector.
func (d *disk) MaybeError(op errorfs.Op) error {
	if d.hook == nil || op.Kind != errorfs.OpOpenDir && op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	return d.hook()
}

// String implements errorfs.Injector.
func (d *disk) String() string { return "disk" }

// crashed gives what a crash at this moment leaves, with so many percent of
// what was not synced.
func (d *disk) crashed(percent int, rng *rand.Rand) *disk {
	return &disk{MemFS: d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})}
}

func (d *disk) path(name string) string { return filepath.Join("data", KeysDir, name) }

func (d *disk) opt(seed byte) Options {
	return Options{Dir: "data", FS: errorfs.Wrap(d.MemFS, d), Rand: seeded(seed), AllowCreate: true}
}

// get gives a file's bytes, nil if it is not there.
func (d *disk) get(path string) []byte {
	b, err := storage.ReadFile(d.MemFS, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	return b
}

func (d *disk) put(path string, data []byte) {
	err := storage.MkdirAll(d.MemFS, filepath.Dir(path), 0o700)
	if err == nil {
		err = storage.ReplaceFile(d.MemFS, path, data, 0o600)
	}
	if err != nil {
		panic(err)
	}
}

func (d *disk) remove(path string) {
	if err := d.Remove(path); err != nil {
		panic(err)
	}
}

// files gives all files of the folder by name.
func (d *disk) files() map[string][]byte {
	out := map[string][]byte{}
	names, err := d.List(d.path(""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	for _, name := range names {
		out[name] = d.get(d.path(name))
	}
	return out
}

// thief gives all data keys that somebody comes by who has everything in the
// folder today, today's master key and these older copies of the keyring's file.
func (d *disk) thief(t testing.TB, stolen ...[]byte) map[secret]bool {
	t.Helper()
	opt := d.opt(0)
	if err := opt.fill(); err != nil {
		t.Fatal(err)
	}
	master, err := masterFile{&opt}.read("")
	if err != nil || master == nil {
		t.Fatalf("master key: %v", err)
	}
	secrets := &nodeSecrets{master: master}
	for _, raw := range d.files() {
		if head, err := decodeHead(secretFormat.magic, raw); err == nil {
			all, err := decodeSecrets(head.image)
			if err != nil {
				t.Fatal(err)
			}
			secrets.all = append(secrets.all, all...)
		}
		stolen = append(stolen, raw)
	}
	found := map[secret]bool{}
	var commandKeys []*secret
	for range 3 { // a key found in one file may open another
		for _, raw := range stolen {
			head, err := decodeHead(ringFormat.magic, raw)
			if err != nil {
				continue
			}
			for _, s := range secrets.all {
				sealed := head.image[wrappedAAD:]
				plain, err := newGCM(secrets.combine(s, imageLabel)).Open(nil, sealed[:nonceSize], sealed[nonceSize:], head.image[:wrappedAAD])
				if err != nil {
					continue
				}
				st, err := decodeState(plain, new(macPool))
				if err != nil {
					t.Fatal(err)
				}
				st.table.collect(found)
				commandKeys = append(commandKeys, st.command)
			}
			commandKeys = append(commandKeys, stealRecords(raw, head, commandKeys, found)...)
		}
	}
	return found
}

// stealRecords opens the records behind a head with any key there is.
func stealRecords(raw []byte, head copyHead, keys []*secret, found map[secret]bool) (more []*secret) {
	at, sum := head.end, head.sum
	for {
		record := recordAt(raw, at, sum)
		if record == nil {
			return more
		}
		for _, key := range keys {
			c, err := openCommand(record[cursorSize:], key)
			if err != nil || c == nil {
				continue
			}
			for _, f := range c.fresh {
				found[*f.raw] = true
			}
			if c.index != nil {
				found[*c.index] = true
			}
			if c.next != nil {
				more = append(more, c.next)
			}
		}
		at += 4 + len(record) + recordSum
		sum = raw[at-recordSum : at]
	}
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
