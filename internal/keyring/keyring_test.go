package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLifeOnDisk(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(Options{Dir: dir}); err == nil {
		t.Fatal("made a keyring without AllowCreate")
	} else {
		wantErr(t, err, ErrNoKeyring)
	}
	k := mustOpen(t, Options{Dir: dir, AllowCreate: true})
	for range 2 {
		if err := k.CreateNamespace(nsA); err != nil {
			t.Fatal(err)
		}
	}
	ids, created, err := k.EnsureSubjects(nsA, []string{"ada", "", "bob", "ada"})
	if err != nil || !slices.Equal(created, []bool{true, false, true, false}) || ids[0] != ids[3] {
		t.Fatalf("ids %v, created %v, error %v", ids, created, err)
	}
	if _, created, _ := k.EnsureSubjects(nsA, []string{"bob"}); created[0] {
		t.Fatal("made a key twice")
	}
	pair := must[*DataKey](t)(k.Combine(ids[:3]))
	keys := append(slices.Clone(ids[:3]), pair.ID(), k.Node().ID(), k.Cluster().ID())
	sealed := map[KeyID][]byte{}
	for _, id := range keys {
		sealed[id] = must[*DataKey](t)(k.KeyByID(id)).Seal(nil, testIdentity, nil, []byte("memory"))
	}
	name := must[*NamespaceKeys](t)(k.Namespace(nsA)).MAC("tag", []byte("tea"))
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = mustOpen(t, Options{Dir: dir})
	for _, id := range keys {
		got, err := must[*DataKey](t)(k.KeyByID(id)).Open(nil, testIdentity, nil, sealed[id])
		if err != nil || string(got) != "memory" {
			t.Fatalf("key %s: %q, %v", id, got, err)
		}
	}
	if d := must[*DataKey](t)(k.DataKey(nsA, "bob")); d.ID() != ids[2] {
		t.Fatal("bob has another key")
	}
	if names := must[*NamespaceKeys](t)(k.Namespace(nsA)); names.MAC("tag", []byte("tea")) != name || names.ID() != nsA {
		t.Fatal("name key changed")
	}
	checkFiles(t, dir)
}

// keyFiles are all files that a keyring keeps.
var keyFiles = []string{primaryName, secondaryName, masterName, masterName + copySuffix, "node.secret", "node.secret.copy", "storage.keys", "storage.keys.copy"}

// checkFiles: private, nothing left over, no subject's name in them.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	entries := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(dir, KeysDir)))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		info := must[os.FileInfo](t)(e.Info())
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
		raw := must[[]byte](t)(os.ReadFile(filepath.Join(dir, KeysDir, e.Name())))
		if bytes.Contains(raw, []byte("bob")) {
			t.Errorf("%s names a subject", e.Name())
		}
	}
	if !slices.Equal(names, keyFiles) {
		t.Errorf("files %v, want %v", names, keyFiles)
	}
}

func TestMissingIsNotDestroyed(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	_, err := k.Namespace(nsA)
	wantErr(t, err, ErrNoKey)
	_, _, err = k.EnsureSubjects(nsA, []string{"x"})
	wantErr(t, err, ErrNoKey)
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada"})
	if err != nil {
		t.Fatal(err)
	}
	unknown := KeyID{0xEE}
	check := func(k *Keyring) {
		t.Helper()
		_, err := k.DataKey(nsA, "nobody")
		wantErr(t, err, ErrNoKey)
		_, err = k.KeyByID(KeyID{1})
		wantErr(t, err, ErrNoKey)
		_, err = k.DataKey(nsA, "ada")
		wantErr(t, err, ErrDestroyed)
		for _, id := range []KeyID{ids[0], unknown} {
			_, err = k.KeyByID(id)
			wantErr(t, err, ErrDestroyed)
			_, err = k.Combine([]KeyID{id})
			wantErr(t, err, ErrDestroyed)
		}
	}
	for range 2 {
		if err := k.Destroy(ids[0], unknown, ids[0]); err != nil {
			t.Fatal(err)
		}
	}
	check(k)
	check(mustOpen(t, c.opt(2)))
	back, created, err := k.EnsureSubjects(nsA, []string{"ada"})
	if err != nil || !created[0] || back[0] == ids[0] {
		t.Fatalf("ada cannot come back: %v %v", created, err)
	}
	k = mustOpen(t, c.opt(3))
	if d := must[*DataKey](t)(k.DataKey(nsA, "ada")); d.ID() != back[0] {
		t.Fatal("ada's old key hides the new one")
	}
}

