package keyring

import "testing"

// TestKeyMadeAfterAFailedDestructionIsKept: what is acknowledged after a destruction
// that failed at any of its steps is there after the next start.
func TestKeyMadeAfterAFailedDestructionIsKept(t *testing.T) {
	for at := 1; ; at++ {
		c, steps := newDisk(), 0
		k := mustOpen(t, c.opt(1))
		if err := k.CreateNamespace(nsA); err != nil {
			t.Fatal(err)
		}
		ids, _, err := k.EnsureSubjects(nsA, []string{"ada"})
		if err != nil {
			t.Fatal(err)
		}
		c.hook = func() error {
			if steps++; steps == at {
				return errFault
			}
			return nil
		}
		failed := k.Destroy(ids...)
		c.hook = nil
		made, _, err := k.EnsureSubjects(nsA, []string{"bob"})
		if err != nil {
			t.Fatalf("step %d: %v", at, err)
		}
		want := probe(must[*DataKey](t)(k.KeyByID(made[0])))
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		d, err := mustOpen(t, c.opt(2)).KeyByID(made[0])
		if err != nil || probe(d) != want {
			t.Fatalf("step %d: the key is lost: %v", at, err)
		}
		if failed == nil {
			if at < 20 {
				t.Fatalf("only %d faults bit", at)
			}
			return
		}
	}
}
