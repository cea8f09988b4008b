package keyring

import (
	"slices"
	"testing"
)

// oldkey: an older copy of the keyring, with everything that is in the folder
// today, must give nothing that was destroyed since. The records behind the image
// are attacked as well: they carried the keys.
func TestOlderKeyringWithTodaysMasterKeyStaysShut(t *testing.T) {
	for _, whole := range []bool{false, true} {
		c := newDisk()
		k := mustOpen(t, c.opt(1))
		if err := k.CreateNamespace(nsA); err != nil {
			t.Fatal(err)
		}
		ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob"})
		if err != nil {
			t.Fatal(err)
		}
		asRecords := c.get(c.path(primaryName))
		if err := k.Destroy(KeyID{7}); err != nil { // cuts the file
			t.Fatal(err)
		}
		if _, _, err := k.EnsureSubjects(nsA, []string{"eve"}); err != nil {
			t.Fatal(err)
		}
		asImage := c.get(c.path(primaryName))
		ada, bob, index := *k.lookup.keys[ids[0]].raw, *k.lookup.keys[ids[1]].raw, *k.table.spaces[0].names.index
		if found := c.thief(t, asRecords, asImage); !found[ada] || !found[bob] || !found[index] {
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
		found := c.thief(t, asRecords, asImage)
		if found[ada] || found[bob] == whole || found[index] == whole {
			t.Fatalf("whole namespace %v: ada %v, bob %v, index %v", whole, found[ada], found[bob], found[index])
		}
	}
}

// What was destroyed must not come back from the record that made it, either.
func TestDestroyedKeysLeaveNoRecord(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada"})
	if err != nil {
		t.Fatal(err)
	}
	before := *k.command
	if err := k.Destroy(ids...); err != nil {
		t.Fatal(err)
	}
	if *k.command == before {
		t.Fatal("the command key that opens the former records lives on")
	}
	for _, name := range []string{primaryName, secondaryName} {
		if head := must[copyHead](t)(decodeHead(ringFormat.magic, c.get(c.path(name)))); head.end != len(c.get(c.path(name))) {
			t.Fatalf("%s holds records after a destruction", name)
		}
	}
}

func TestDestroyNamespace(t *testing.T) {
	c := newDisk()
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
	k := mustOpen(t, newDisk().opt(1))
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

// A record that is about two people is sealed under a key that both are part of:
// whoever erases one of them has to find it.
func TestEndingFindsCombinedKeys(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	for _, ns := range []NamespaceID{nsA, nsB} {
		if err := k.CreateNamespace(ns); err != nil {
			t.Fatal(err)
		}
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob", "eve"})
	if err != nil {
		t.Fatal(err)
	}
	ada, bob, eve := ids[0], ids[1], ids[2]
	pair := must[*DataKey](t)(k.Combine([]KeyID{ada, bob})).ID()
	all := must[*DataKey](t)(k.Combine([]KeyID{pair, eve})).ID()
	check := func(want []KeyID, of ...KeyID) {
		t.Helper()
		slices.SortFunc(want, compareIDs)
		if got := must[[]KeyID](t)(k.Ending(nsA, of...)); !slices.Equal(got, want) {
			t.Errorf("with %v end %v, want %v", of, got, want)
		}
	}
	check([]KeyID{ada, pair, all}, ada)
	check([]KeyID{eve, all}, eve)
	check([]KeyID{ada, eve, pair, all}, ada, eve)
	_, err = k.Ending(nsB, ada)
	wantErr(t, err, ErrNotDestroyable)
	_, err = k.Ending(nsA, pair)
	wantErr(t, err, ErrNotDestroyable)
	_, err = k.Ending(nsA, must[*DataKey](t)(k.DataKey(nsA, "")).ID())
	wantErr(t, err, ErrNotDestroyable)
	_, err = k.Ending(nsA, KeyID{9})
	wantErr(t, err, ErrNoKey)
	if err := k.Destroy(ada); err != nil {
		t.Fatal(err)
	}
	check([]KeyID{ada}, ada)
	check([]KeyID{eve}, eve)
}