func TestCombine(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	for _, ns := range []NamespaceID{nsA, nsB} {
		if err := k.CreateNamespace(ns); err != nil {
			t.Fatal(err)
		}
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	combine := func(ids ...KeyID) *DataKey { t.Helper(); return must[*DataKey](t)(k.Combine(ids)) }
	ab := combine(ids[0], ids[1])
	abc := combine(ids[2], ids[0], ids[1])
	if combine(ids[1], ids[0], ids[1]) != ab || combine(ab.ID(), ids[2]) != abc || combine(ids[0]).ID() != ids[0] {
		t.Fatal("order, repetition or nesting matters")
	}
	value := ab.Seal(nil, testIdentity, nil, []byte("both"))
	for _, d := range []*DataKey{abc, combine(ids[0]), combine(ids[1])} {
		_, err := d.Open(nil, testIdentity, nil, value)
		wantErr(t, err, ErrSealBroken)
	}
	_, err = k.Combine(nil)
	wantErr(t, err, ErrNoKey)
	_, err = k.Combine([]KeyID{ids[0], {7}})
	wantErr(t, err, ErrNoKey)
	_, err = k.Combine([]KeyID{ids[0], k.Cluster().ID()})
	wantErr(t, err, ErrNoKey)
	for _, id := range []KeyID{ab.ID(), k.Cluster().ID(), k.Node().ID(), {}} {
		wantErr(t, k.Destroy(id), ErrNotDestroyable)
	}
	if err := k.Destroy(ids[2]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = k.KeyByID(abc.ID())
		wantErr(t, err, ErrDestroyed)
		if got, err := must[*DataKey](t)(k.KeyByID(ab.ID())).Open(nil, testIdentity, nil, value); err != nil || string(got) != "both" {
			t.Fatalf("%q %v", got, err)
		}
		k = mustOpen(t, c.opt(2))
	}
}

func TestHandlesDieWithTheirKeys(t *testing.T) {
	for name, end := range map[string]func(*Keyring, KeyID) error{
		"destroy":   func(k *Keyring, id KeyID) error { return k.Destroy(id) },
		"namespace": func(k *Keyring, _ KeyID) error { return k.DestroyNamespace(nsA) },
		"close":     func(k *Keyring, _ KeyID) error { return k.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			k := mustOpen(t, newDisk().opt(1))
			if err := k.CreateNamespace(nsA); err != nil {
				t.Fatal(err)
			}
			ids, _, _ := k.EnsureSubjects(nsA, []string{"ada", "bob"})
			ada := must[*DataKey](t)(k.KeyByID(ids[0]))
			pair := must[*DataKey](t)(k.Combine(ids))
			names := must[*NamespaceKeys](t)(k.Namespace(nsA))
			raw, index := ada.raw, names.index
			value := ada.Seal(nil, testIdentity, nil, []byte("x"))
			both := pair.Seal(nil, testIdentity, nil, []byte("x"))
			subs := ada.subs.Load()
			if err := end(k, ids[0]); err != nil {
				t.Fatal(err)
			}
			why := ErrDestroyed
			if name == "close" {
				why = ErrClosed
			}
			_, err := ada.Open(nil, testIdentity, nil, value)
			wantErr(t, err, why)
			_, err = pair.Open(nil, testIdentity, nil, both)
			wantErr(t, err, why)
			if ada.Seal([]byte("x"), testIdentity, nil, nil) != nil || ada.MAC("m", nil) != [32]byte{} {
				t.Fatal("a dead key still works")
			}
			if *raw != (secret{}) || *subs.nonce != (secret{}) || *subs.mac != (secret{}) {
				t.Fatal("key material left in memory")
			}
			if name == "destroy" {
				return
			}
			if names.MAC("m", nil) != [32]byte{} || *index != (secret{}) {
				t.Fatal("dead namespace keys still work")
			}
			_, err = k.DataKey(nsA, "bob")
			wantErr(t, err, why)
		})
	}
}

