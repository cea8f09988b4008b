package keyring

import (
	"bytes"
	"fmt"
	"maps"
	"sync"
	"testing"
)

func currentOf(s *StorageKeys) storageKey {
	id, key := s.Current()
	return storageKey{id: id, key: key}
}

// holds checks that exactly these keys are there, and that the last is current.
func holds(t testing.TB, s *StorageKeys, want ...storageKey) {
	t.Helper()
	for _, w := range want {
		if key, ok := s.Key(w.id); !ok || key != w.key {
			t.Fatalf("storage key %d is lost or another", w.id)
		}
	}
	if got := currentOf(s); got != want[len(want)-1] {
		t.Fatalf("current key is %d", got.id)
	}
	if n := len(s.table.Load().entries); n != len(want) {
		t.Fatalf("%d keys, want %d", n, len(want))
	}
}

func TestStorageKeysLive(t *testing.T) {
	c := newCrashFS()
	k := mustOpen(t, c.opt(1))
	one := currentOf(k.Storage())
	if one.id != 1 || one.key == (secret{}) {
		t.Fatal("no first key")
	}
	if _, ok := k.Storage().Key(0); ok {
		t.Fatal("there is a key 0")
	}
	if err := k.Storage().Rotate(); err != nil {
		t.Fatal(err)
	}
	two := currentOf(k.Storage())
	holds(t, k.Storage(), one, two)
	k = mustOpen(t, c.opt(2))
	holds(t, k.Storage(), one, two)
	wantErr(t, k.Storage().DestroyBefore(3), ErrNotDestroyable)
	for range 2 {
		if err := k.Storage().DestroyBefore(2); err != nil {
			t.Fatal(err)
		}
		holds(t, k.Storage(), two)
	}
	k = mustOpen(t, c.opt(3))
	holds(t, k.Storage(), two)
	if err := k.Storage().Rotate(); err != nil {
		t.Fatal(err)
	}
	if three := currentOf(k.Storage()); three.id != 3 {
		t.Fatal("an id was used again")
	}
}

func TestStorageKeysAfterClose(t *testing.T) {
	k := mustOpen(t, newCrashFS().opt(1))
	s := k.Storage()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Key(1); ok {
		t.Fatal("a key is there after Close")
	}
	wantErr(t, s.Rotate(), ErrClosed)
	wantErr(t, s.DestroyBefore(1), ErrClosed)
	defer func() {
		if recover() == nil {
			t.Fatal("a key of zeros was given out")
		}
	}()
	s.Current()
}

// An older copy of the file, today's master key and today's node secret: what
// was destroyed since must stay shut.
func TestOlderStorageKeysStayShut(t *testing.T) {
	c := newCrashFS()
	k := mustOpen(t, c.opt(1))
	files := []string{c.path(storageFormat.name), c.path(storageFormat.name + copySuffix)}
	if err := k.Storage().Rotate(); err != nil {
		t.Fatal(err)
	}
	old := bytes.Clone(c.visible[files[0]].data)
	attack := func() error {
		_, image, err := decodeCopy(storageFormat.magic, old)
		if err != nil {
			t.Fatal(err)
		}
		_, secretImage, err := decodeCopy(secretFormat.magic, c.visible[c.path(secretFormat.name)].data)
		if err != nil {
			t.Fatal(err)
		}
		secrets := &nodeSecrets{master: k.master}
		if secrets.all, err = decodeSecrets(secretImage); err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets.all {
			// The print in the clear is no lock: the thief tries every secret.
			copy(image[1+fingerprintSize:], secretPrintOf(s))
			if _, err := openStorageImage(bytes.Clone(image), secrets); err == nil {
				return nil
			}
		}
		_, err = openStorageImage(image, secrets)
		return err
	}
	if err := attack(); err != nil {
		t.Fatalf("the attack does not work even before the destruction: %v", err)
	}
	if err := k.Storage().DestroyBefore(2); err != nil {
		t.Fatal(err)
	}
	wantErr(t, attack(), ErrDamaged)
	for name, n := range c.visible {
		if _, image, err := decodeCopy(secretFormat.magic, n.data); err == nil && len(image) != 1+32 {
			t.Fatalf("%s still holds a former secret", name)
		}
	}
}

func secretPrintOf(s *secret) []byte { p := secretPrint(s); return p[:] }

