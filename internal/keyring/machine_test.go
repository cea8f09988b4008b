package keyring

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// group brings commands to several keyrings in one order, as a Raft group does.
type group struct {
	t       *testing.T
	nodes   []*Keyring
	log     [][]byte
	answers []Answer
	before  func() // called once, before the next command has its turn
}

func (g *group) Propose(command []byte) (Answer, error) {
	if f := g.before; f != nil {
		g.before = nil
		f()
	}
	g.log = append(g.log, command)
	var first Answer
	for i, k := range g.nodes {
		a, err := k.Machine().Apply(g.at(len(g.log)), 1, command)
		if err != nil {
			return a, err
		}
		if i == 0 {
			first = a
			g.answers = append(g.answers, a)
		} else if a.Verdict != first.Verdict || !slices.Equal(a.Created, first.Created) {
			g.t.Fatalf("command %d: one node answers %v, another %v", len(g.log), first, a)
		}
	}
	return first, nil
}

// at is the index of the n-th command, for the keyring's making is the first.
func (g *group) at(n int) uint64 { return firstCursor.index + uint64(n) }

// open opens a keyring of the group.
func (g *group) open(opt Options) *Keyring {
	opt.Group = true
	k := mustOpen(g.t, opt)
	if err := k.Machine().SetProposer(g); err != nil {
		g.t.Fatal(err)
	}
	return k
}

// join opens a keyring on a new disk, which the first node founds and all others get
// from it.
func (g *group) join(seed byte) *disk {
	d := newDisk()
	opt := d.opt(seed)
	opt.Blank = len(g.nodes) > 0
	k := g.open(opt)
	if len(g.nodes) > 0 {
		if err := k.Machine().Restore(must[[]byte](g.t)(g.nodes[0].Machine().Snapshot())); err != nil {
			g.t.Fatal(err)
		}
	}
	g.nodes = append(g.nodes, k)
	return d
}

// equal checks that all nodes have the same state.
func (g *group) equal() {
	g.t.Helper()
	want := must[[]byte](g.t)(g.nodes[0].Machine().Snapshot())
	for i, k := range g.nodes[1:] {
		if !bytes.Equal(must[[]byte](g.t)(k.Machine().Snapshot()), want) {
			g.t.Fatalf("node %d has another state", i+1)
		}
	}
}

// act does something random through the keyring k.
func act(k *Keyring, rng *rand.Rand) error {
	ns := NamespaceID{1, byte(rng.IntN(3))}
	name := func() string { return fmt.Sprint("s", rng.IntN(6)) }
	known := func(id KeyID, err error) KeyID {
		if err != nil {
			return KeyID{byte(rng.IntN(5))}
		}
		return id
	}
	pick := func() KeyID {
		d, err := k.DataKey(ns, name())
		if err != nil {
			return known(KeyID{}, err)
		}
		return d.ID()
	}
	switch rng.IntN(12) {
	case 0:
		return k.CreateNamespace(ns)
	case 1, 2, 3, 4, 5:
		_, _, err := k.EnsureSubjects(ns, []string{name(), name(), ""})
		return err
	case 6, 7, 8:
		_, err := k.Combine([]KeyID{pick(), pick(), pick()})
		return err
	case 9, 10:
		return k.Destroy(pick(), pick())
	}
	if rng.IntN(4) > 0 {
		return nil
	}
	return k.DestroyNamespace(ns)
}

func TestMachinesWithTheSameCommandsAreEqual(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 5))
		g := &group{t: t}
		g.join(1)
		second := g.join(2)
		done, refused := 0, 0
		for step := range 250 {
			switch err := act(g.nodes[rng.IntN(len(g.nodes))], rng); {
			case err == nil:
				done++
			case errors.Is(err, ErrNoKey), errors.Is(err, ErrDestroyed), errors.Is(err, ErrNotDestroyable):
				refused++
			default:
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if step == 100 {
				g.join(3) // from a snapshot in the middle
			}
			if step%40 == 39 {
				// The second node is killed and reads its own files. The last
				// commands come again, as Raft would bring them.
				k := g.open(second.opt(10 + byte(step)))
				for i := max(0, len(g.log)-5); i < len(g.log); i++ {
					if _, err := k.Machine().Apply(g.at(i+1), 1, g.log[i]); err != nil {
						t.Fatal(err)
					}
				}
				g.nodes[1] = k
			}
			g.equal()
		}
		if done < 50 || refused < 10 {
			t.Fatalf("seed %d: %d done, %d refused: that shows little", seed, done, refused)
		}
	}
}

