package keyring

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
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
func script(c *disk, m *model, retry bool) error {
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

func (m *model) clone() *model { return &model{alive: maps.Clone(m.alive), dead: maps.Clone(m.dead)} }

func newModel() *model { return &model{alive: map[KeyID][32]byte{}, dead: map[KeyID]secret{}} }

// verify opens what is left and holds it against the model.
func verify(t *testing.T, c *disk, m *model) {
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
	left := c.thief(t)
	for id, raw := range m.dead {
		if _, err := k.KeyByID(id); !errors.Is(err, ErrDestroyed) {
			t.Fatalf("destroyed key %s: %v", id, err)
		}
		if left[raw] {
			t.Fatalf("destroyed key %s is still in a file", id)
		}
	}
	if names := slices.Sorted(maps.Keys(c.files())); !slices.Equal(names, keyFiles) {
		t.Fatalf("files %v, want %v", names, keyFiles)
	}
	if n := len(k.secrets.all); n != 1 {
		t.Fatalf("%d node secrets after the start", n)
	}
	// It goes on from here.
	if err := k.CreateNamespace(NamespaceID{0xEE}); err != nil {
		t.Fatal(err)
	}
}

// crashes runs act and calls check with what a crash before each step, and after
// the last, leaves of the disk.
func crashes(t *testing.T, c *disk, percent int, act func(), check func(*disk)) (steps int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(percent), 7))
	var busy bool
	c.hook = func() error {
		if !busy { // check opens copies of the disk, not the disk
			busy = true
			check(c.crashed(percent, rng))
			busy = false
		}
		steps++
		return nil
	}
	act()
	c.hook = nil
	check(c.crashed(percent, rng))
	return steps
}

// Power is lost before every step of a life, and again before every step of the
// start that follows.
func TestPowerLossAtEveryStep(t *testing.T) {
	for _, percent := range []int{0, 30, 70, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced stays", percent), func(t *testing.T) {
			t.Parallel()
			m, c := newModel(), newDisk()
			steps := crashes(t, c, percent, func() {
				if err := script(c, m, false); err != nil {
					t.Fatal(err)
				}
			}, func(left *disk) {
				now := m.clone()
				again := left.crashed(100, whole())
				crashes(t, left, percent, func() { mustOpen(t, left.opt(50)) }, func(twice *disk) { verify(t, twice, now) })
				verify(t, again, now)
			})
			if steps < 150 {
				t.Fatalf("only %d steps", steps)
			}
		})
	}
}

// whole is randomness for a copy that loses nothing.
func whole() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

// Every step fails once; the caller tries again.
func TestPassingFaultAtEveryStep(t *testing.T) {
	for at := 1; ; at++ {
		m, c, steps := newModel(), newDisk(), 0
		c.hook = func() error {
			if steps++; steps == at {
				return errFault
			}
			return nil
		}
		if err := script(c, m, true); err != nil {
			t.Fatalf("step %d: a passing fault was not survived: %v", at, err)
		}
		c.hook = nil
		verify(t, c, m)
		if steps < at {
			if at < 150 {
				t.Fatalf("only %d faults bit", at)
			}
			return
		}
	}
}

// A step fails, the caller gives up, and then the power goes.
func TestFaultThenPowerLoss(t *testing.T) {
	for at := 1; ; at++ {
		m, c, steps := newModel(), newDisk(), 0
		c.hook = func() error {
			if steps++; steps >= at {
				return errFault
			}
			return nil
		}
		err := script(c, m, false)
		c.hook = nil
		if steps < at {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		for _, percent := range []int{0, 50, 100} {
			verify(t, c.crashed(percent, rand.New(rand.NewPCG(uint64(at), 3))), m)
		}
	}
}