func TestEveryFlippedByteOfStorageKeysIsHealed(t *testing.T) {
	c := newCrashFS()
	k := mustOpen(t, c.opt(1))
	want := currentOf(k.Storage())
	for _, f := range []copyFormat{secretFormat, storageFormat} {
		good := c.visible[c.path(f.name)].data
		for _, name := range []string{f.name, f.name + copySuffix} {
			for i := range good {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << (i % 8)
				c.visible[c.path(name)] = &inode{bad}
				holds(t, mustOpen(t, c.opt(2)).Storage(), want)
				if !bytes.Equal(c.visible[c.path(name)].data, good) {
					t.Fatalf("%s, byte %d: not healed", name, i)
				}
			}
		}
	}
}

// Lost storage keys stop the start, and begin anew only if the caller says
// that nothing is under them.
func TestLostStorageKeysAreNotReplacedUnasked(t *testing.T) {
	for _, f := range []copyFormat{secretFormat, storageFormat} {
		c := newCrashFS()
		old := currentOf(mustOpen(t, c.opt(1)).Storage())
		delete(c.visible, c.path(f.name))
		delete(c.visible, c.path(f.name+copySuffix))
		_, err := Open(c.opt(2))
		wantErr(t, err, ErrStorageKeysLost)
		delete(c.visible, c.path(storageFormat.name))
		delete(c.visible, c.path(storageFormat.name+copySuffix))
		opt := c.opt(3)
		opt.AllowNewStorage = true
		s := mustOpen(t, opt).Storage()
		if currentOf(s) == old {
			t.Fatal("the lost key came back")
		}
		holds(t, mustOpen(t, c.opt(4)).Storage(), currentOf(s))
	}
}

func TestStorageFilesRefuseWhatTheyDoNotKnow(t *testing.T) {
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}}
	image := storageImage(t, secrets)
	for _, change := range []struct {
		at   int
		to   byte
		want error
	}{{0, 2, ErrNewerFormat}, {0, 0, ErrDamaged}, {1, image[1] ^ 1, ErrMasterKeyLost}, {9, image[9] ^ 1, ErrDamaged}, {40, image[40] ^ 1, ErrDamaged}} {
		bad := bytes.Clone(image)
		bad[change.at] = change.to
		_, err := openStorageImage(bad, secrets)
		wantErr(t, err, change.want)
	}
	for _, bad := range [][]byte{nil, {1}, append([]byte{0}, make([]byte, 32)...), append([]byte{1}, make([]byte, 33)...)} {
		_, err := decodeSecrets(bad)
		wantErr(t, err, ErrDamaged)
	}
	_, err := decodeSecrets(append([]byte{2}, make([]byte, 32)...))
	wantErr(t, err, ErrNewerFormat)
	twice := &storageTable{entries: []storageKey{{id: 2}, {id: 2}}}
	_, err = decodeStorage(twice.encode())
	wantErr(t, err, ErrDamaged)
}

// memStore keeps the last image.
type memStore struct{ image []byte }

func (m *memStore) Load() ([]byte, error)   { return m.image, nil }
func (m *memStore) Save(image []byte) error { m.image = bytes.Clone(image); return nil }

func storageImage(t testing.TB, secrets *nodeSecrets) []byte {
	store := new(memStore)
	s := &StorageKeys{ring: &Keyring{rand: seeded(3), secrets: secrets}, store: store}
	table := &storageTable{entries: []storageKey{{id: 7, key: *fixedKey(3).raw}, {id: 258, key: *fixedKey(4).raw}}}
	if err := s.save(table); err != nil {
		t.Fatal(err)
	}
	return store.image
}

func TestGoldenStorageKeys(t *testing.T) {
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}}
	image := storageImage(t, secrets)
	goldenCheck(t, "STORAGE", image, goldenStorage)
	back, err := openStorageImage(image, secrets)
	if err != nil || len(back.entries) != 2 || back.entries[1] != (storageKey{id: 258, key: *fixedKey(4).raw}) {
		t.Fatalf("%v, %v", back, err)
	}
	store := new(memStore)
	secrets.store = store
	if err := secrets.save(append(secrets.all, fixedKey(5).raw)); err != nil {
		t.Fatal(err)
	}
	goldenCheck(t, "SECRETS", store.image, goldenSecrets)
}