// A command that waits while keys are destroyed was sealed under a key that is
// gone. It must not bring anything back, and its maker tries again.
func TestCommandOvertakenByADestructionIsProposedAgain(t *testing.T) {
	g := &group{t: t}
	g.join(1)
	g.join(2)
	k, other := g.nodes[0], g.nodes[1]
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	g.before = func() {
		if err := other.Destroy(KeyID{9}); err != nil {
			t.Error(err)
		}
	}
	ids, created, err := k.EnsureSubjects(nsA, []string{"ada"})
	if err != nil || !created[0] {
		t.Fatal(created, err)
	}
	must[*DataKey](t)(other.KeyByID(ids[0]))
	var verdicts []Verdict
	for _, a := range g.answers {
		verdicts = append(verdicts, a.Verdict)
	}
	if !slices.Equal(verdicts, []Verdict{VerdictDone, VerdictDone, VerdictAgain, VerdictDone}) {
		t.Fatal(verdicts)
	}
	g.equal()
	// Nothing in the log opens before the destruction with what is there after it.
	for _, sealed := range g.log[:2] {
		if c, err := openCommand(sealed, k.command); c != nil || err != nil {
			t.Fatal("an older command opens still", err)
		}
	}
}

// Two nodes make the same subject's key at the same time: one of them wins, on
// all nodes, and only it has made a key.
func TestTwoProposersOfOneSubject(t *testing.T) {
	g := &group{t: t}
	g.join(1)
	g.join(2)
	if err := g.nodes[0].CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	var won []KeyID
	g.before = func() {
		var err error
		if won, _, err = g.nodes[1].EnsureSubjects(nsA, []string{"ada"}); err != nil {
			t.Error(err)
		}
	}
	ids, created, err := g.nodes[0].EnsureSubjects(nsA, []string{"ada", "bob"})
	if err != nil || ids[0] != won[0] || created[0] || !created[1] {
		t.Fatal(ids, won, created, err)
	}
	g.equal()
}

func TestApplyPassesOverWhatItHas(t *testing.T) {
	g := &group{t: t}
	g.join(1)
	k := g.nodes[0]
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.EnsureSubjects(nsA, []string{"ada"}); err != nil {
		t.Fatal(err)
	}
	before := must[[]byte](t)(k.Machine().Snapshot())
	for i, command := range g.log {
		if a, err := k.Machine().Apply(g.at(i+1), 1, command); err != nil || a.Verdict != VerdictOld {
			t.Fatal(a, err)
		}
	}
	if !bytes.Equal(before, must[[]byte](t)(k.Machine().Snapshot())) {
		t.Fatal("a command was applied twice")
	}
}

func TestCommandsThatAreNoneChangeNothing(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	good := must[[]byte](t)(sealCommand(&command{kind: kindDestroy, next: fixedKey(3).raw, ids: []KeyID{{1}}}, k.command, seeded(4)))
	index := uint64(10)
	apply := func(b []byte) (Answer, error) { index++; return k.Machine().Apply(index, 1, b) }
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		want := VerdictBroken
		switch {
		case i == 0:
			bad[0] = 0
		case i < commandAAD:
			want = VerdictAgain
		}
		if a, err := apply(bad); err != nil || a.Verdict != want {
			t.Fatalf("byte %d: %v, %v", i, a, err)
		}
	}
	for n := range commandMinimum {
		if a, err := apply(good[:n]); err != nil || a.Verdict != VerdictBroken {
			t.Fatal(n, a, err)
		}
	}
	newer := bytes.Clone(good)
	newer[0] = commandVersion + 1
	_, err := apply(newer)
	wantErr(t, err, ErrNewerFormat)
	unknown := must[[]byte](t)(sealCommand(&command{kind: kindDestroyNamespace + 1}, k.command, seeded(4)))
	_, err = apply(unknown)
	wantErr(t, err, ErrNewerFormat)
	if len(k.table.deadKeys) != 0 {
		t.Fatal("something was destroyed")
	}
}

