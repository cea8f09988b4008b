package keyring

import (
	"bytes"
	"sync"
	"testing"

	"mneme/internal/storage"
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
	c := newDisk()
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
	k := mustOpen(t, newDisk().opt(1))
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
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	if err := k.Storage().Rotate(); err != nil {
		t.Fatal(err)
	}
	old := c.get(c.path(storageFormat.name))
	attack := func() bool {
		head := must[copyHead](t)(decodeHead(storageFormat.magic, old))
		mine := must[copyHead](t)(decodeHead(secretFormat.magic, c.get(c.path(secretFormat.name))))
		secrets := &nodeSecrets{master: k.master, all: must[[]*secret](t)(decodeSecrets(mine.image))}
		for _, s := range secrets.all { // the print in the clear is no lock
			sealed := head.image[wrappedAAD:]
			if _, err := newGCM(secrets.combine(s, storageLabel)).Open(nil, sealed[:nonceSize], sealed[nonceSize:], head.image[:wrappedAAD]); err == nil {
				return true
			}
		}
		return false
	}
	if !attack() {
		t.Fatal("the attack does not work even before the destruction")
	}
	if err := k.Storage().DestroyBefore(2); err != nil {
		t.Fatal(err)
	}
	if attack() {
		t.Fatal("the older copy opens still")
	}
	for name, raw := range c.files() {
		if head, err := decodeHead(secretFormat.magic, raw); err == nil && len(head.image) != 1+32 {
			t.Fatalf("%s still holds a former secret", name)
		}
	}
}

func TestEveryFlippedByteOfStorageKeysIsHealed(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	want := currentOf(k.Storage())
	for _, f := range []copyFormat{secretFormat, storageFormat} {
		good := c.get(c.path(f.name))
		for _, name := range []string{f.name, f.name + copySuffix} {
			for i := range good {
				bad := bytes.Clone(good)
				bad[i] ^= 1 << (i % 8)
				c.put(c.path(name), bad)
				holds(t, mustOpen(t, c.opt(2)).Storage(), want)
				if !bytes.Equal(c.get(c.path(name)), good) {
					t.Fatalf("%s, byte %d: not healed", name, i)
				}
			}
		}
	}
}

// Lost storage keys stop the start, and begin anew only if the caller says
// that nothing is under them.
func TestLostStorageKeysAreNotReplacedUnasked(t *testing.T) {
	c := newDisk()
	old := currentOf(mustOpen(t, c.opt(1)).Storage())
	c.remove(c.path(storageFormat.name))
	c.remove(c.path(storageFormat.name + copySuffix))
	_, err := Open(c.opt(2))
	wantErr(t, err, ErrStorageKeysLost)
	opt := c.opt(3)
	opt.AllowNewStorage = true
	s := mustOpen(t, opt).Storage()
	if currentOf(s) == old {
		t.Fatal("the lost key came back")
	}
	holds(t, mustOpen(t, c.opt(4)).Storage(), currentOf(s))
}

