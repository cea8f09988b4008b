package keyring

import (
	"bytes"
	"testing"
)

// The old image opens with the master key, as the whole old file must; with
// what is left after Destroy it does not.
func TestOldImageDiesWithItsIntermediateKey(t *testing.T) {
	for _, whole := range []bool{false, true} {
		c := newCrashFS()
		k := mustOpen(t, c.opt(1))
		if err := k.CreateNamespace(nsA); err != nil {
			t.Fatal(err)
		}
		ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob"})
		if err != nil {
			t.Fatal(err)
		}
		old := bytes.Clone(c.visible[c.path(primaryName)].data)
		_, oldImage, err := decodeCopy(ringFormat.magic, old)
		if err != nil {
			t.Fatal(err)
		}
		ada, bob, index := *k.lookup.keys[ids[0]].raw, *k.lookup.keys[ids[1]].raw, *k.table.spaces[0].names.index
		if found := recoverable(t, c, oldImage); !found[ada] || !found[bob] || !found[index] {
			t.Fatal("the attack does not work even before the destruction")
		}
		if whole {
			err = k.DestroyNamespace(nsA)
		} else {
			err = k.Destroy(ids[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		found := recoverable(t, c, oldImage)
		if found[ada] || found[bob] == whole || found[index] == whole {
			t.Fatalf("whole namespace %v: ada %v, bob %v, index %v", whole, found[ada], found[bob], found[index])
		}
		for name, n := range c.visible {
			if bytes.Contains(n.data, oldImage[imageMasterEnd:imageWrapEnd]) {
				t.Fatalf("%s holds the old intermediate key", name)
			}
		}
		c.visible["data/keys/stolen"] = &inode{old}
		if !recoverable(t, c, nil)[ada] {
			t.Fatal("the whole old file should still open")
		}
	}
}

func TestDestroyNamespace(t *testing.T) {
	c := newCrashFS()
	k := mustOpen(t, c.opt(1))
	for _, ns := range []NamespaceID{nsA, nsB} {
		if err := k.CreateNamespace(ns); err != nil {
			t.Fatal(err)
		}
	}
	ids, _, _ := k.EnsureSubjects(nsA, []string{"a", "b", "c"})
	pair := must[*DataKey](t)(k.Combine(ids[:2]))
	if err := k.Destroy(ids[2]); err != nil {
		t.Fatal(err)
	}
	unknown := NamespaceID{0x77}
	for range 2 {
		for _, ns := range []NamespaceID{nsA, unknown} {
			if err := k.DestroyNamespace(ns); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		for _, ns := range []NamespaceID{nsA, unknown} {
			wantErr(t, k.CreateNamespace(ns), ErrDestroyed)
			_, err := k.DataKey(ns, "")
			wantErr(t, err, ErrDestroyed)
			_, err = k.DataKey(ns, "c")
			wantErr(t, err, ErrDestroyed)
			_, _, err = k.EnsureSubjects(ns, []string{"c"})
			wantErr(t, err, ErrDestroyed)
		}
		for _, id := range append(ids, pair.ID()) {
			_, err := k.KeyByID(id)
			wantErr(t, err, ErrDestroyed)
		}
		must[*DataKey](t)(k.DataKey(nsB, ""))
		k = mustOpen(t, c.opt(2))
	}
}

func TestNamespaceOwnKeyIsNotMadeAnew(t *testing.T) {
	k := mustOpen(t, newCrashFS().opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	if err := k.Destroy(must[*DataKey](t)(k.DataKey(nsA, "")).ID()); err != nil {
		t.Fatal(err)
	}
	_, _, err := k.EnsureSubjects(nsA, []string{"new", ""})
	wantErr(t, err, ErrDestroyed)
	_, err = k.DataKey(nsA, "new")
	wantErr(t, err, ErrNoKey)
}
