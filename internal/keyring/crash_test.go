package keyring

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// model is what a caller was promised.
type model struct {
	alive map[KeyID][32]byte // acknowledged keys, by a MAC made with each
	dead  map[KeyID]secret   // acknowledged destructions, with the key's bytes
}

func probe(d *DataKey) [32]byte { return d.MAC("probe", nil) }

// script runs a life; it stops at the first error, which it returns. retry
// says to repeat a failed step once, as a caller would after a passing fault.
func script(c *crashFS, m *model, retry bool) error {
	var k *Keyring
	var ids []KeyID
	var pair, victim KeyID
	var opens byte
	var raw secret
	ensure := func(ns NamespaceID, subjects ...string) func() error {
		return func() (err error) {
			if ids, _, err = k.EnsureSubjects(ns, subjects); err == nil {
				for _, id := range ids {
					m.alive[id] = probe(k.lookup.keys[id])
				}
			}
			return err
		}
	}
	combine := func() error {
		d, err := k.Combine(ids)
		if err == nil {
			m.alive[d.ID()] = probe(d)
			pair, victim, raw = d.ID(), ids[0], *k.lookup.keys[ids[0]].raw
		}
		return err
	}
	destroy := func() error {
		// From here on it may be gone, acknowledged or not, and the pair with it.
		delete(m.alive, victim)
		delete(m.alive, pair)
		if err := k.Destroy(victim); err != nil {
			return err
		}
		m.dead[victim] = raw
		m.dead[pair] = secret{}
		return nil
	}
	steps := []func() error{
		func() (err error) { opens++; k, err = Open(c.opt(opens)); return err },
		func() error { return k.CreateNamespace(nsA) },
		func() error { return k.CreateNamespace(nsB) },
		ensure(nsB, "bea", "bo"),
		ensure(nsA, "ada", "al", ""),
		combine,
		destroy,
		ensure(nsA, "ann"),
		func() error { return destroyB(k, m) },
		ensure(nsA, "amy"),
	}
	for _, step := range steps {
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

func destroyB(k *Keyring, m *model) error {
	victims := map[KeyID]secret{}
	for _, d := range k.lookup.keys {
		if d != nil && d.ns == nsB {
			victims[d.id] = *d.raw
			delete(m.alive, d.id)
		}
	}
	if err := k.DestroyNamespace(nsB); err != nil {
		return err
	}
	for id, raw := range victims {
		m.dead[id] = raw
	}
	return nil
}

// verify opens what is left and holds it against the model.
func verify(t *testing.T, c *crashFS, m *model) {
	t.Helper()
	k, err := Open(c.opt(99))
	if err != nil {
		t.Fatalf("open after the fault: %v", err)
	}
	defer k.Close()
	for id, want := range m.alive {
		d, err := k.KeyByID(id)
		if err != nil || probe(d) != want {
			t.Fatalf("acknowledged key %s is lost: %v", id, err)
		}
	}
	left := recoverable(t, c, nil)
	for id, raw := range m.dead {
		if _, err := k.KeyByID(id); !errors.Is(err, ErrDestroyed) {
			t.Fatalf("destroyed key %s: %v", id, err)
		}
		if left[raw] {
			t.Fatalf("destroyed key %s is still in a file", id)
		}
	}
	for name := range c.visible {
		if !slices.Contains(keyFiles, filepath.Base(name)) {
			t.Fatalf("%s left over", name)
		}
	}
}

func TestFaultAtEveryStep(t *testing.T) {
	for _, mode := range []string{"before", "after", "torn"} {
		for _, crash := range []bool{true, false} {
			for _, lose := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/crash=%v/lose=%v", mode, crash, lose), func(t *testing.T) {
					faultAtEveryStep(t, mode, crash, lose)
				})
			}
		}
	}
}

func faultAtEveryStep(t *testing.T, mode string, crash, lose bool) {
	bitten := 0
	for at := 1; ; at++ {
		c := newCrashFS()
		c.failAt, c.mode, c.crash = at, mode, crash
		m := &model{alive: map[KeyID][32]byte{}, dead: map[KeyID]secret{}}
		err := script(c, m, !crash)
		if !c.fired {
			if err != nil {
				t.Fatalf("no fault, yet %v", err)
			}
			break
		}
		bitten++
		if crash && err == nil {
			t.Fatalf("step %d: the crash went unnoticed", at)
		}
		if !crash && err != nil {
			t.Fatalf("step %d: a passing fault was not survived: %v", at, err)
		}
		c.reboot(lose)
		if crash {
			faultWhileHealing(t, c, lose)
		}
		verify(t, c, m)
	}
	// Ten saves or so, of six steps each.
	if bitten < 50 {
		t.Fatalf("only %d faults bit", bitten)
	}
}

// faultWhileHealing crashes again, at every step of the start after a crash.
func faultWhileHealing(t *testing.T, c *crashFS, lose bool) {
	t.Helper()
	for at := 1; ; at++ {
		c.failAt = at
		k, err := Open(c.opt(50 + byte(at)))
		if !c.fired {
			if err != nil {
				t.Fatalf("no fault, yet %v", err)
			}
			c.reboot(lose)
			_ = k.Close()
			return
		}
		if err == nil {
			t.Fatalf("step %d of the next start: the crash went unnoticed", at)
		}
		c.reboot(lose)
	}
}