func TestCommandsThatContradictTheState(t *testing.T) {
	k := mustOpen(t, newDisk().opt(1))
	if err := k.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := k.EnsureSubjects(nsA, []string{"ada", "bob"})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(ids, compareIDs)
	fresh := func(tag, id byte) freshKey {
		return freshKey{tag: subjectTag{tag}, id: KeyID{id}, raw: fixedKey(id).raw}
	}
	taken := fresh(5, 5)
	taken.id = ids[0]
	for name, x := range map[string]struct {
		c    *command
		want Verdict
	}{
		"id in use":             {&command{kind: kindEnsureSubjects, ns: nsA, fresh: []freshKey{taken}}, VerdictTaken},
		"id twice":              {&command{kind: kindEnsureSubjects, ns: nsA, fresh: []freshKey{fresh(5, 5), fresh(6, 5)}}, VerdictTaken},
		"id zero":               {&command{kind: kindEnsureSubjects, ns: nsA, fresh: []freshKey{fresh(5, 0)}}, VerdictTaken},
		"subject twice":         {&command{kind: kindEnsureSubjects, ns: nsA, fresh: []freshKey{fresh(5, 5), fresh(5, 6)}}, VerdictBroken},
		"namespace as subject":  {&command{kind: kindEnsureSubjects, ns: nsA, fresh: []freshKey{fresh(0, 5)}}, VerdictBroken},
		"unknown namespace":     {&command{kind: kindEnsureSubjects, ns: nsB, fresh: []freshKey{fresh(5, 5)}}, VerdictNoKey},
		"namespace's key taken": {&command{kind: kindCreateNamespace, ns: nsB, index: fixedKey(1).raw, fresh: []freshKey{{id: ids[0], raw: fixedKey(2).raw}}}, VerdictTaken},
		"combines one":          {&command{kind: kindCombine, ids: ids[:1]}, VerdictBroken},
		"combines out of order": {&command{kind: kindCombine, ids: []KeyID{ids[1], ids[0]}}, VerdictBroken},
		"combines the unknown":  {&command{kind: kindCombine, ids: []KeyID{{1}, ids[1]}}, VerdictNoKey},
		"combines the cluster":  {&command{kind: kindCombine, ids: []KeyID{k.Cluster().ID()}}, VerdictBroken},
		"destroys the cluster":  {&command{kind: kindDestroy, next: fixedKey(3).raw, ids: []KeyID{k.Cluster().ID()}}, VerdictNotDestroyable},
		"destroys nothing":      {&command{kind: kindDestroy, next: fixedKey(3).raw, ids: []KeyID{{}}}, VerdictNotDestroyable},
	} {
		before := must[[]byte](t)(k.Machine().Snapshot())
		a, err := k.Machine().Apply(k.index+1, 1, must[[]byte](t)(sealCommand(x.c, k.command, seeded(4))))
		if err != nil || a.Verdict != x.want {
			t.Errorf("%s: %v, %v", name, a, err)
		}
		if !bytes.Equal(before[1+cursorSize:], must[[]byte](t)(k.Machine().Snapshot())[1+cursorSize:]) { // the index moves on
			t.Errorf("%s: changed something", name)
		}
	}
}