const (
	goldenStorage = "0147bb8ca02c5556090e8f3c42138a071ac6c150a912520b1c7c69c20d75b61515c1fcc3f242699e1232fa12d4df87ce45d2feb18e5d3d4f4966fe809d61eae72aa5a69656e1bfab83b440ee23ee7721ca2483b529f54192b86bac7356ec98f74ce95eaf9076d487d61100cf08e2b9a9fd7b01f41f"
	goldenSecrets = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202105060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324"
)

func FuzzOpenStorageKeys(f *testing.F) {
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}}
	image := storageImage(f, secrets)
	f.Add(image)
	f.Add(image[:storageAAD])
	f.Add((&storageTable{entries: []storageKey{{id: 1}, {id: 9}}}).encode())
	f.Add(append([]byte{1}, make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = openStorageImage(b, secrets)
		_, _ = decodeSecrets(b)
		if table, err := decodeStorage(b); err == nil && !bytes.Equal(table.encode(), b) {
			t.Fatal("what was accepted encodes otherwise")
		}
	})
}

// storageScript is a life of storage keys. alive and gone are what it was promised.
func storageScript(c *crashFS, alive, gone map[storageKey]bool, retry bool) error {
	var k *Keyring
	rotate := func() error {
		err := k.Storage().Rotate()
		if err == nil {
			alive[currentOf(k.Storage())] = true
		}
		return err
	}
	destroy := func() error {
		current := currentOf(k.Storage())
		for key := range alive { // from here on they may be gone
			if key != current {
				gone[key] = false
				delete(alive, key)
			}
		}
		err := k.Storage().DestroyBefore(current.id)
		for key := range gone {
			gone[key] = gone[key] || err == nil
		}
		return err
	}
	open := func() (err error) {
		if k, err = Open(c.opt(byte(c.steps + 1))); err == nil {
			alive[currentOf(k.Storage())] = true
		}
		return err
	}
	for _, step := range []func() error{open, rotate, destroy, rotate, rotate, destroy, destroy} {
		err := step()
		if err != nil && retry {
			err = step()
		}
		if err != nil {
			return err
		}
	}
	return k.Close()
}

func TestStorageKeysFaultAtEveryStep(t *testing.T) {
	for _, mode := range []string{"before", "after", "torn"} {
		for _, crash := range []bool{true, false} {
			for _, lose := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/crash=%v/lose=%v", mode, crash, lose), func(t *testing.T) {
					storageFaults(t, mode, crash, lose)
				})
			}
		}
	}
}

func storageFaults(t *testing.T, mode string, crash, lose bool) {
	for at := 1; ; at++ {
		c := newCrashFS()
		c.failAt, c.mode, c.crash = at, mode, crash
		alive, gone := map[storageKey]bool{}, map[storageKey]bool{}
		err := storageScript(c, alive, gone, !crash)
		if !c.fired {
			if err != nil || at < 60 {
				t.Fatalf("%d faults bit; %v", at, err)
			}
			return
		}
		if crash != (err != nil) {
			t.Fatalf("step %d: crash %v, error %v", at, crash, err)
		}
		c.reboot(lose)
		if crash {
			faultWhileHealing(t, c, lose)
		}
		k, err := Open(c.opt(99))
		if err != nil {
			t.Fatalf("step %d: %v", at, err)
		}
		for key := range alive {
			if got, ok := k.Storage().Key(key.id); !ok || got != key.key {
				t.Fatalf("step %d: storage key %d is lost", at, key.id)
			}
		}
		for key := range maps.All(gone) {
			if got, ok := k.Storage().Key(key.id); gone[key] && ok && got == key.key {
				t.Fatalf("step %d: destroyed storage key %d is back", at, key.id)
			}
		}
		if n := len(k.secrets.all); n != 1 {
			t.Fatalf("step %d: %d node secrets after the start", at, n)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStorageKeysAreReadWhileTheyChange(t *testing.T) {
	k := mustOpen(t, newCrashFS().opt(1))
	s := k.Storage()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id, key := s.Current()
				if got, ok := s.Key(id); ok && got != key {
					t.Error("an id has two keys")
				}
			}
		})
	}
	for range 50 {
		id, _ := s.Current()
		if err := s.Rotate(); err != nil {
			t.Error(err)
		}
		if err := s.DestroyBefore(id + 1); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}
