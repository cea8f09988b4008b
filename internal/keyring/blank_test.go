package keyring

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"mneme/memory"
)

// blankOpt opens what is filled by a snapshot.
func blankOpt(d *disk, seed byte) Options {
	opt := d.opt(seed)
	opt.Group, opt.Blank = true, true
	return opt
}

// founded gives a keyring of a group with some keys, and one that was destroyed.
func founded(t *testing.T) (k *Keyring, snapshot []byte, alive, dead KeyID) {
	t.Helper()
	g := &group{t: t}
	g.join(1)
	k = g.nodes[0]
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob"})
	if err == nil {
		err = k.Destroy(ids[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return k, must[[]byte](t)(k.Machine().Snapshot()), ids[0], ids[1]
}

// A node that joins made a keyring of its own: whatever was sealed with that could be
// opened nowhere, and the group's commands meant nothing to it.
func TestBlankKeyringRefusesEverything(t *testing.T) {
	k := mustOpen(t, blankOpt(newDisk(), 1))
	founder, _, alive, dead := founded(t)
	if index, term := k.Machine().AppliedIndex(); !k.Machine().Blank() || index != 0 || term != 0 || k.HasNamespaces() {
		t.Fatalf("a blank keyring stands at %d/%d", index, term)
	}
	if err := k.Machine().SetProposer(alone{k}); err != nil {
		t.Fatal(err)
	}
	var err error
	for what, f := range map[string]func() error{
		"find a key":          func() error { _, err = k.KeyByID(alive); return err },
		"find a subject":      func() error { _, err = k.DataKey(nsA, "ada"); return err },
		"find a namespace":    func() error { _, err = k.Namespace(nsA); return err },
		"make a namespace":    func() error { return k.CreateNamespace(nsA) },
		"make keys":           func() error { _, _, err = k.EnsureSubjects(nsA, []string{"ada"}); return err },
		"combine":             func() error { _, err = k.Combine([]KeyID{alive, dead}); return err },
		"destroy":             func() error { return k.Destroy(dead) },
		"destroy a namespace": func() error { return k.DestroyNamespace(nsA) },
		"take a snapshot":     func() error { _, err = k.Machine().Snapshot(); return err },
		"export":              func() error { return k.Export(new(bytes.Buffer)) },
		"apply": func() error {
			_, err = k.Machine().Apply(5, 1, must[[]byte](t)(sealCommand(someCommands()[0], founder.command, seeded(1))))
			return err
		},
	} {
		if err := f(); !errors.Is(err, ErrBlank) {
			t.Errorf("%s: %v", what, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a blank keyring gives a cluster key")
		}
	}()
	k.Cluster()
}

// At whatever moment the machine stops, the keyring is blank or it is the cluster's.
func TestBlankKeyringIsFilledAtOnce(t *testing.T) {
	founder, snapshot, alive, dead := founded(t)
	check := func(k *Keyring) {
		t.Helper()
		if !bytes.Equal(must[[]byte](t)(k.Machine().Snapshot()), snapshot) || k.Machine().EndedAt() == 0 || k.Machine().EndedAt() != founder.Machine().EndedAt() {
			t.Fatal("another state came")
		}
		if probe(must[*DataKey](t)(k.KeyByID(alive))) != probe(must[*DataKey](t)(founder.KeyByID(alive))) || k.Cluster().ID() != founder.Cluster().ID() {
			t.Fatal("other keys came")
		}
		_, err := k.KeyByID(dead)
		wantErr(t, err, ErrDestroyed)
	}
	blank, filled := 0, 0
	for step, last := 0, false; !last; step++ {
		d, rng := newDisk(), rand.New(rand.NewPCG(uint64(step), 1))
		k := mustOpen(t, blankOpt(d, 1))
		left := step
		var image *disk
		d.hook = func() error {
			if left--; left == -1 {
				image = d.crashed(50, rng)
			}
			return nil
		}
		if err := k.Machine().Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		check(k)
		if last = image == nil; last {
			image = d.crashed(0, rng)
		}
		again := mustOpen(t, image.opt(9)) // also where nothing says that it may be blank
		if again.Machine().Blank() {
			blank++
			if err := again.Machine().Restore(snapshot); err != nil {
				t.Fatal(err)
			}
		} else {
			filled++
		}
		check(again)
	}
	if blank < 3 || filled < 3 {
		t.Errorf("%d crashes before, %d after: that shows little", blank, filled)
	}
}

// A node of a cluster whose group was not there yet applied commands by itself: they
// were in no other keyring, under indexes that the group gave to others.
func TestKeyringOfAGroupAppliesNothingByItself(t *testing.T) {
	opt := newDisk().opt(1)
	opt.Group = true
	k := mustOpen(t, opt)
	before := must[[]byte](t)(k.Machine().Snapshot())
	err := k.CreateNamespace(nsA)
	if memory.CodeOf(err) != memory.CodeUnavailable || !errors.Is(err, ErrNoGroup) || !bytes.Equal(before, must[[]byte](t)(k.Machine().Snapshot())) {
		t.Fatalf("without its group: %v", err)
	}
	if err := errors.Join(k.Machine().SetProposer(alone{k}), k.CreateNamespace(nsA), k.Machine().SetProposer(nil)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, k.CreateNamespace(nsB), ErrNoGroup)
	wantErr(t, mustOpen(t, newDisk().opt(2)).Machine().SetProposer(alone{k}), ErrNoGroup)
	if _, err := Open(Options{Dir: "data", FS: newDisk(), Blank: true, AllowCreate: true}); err == nil {
		t.Fatal("a blank keyring that nobody fills")
	}
}

func TestWaitReturnsWhenTheKeyringHasMoved(t *testing.T) {
	_, snapshot, _, _ := founded(t)
	k, d := mustOpen(t, blankOpt(newDisk(), 1)), newDisk()
	const made, after = 1, 5 // what a keyring begins with, and where the snapshot stands
	done := make(chan error, 1)
	go func() { done <- k.Machine().Wait(t.Context(), after-1) }()
	if err := errors.Join(k.Machine().Restore(snapshot), <-done, k.Machine().Wait(t.Context(), after-1)); err != nil {
		t.Fatal(err)
	}
	lone := mustOpen(t, d.opt(2))
	if err := errors.Join(lone.Machine().Wait(t.Context(), made)); err != nil {
		t.Fatal(err)
	}
	go func() { done <- lone.Machine().Wait(t.Context(), made+1) }()
	if err := errors.Join(lone.CreateNamespace(nsA), <-done); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- lone.Machine().Wait(ctx, 99) }()
	cancel()
	wantErr(t, <-done, context.Canceled)
	go func() { done <- lone.Machine().Wait(t.Context(), 99) }()
	if err := lone.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-done, ErrClosed)
}

// A range of the log that named an index of a command that changed nothing named one
// that the keyring did not have after a restart.
func TestWhatIsNamedIsThereAfterARestart(t *testing.T) {
	d := newDisk()
	k := mustOpen(t, d.opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	if _, err := k.proposer.Propose([]byte{commandVersion}); err != nil {
		t.Fatal(err)
	}
	index, _ := k.Machine().AppliedIndex()
	named := k.Machine().ChangedAt()
	if index != named+1 {
		t.Fatalf("at %d, changed at %d", index, named)
	}
	again := mustOpen(t, d.crashed(0, rand.New(rand.NewPCG(1, 1))).opt(2))
	if index, _ = again.Machine().AppliedIndex(); index < named || again.Machine().ChangedAt() != named {
		t.Fatalf("named %d, after a restart it is at %d", named, index)
	}
}

// A group that does not hear of a command's outcome brings it again: who proposed it
// was told that the key had been there, and the event of its making was not written.
func TestKeysOfACommandThatCameTwiceAreMade(t *testing.T) {
	g := &group{t: t}
	g.join(1)
	k := g.nodes[0]
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	if err := k.Machine().SetProposer(twice{g}); err != nil {
		t.Fatal(err)
	}
	ids, created, err := k.EnsureSubjects(nsA, []string{"ada", "bob"})
	if err != nil || !created[0] || !created[1] {
		t.Fatal(created, err)
	}
	if _, err := k.Combine(ids); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.CreateNamespace(nsB), k.Destroy(ids[0]), k.DestroyNamespace(nsB)); err != nil {
		t.Fatal(err)
	}
	_, err = k.KeyByID(ids[0])
	wantErr(t, err, ErrDestroyed)
	must[*DataKey](t)(k.KeyByID(ids[1]))
}

// twice brings each command twice and gives the second answer.
type twice struct{ g *group }

func (p twice) Propose(command []byte) (Answer, error) {
	if _, err := p.g.Propose(command); err != nil {
		return Answer{}, err
	}
	return p.g.Propose(command)
}