func TestLostNodeSecretIsNotReplaced(t *testing.T) {
	c := newDisk()
	mustOpen(t, c.opt(1))
	good := c.get(c.path(secretFormat.name))
	c.remove(c.path(secretFormat.name))
	c.remove(c.path(secretFormat.name + copySuffix))
	opt := c.opt(2)
	opt.AllowNewStorage = true
	_, err := Open(opt)
	wantErr(t, err, ErrNodeSecretLost)
	if c.get(c.path(secretFormat.name)) != nil {
		t.Fatal("a new secret shuts the keyring for ever")
	}
	c.put(c.path(secretFormat.name), good)
	mustOpen(t, c.opt(3))
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

func storageImage(t testing.TB, secrets *nodeSecrets) []byte {
	secrets.rand = seeded(3)
	table := &storageTable{entries: []storageKey{{id: 7, key: *fixedKey(3).raw}, {id: 258, key: *fixedKey(4).raw}}}
	return must[[]byte](t)(secrets.wrap(storageVersion, storageLabel, table.encode()))
}

func TestGoldenStorageKeys(t *testing.T) {
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}}
	image := storageImage(t, secrets)
	goldenCheck(t, "STORAGE", image, goldenStorage)
	back, err := openStorageImage(image, secrets)
	if err != nil || len(back.entries) != 2 || back.entries[1] != (storageKey{id: 258, key: *fixedKey(4).raw}) {
		t.Fatalf("%v, %v", back, err)
	}
	opt := newDisk().opt(1)
	if err := opt.fill(); err != nil {
		t.Fatal(err)
	}
	if err := storage.MkdirAll(opt.FS, opt.keys(), keysDirMode); err != nil {
		t.Fatal(err)
	}
	secrets.file = newJournal(secretFormat, &opt)
	if err := secrets.save(append(secrets.all, fixedKey(5).raw)); err != nil {
		t.Fatal(err)
	}
	saved, _, err := secrets.file.load()
	if err != nil {
		t.Fatal(err)
	}
	goldenCheck(t, "SECRETS", saved, goldenSecrets)
}

const (
	goldenStorage = "0147bb8ca02c5556090e8f3c42138a071ac6c150a912520b1c7c69c20d75b61515c1fcc3f242699e1232fa12d4df87ce45d2feb18e5d3d4f4966fe809d61eae72aa5a69656e1bfab83b440ee23ee7721ca2483b529f54192b86bac7356ec98f74ce95eaf9076d487d61100cf08e2b9a9fd7b01f41f"
	goldenSecrets = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202105060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324"
)

func FuzzOpenStorageKeys(f *testing.F) {
	secrets := &nodeSecrets{master: fixedKey(1).raw, all: []*secret{fixedKey(2).raw}}
	image := storageImage(f, secrets)
	f.Add(image)
	f.Add(image[:wrappedAAD])
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
func storageScript(c *disk, alive, gone map[storageKey]bool, retry bool) error {
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
		if k, err = Open(c.opt(byte(len(gone) + 1))); err == nil {
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

func verifyStorage(t *testing.T, c *disk, alive, gone map[storageKey]bool) {
	t.Helper()
	k, err := Open(c.opt(99))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for key := range alive {
		if got, ok := k.Storage().Key(key.id); !ok || got != key.key {
			t.Fatalf("storage key %d is lost", key.id)
		}
	}
	for key, destroyed := range gone {
		if got, ok := k.Storage().Key(key.id); destroyed && ok && got == key.key {
			t.Fatalf("destroyed storage key %d is back", key.id)
		}
	}
	if n := len(k.secrets.all); n != 1 {
		t.Fatalf("%d node secrets after the start", n)
	}
}

func TestStorageKeysPowerLossAtEveryStep(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		c := newDisk()
		alive, gone := map[storageKey]bool{}, map[storageKey]bool{}
		steps := crashes(t, c, percent, func() {
			if err := storageScript(c, alive, gone, false); err != nil {
				t.Fatal(err)
			}
		}, func(left *disk) {
			crashes(t, left, percent, func() { mustOpen(t, left.opt(50)) }, func(twice *disk) { verifyStorage(t, twice, alive, gone) })
		})
		if steps < 100 {
			t.Fatalf("only %d steps", steps)
		}
	}
}

func TestStorageKeysPassingFaultAtEveryStep(t *testing.T) {
	for at, steps := 1, 1<<30; steps >= at; at++ {
		c := newDisk()
		alive, gone := map[storageKey]bool{}, map[storageKey]bool{}
		steps = 0
		c.hook = func() error {
			if steps++; steps == at {
				return errFault
			}
			return nil
		}
		if err := storageScript(c, alive, gone, true); err != nil {
			t.Fatalf("step %d: %v", at, err)
		}
		c.hook = nil
		verifyStorage(t, c, alive, gone)
	}
}

func TestStorageKeysAreReadWhileTheyChange(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
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
