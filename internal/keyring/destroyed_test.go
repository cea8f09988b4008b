package keyring

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// An older copy of a keyring in which everything is destroyed again that was destroyed since
// has none of it, combined keys included, and remembers what it never had.
func TestDestroyAgain(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	for _, ns := range []NamespaceID{nsA, nsB} {
		if err := k.CreateNamespace(ns); err != nil {
			t.Fatal(err)
		}
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob", "eve"})
	if err != nil {
		t.Fatal(err)
	}
	both, err := k.Combine(ids[:2])
	if err != nil {
		t.Fatal(err)
	}
	var older bytes.Buffer
	if err := k.ExportWithMaster(&older); err != nil {
		t.Fatal(err)
	}
	later, _, err := k.EnsureSubjects(nsA, []string{"later"})
	if err == nil {
		err = errors.Join(k.Destroy(ids[0], later[0]), k.DestroyNamespace(nsB))
	}
	if err != nil {
		t.Fatal(err)
	}
	keys, spaces, err := Destroyed(k)
	if err != nil || !slices.Contains(keys, ids[0]) || !slices.Contains(keys, both.ID()) || !slices.Contains(keys, later[0]) || slices.Contains(keys, ids[1]) || !slices.Equal(spaces, []NamespaceID{nsB}) {
		t.Fatalf("%v %v, %v", keys, spaces, err)
	}

	d := newDisk()
	if err := Import(d.opt(2), bytes.NewReader(older.Bytes())); err != nil {
		t.Fatal(err)
	}
	opt := d.opt(2)
	opt.AllowNewStorage = true
	old := mustOpen(t, opt)
	if _, err := old.KeyByID(both.ID()); err != nil {
		t.Fatalf("the older keyring lacks the combined key: %v", err)
	}
	for range 2 { // it may be repeated
		if err := DestroyAgain(old, keys, spaces); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []KeyID{ids[0], both.ID(), later[0]} {
		if _, err := old.KeyByID(id); !errors.Is(err, ErrDestroyed) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, id := range ids[1:] {
		if _, err := old.KeyByID(id); err != nil {
			t.Errorf("%s ended, too: %v", id, err)
		}
	}
	if _, err := old.Namespace(nsB); !errors.Is(err, ErrDestroyed) {
		t.Errorf("the namespace: %v", err)
	}
	again, spacesAgain, err := Destroyed(old)
	if err != nil || !slices.Equal(again, keys) || !slices.Equal(spacesAgain, spaces) {
		t.Errorf("%v %v, %v; want %v", again, spacesAgain, err, keys)
	}
	// A key that cannot be destroyed stands in no list; one that does is refused.
	if err := DestroyAgain(old, []KeyID{old.node.id}, nil); !errors.Is(err, ErrNotDestroyable) {
		t.Errorf("%v", err)
	}
}

// The master key that a backup carries may be used without a file of it.
func TestMasterInBackup(t *testing.T) {
	c := newDisk()
	k := mustOpen(t, c.opt(1))
	for _, with := range []bool{true, false} {
		var b bytes.Buffer
		if err := k.export(&b, with); err != nil {
			t.Fatal(err)
		}
		m, err := MasterInBackup(b.Bytes())
		if err != nil || (m != nil) != with || IntactBackup(b.Bytes()) != nil {
			t.Fatalf("%v, %v", m, err)
		}
		if !with {
			continue
		}
		d := newDisk()
		opt := d.opt(2)
		opt.Master = m
		if err := Import(opt, bytes.NewReader(b.Bytes())); err != nil {
			t.Fatal(err)
		}
		for name := range d.files() {
			if name == masterName || name == masterName+".copy" {
				t.Errorf("%s was written", name)
			}
		}
		if bad := IntactBackup(b.Bytes()[:40]); !errors.Is(bad, ErrDamaged) {
			t.Errorf("cut: %v", bad)
		}
	}
}