func TestClosedRefusesEverything(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	for range 2 {
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := k.KeyByID(KeyID{1})
	wantErr(t, err, ErrClosed)
	_, err = k.Combine([]KeyID{{1}})
	wantErr(t, err, ErrClosed)
	_, _, err = k.EnsureSubjects(nsA, nil)
	wantErr(t, err, ErrClosed)
	wantErr(t, k.CreateNamespace(nsA), ErrClosed)
	wantErr(t, k.Destroy(KeyID{1}), ErrClosed)
	wantErr(t, k.DestroyNamespace(nsA), ErrClosed)
	wantErr(t, k.Export(&bytes.Buffer{}), ErrClosed)
	if k.Node().Seal(nil, testIdentity, nil, nil) != nil || k.Cluster().Seal(nil, testIdentity, nil, nil) != nil {
		t.Fatal("sealed after close")
	}
}

func TestConcurrentUse(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				mine, shared := fmt.Sprintf("w%d-%d", w, i), fmt.Sprintf("all-%d", i)
				ids, _, err := k.EnsureSubjects(nsA, []string{mine, shared})
				if err != nil {
					t.Error(err)
					return
				}
				d, err := k.DataKey(nsA, mine)
				if err != nil || d.ID() != ids[0] {
					t.Errorf("%s: %v", mine, err)
					return
				}
				if _, err := k.Combine(ids); err != nil {
					t.Error(err)
				}
				shareUse(t, k, d)
				if i%5 == 0 {
					if err := k.Destroy(ids[0]); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	k = mustOpen(t, c.opt(2))
	if got := len(k.table.spaces[0].keys); got != 1+4*20+25 {
		t.Fatalf("%d keys", got)
	}
}

func shareUse(t *testing.T, k *Keyring, d *DataKey) {
	sealed := d.Seal(nil, testIdentity, nil, []byte("x"))
	if _, err := d.Open(nil, testIdentity, nil, sealed); err != nil {
		t.Error(err)
	}
	names, err := k.Namespace(nsA)
	if err != nil {
		t.Error(err)
		return
	}
	for i := range uint8(50) {
		names.MAC("tag", []byte{i})
	}
	d.MAC("x", sealed)
}

// A handle in use while its key is destroyed gives the right answer or none.
func TestDestroyWhileSealing(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	d := must[*DataKey](t)(k.DataKey(nsA, ""))
	names := must[*NamespaceKeys](t)(k.Namespace(nsA))
	want := d.Seal(nil, testIdentity, nil, []byte("x"))
	started := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			started <- struct{}{}
			for i := 0; ; i++ {
				names.MAC("tag", be64(i))
				got := d.Seal(nil, testIdentity, nil, []byte("x"))
				if got == nil {
					return
				}
				if !bytes.Equal(got, want) {
					t.Errorf("sealed %x", got)
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	if err := k.DestroyNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestHasNamespacesRemembersDestroyedOnes(t *testing.T) {
	dir := t.TempDir()
	k, err := Open(Options{Dir: dir, AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	if k.HasNamespaces() {
		t.Error("a new keyring has namespaces")
	}
	ns := NamespaceID{7}
	if err := errors.Join(k.CreateNamespace(ns), k.DestroyNamespace(ns), k.Close()); err != nil {
		t.Fatal(err)
	}
	if k, err = Open(Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if !k.HasNamespaces() {
		t.Error("the destroyed namespace is forgotten")
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}