func TestRestoreKeepsHandlesAndEndsTheOthers(t *testing.T) {
	g := &group{t: t}
	g.join(1)
	d := g.join(2)
	ahead, behind := g.nodes[0], g.nodes[1]
	if err := ahead.CreateNamespace(nsA); err != nil {
		t.Fatal(err)
	}
	ids, _, err := ahead.EnsureSubjects(nsA, []string{"ada", "bob", "eve"})
	if err != nil {
		t.Fatal(err)
	}
	must[*DataKey](t)(ahead.Combine(ids[:2]))
	pair := must[*DataKey](t)(behind.Combine(ids[1:]))
	older := must[[]byte](t)(behind.Machine().Snapshot())
	ada, bob := must[*DataKey](t)(behind.KeyByID(ids[0])), must[*DataKey](t)(behind.KeyByID(ids[1]))
	value := bob.Seal(nil, testIdentity, nil, []byte("x"))
	stolen := d.get(d.path(primaryName))
	raw := *ada.raw
	g.nodes = g.nodes[:1] // the second is away
	if err := ahead.Destroy(ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := behind.Machine().Restore(must[[]byte](t)(ahead.Machine().Snapshot())); err != nil {
		t.Fatal(err)
	}
	if _, err := ada.Open(nil, testIdentity, nil, value); !errors.Is(err, ErrDestroyed) {
		t.Fatal(err)
	}
	if d.thief(t, stolen)[raw] {
		t.Fatal("a key that the snapshot no longer has is in a file")
	}
	if got := must[*DataKey](t)(behind.KeyByID(ids[1])); got != bob {
		t.Fatal("a handle that is held is not the one that a destruction finds")
	}
	if got := must[*DataKey](t)(behind.KeyByID(pair.ID())); got != pair {
		t.Fatal("a combined key's handle was replaced")
	}
	must[[]byte](t)(bob.Open(nil, testIdentity, nil, value))
	g.nodes = append(g.nodes, behind)
	g.equal()
	wantErr(t, behind.Machine().Restore(older), ErrDamaged)
	wantErr(t, behind.Machine().Restore(nil), ErrDamaged)
	wantErr(t, behind.Machine().Restore([]byte{snapshotVersion + 1}), ErrNewerFormat)
	wantErr(t, behind.Machine().Restore([]byte{snapshotVersion, 1}), ErrDamaged)
	g.equal()
	// And from the files.
	g.nodes[1] = g.open(d.opt(7))
	g.equal()
}

// someCommands has one of each kind.
func someCommands() []*command {
	key := func(n byte) freshKey {
		return freshKey{tag: subjectTag{n}, id: KeyID{n, 2}, raw: fixedKey(n).raw}
	}
	return []*command{
		{kind: kindCreateNamespace, ns: nsA, index: fixedKey(1).raw, fresh: []freshKey{{id: KeyID{7}, raw: fixedKey(2).raw}}},
		{kind: kindEnsureSubjects, ns: nsA, fresh: []freshKey{key(3), key(4)}},
		{kind: kindCombine, ids: []KeyID{{1}, {2}}},
		{kind: kindDestroy, next: fixedKey(5).raw, ids: []KeyID{{1}}},
		{kind: kindDestroyNamespace, next: fixedKey(5).raw, ns: nsB},
	}
}

// These bytes are in Raft logs and in key files. They never change.
func TestGoldenCommands(t *testing.T) {
	var bodies []byte
	for _, c := range someCommands() {
		body := c.encode()
		bodies = append(bodies, body...)
		back := must[*command](t)(decodeCommand(body))
		if !bytes.Equal(back.encode(), body) || back.kind != c.kind {
			t.Fatalf("command %d came back as another", c.kind)
		}
		for n := range body {
			_, err := decodeCommand(body[:n])
			wantErr(t, err, ErrDamaged)
		}
	}
	sum := sha256.Sum256(bodies)
	goldenCheck(t, "COMMANDS", sum[:], goldenCommands)
	sealed := must[[]byte](t)(sealCommand(someCommands()[2], fixedKey(9).raw, seeded(1)))
	goldenCheck(t, "COMMAND", sealed, goldenCommand)
	goldenCheck(t, "RECORD", appendRecord([]byte("head"), []byte("sum"), []byte("record")), goldenRecord)
}

const (
	goldenCommands = "0d190f9f4c1503be8b47498c3b8e5993c613a377fb309d2b61827ff5533797aa" // SHA-256
	goldenCommand  = "01423f7a6913b4bfd86ae6783f4fbde91b6eb88b73d8ea2882b9dfa8086e02bb4a7256b0c548050d284224dbd1c2576d08d0b0df31eb1c0346b2a3d83d9e81a079adb6d46623d4259cb4"
	goldenRecord   = "68656164000000067265636f72646bc9f1c82765821f6fcccafc339d74db"
)

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range someCommands() {
		f.Add(c.encode())
		f.Add(must[[]byte](f)(sealCommand(c, fixedKey(9).raw, seeded(1))))
	}
	f.Add([]byte{byte(kindEnsureSubjects), 0xFF, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = openCommand(b, fixedKey(9).raw)
		if c, err := decodeCommand(b); err == nil && !bytes.Equal(c.encode(), b) {
			t.Fatal("what was accepted encodes otherwise")
		}
	})
}
