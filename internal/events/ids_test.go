package events

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/memory"
)

func TestIDSource(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	make1 := func() *IDSource { return NewIDSource(func() time.Time { return at }, rand.NewChaCha8([32]byte{1})) }
	a, b := make1(), make1()
	seen := map[ID]bool{}
	for range 200 { // more than one read of randomness
		id := a.New()
		if id != b.New() {
			t.Fatal("the same clock and randomness give other ids")
		}
		if seen[id] || id.Time() != uint64(at.UnixMilli()) {
			t.Fatalf("id %s", id)
		}
		seen[id] = true
	}
	at = time.UnixMilli(1 << 49) // past what 48 bits hold
	if id := a.New(); id.Time() != 1<<48-1 {
		t.Errorf("far future: %s", id)
	}
	if NewIDSource(time.Now, nil).New() == (ID{}) {
		t.Error("zero id")
	}
}

func TestIDSourceConcurrently(t *testing.T) {
	s := NewIDSource(time.Now, nil)
	var mu sync.Mutex
	seen := map[ID]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				id := s.New()
				mu.Lock()
				if seen[id] {
					t.Errorf("id %s twice", id)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestIDSourceWithoutRandomness(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an id without randomness")
		}
	}()
	NewIDSource(time.Now, bytes.NewReader(nil)).New()
}

func TestDerivedIDs(t *testing.T) {
	e := testID(0x10)
	record := RecordID(e)
	if got := record.String(); got != "0G2491650NY4ES9S4E13ZEXQBW" {
		t.Errorf("record id %s: ids that exist would change", got)
	}
	if record != RecordID(e) || CausedID("vectors", e) != CausedID("vectors", e) {
		t.Error("not a function")
	}
	all := []ID{e, record, CausedID("vectors", e), CausedID("record", e), CausedID("", e), RecordID(testID(0x11)), RecordID(record)}
	slices.SortFunc(all, func(a, b ID) int { return a.Compare(b) })
	if len(slices.Compact(all)) != 7 {
		t.Error("derived ids collide")
	}
	if record.Time() != e.Time() || CausedID("x", e).Time() != e.Time() {
		t.Error("a derived id does not keep the time")
	}
}

func TestParseID(t *testing.T) {
	id := testID(0x10)
	if got, err := ParseID(id.String()); err != nil || got != id {
		t.Error(got, err)
	}
	for _, s := range []string{"", "x", strings.ToLower(id.String()), id.String() + "0", "8" + id.String()[1:], "U" + id.String()[1:]} {
		if _, err := ParseID(s); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestMAC(t *testing.T) {
	var full [32]byte
	seq(1, full[:])
	m := TruncateMAC(full)
	if m.IsZero() || !(MAC{}).IsZero() || m.String() != "0102030405060708090a0b0c0d0e0f10" {
		t.Error(m)
	}
}

func TestChain(t *testing.T) {
	f := sampleFrame()
	one := NextChain(Chain{}, 1, f.Encode())
	two := NextChain(one, 2, nil)
	golden(t, "chain", append(one[:], two[:]...))
	for name, other := range map[string]Chain{
		"previous": NextChain(Chain{1}, 1, f.Encode()),
		"sequence": NextChain(Chain{}, 2, f.Encode()),
		"frame":    NextChain(Chain{}, 1, append(f.Encode(), 0)),
	} {
		if other == one {
			t.Errorf("another %s gives the same chain", name)
		}
	}
	if got := HashEnvelope([]byte("abc")).String(); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(got)
	}
}

func TestPositions(t *testing.T) {
	p := Position{Shard: 65535, Epoch: 1<<32 - 1, Seq: 1<<64 - 1, Index: 1<<32 - 1}
	for _, q := range []Position{{}, {0, 1, 42, 3}, p} {
		got, err := ParsePosition(q.String())
		if err != nil || got != q {
			t.Errorf("%s: %v, %v", q, got, err)
		}
	}
	if s := (Position{0, 1, 42, 3}).String(); s != "p0.1.42.3" {
		t.Error(s)
	}
	for _, s := range []string{"", "p", "p0.1.42", "p0.1.42.3.4", "0.1.42.3", "p00.1.42.3", "p0.1.+42.3", "p0.1.42.-3", "p65536.1.42.3",
		"p0.1.42.3 ", "P0.1.42.3", "p0.1.18446744073709551616.0", "p0..42.3", strings.Repeat("p", 1000)} {
		if _, err := ParsePosition(s); !errors.Is(err, ErrMalformed) || len(err.Error()) > 200 {
			t.Errorf("%.80q: %v", s, err)
		}
	}
}

func TestPositionOrder(t *testing.T) {
	// Sequences go on across epochs, so epochs have no say.
	order := []Position{{}, {0, 5, 1, 0}, {0, 0, 1, 1}, {0, 2, 2, 0}, {0, 1, 10, 0}, {3, 0, 10, 7}}
	for i, p := range order {
		for j, q := range order {
			if got := p.Compare(q); (got < 0) != (i < j) || (got > 0) != (i > j) || p.Before(q) != (i < j) {
				t.Errorf("%s against %s: %d", p, q, got)
			}
		}
		if p.IsZero() != (i == 0) {
			t.Errorf("%s is zero: %v", p, p.IsZero())
		}
	}
}

func TestTypes(t *testing.T) {
	for typ, info := range typeTable {
		if !typ.Known() || typ.String() != info.name || typ.Schema() == 0 {
			t.Errorf("type %d", typ)
		}
		if typ.Control() != (typ < 10) {
			t.Errorf("%s: control %v", typ, typ.Control())
		}
	}
	if got := TypeCaptured.CloudEventType(); got != "io.mneme.memory.captured.v1" {
		t.Error(got)
	}
	if Type(99).Known() || Type(99).String() != "type-99" || Type(99).CloudEventType() != "io.mneme.type-99.v1" {
		t.Error(Type(99))
	}
	for _, k := range memory.Kinds {
		if KindOf(k).Public() != k {
			t.Errorf("kind %s becomes %s", k, KindOf(k).Public())
		}
	}
	if KindOf("") != KindOf(memory.KindOther) || KindOf("nonsense") != 9 || Kind(200).Public() != memory.KindOther || Kind(0).Public() != "" {
		t.Error("unknown kinds")
	}
	for _, s := range []memory.Scope{memory.ScopeTeam, memory.ScopeAgent} {
		if ScopeOf(s).Public() != s {
			t.Errorf("scope %s", s)
		}
	}
	if ScopeOf("") != ScopeTeam || ScopeNone.Public() != "" {
		t.Error("empty scope")
	}
}

func TestHeaderString(t *testing.T) {
	e := sampleEnvelopes()[TypeRevised]
	want := "memory.revised " + testID(0x10).String() + " by agent-7 on " + testID(0x40).String()
	if got := e.Header.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSubjects(t *testing.T) {
	for got, want := range map[string]string{
		LogSubject(3, 0):  "mem.log.3",
		LogSubject(3, 7):  "mem.log.3.7",
		StreamName(0, 0):  "mneme-0",
		StreamName(1, 12): "mneme-1-12",
		FeedSubject("n", ScopeTeam, "a", TypeCaptured):         "mem.feed.n.team.captured",
		FeedSubject("n", ScopeAgent, "a", TypeForgotten):       "mem.feed.n.agent.a.forgotten",
		FeedSubject("n", ScopeNone, "", TypeNamespaceDeleted):  "mem.feed.n.team.deleted",
		FeedSubject("n", ScopeAgent, "a", TypeVectorsAttached): "mem.feed.n.agent.a.attached",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ns, agent, err := ParseCaptureSubject("mem.in.team-a.agent-7.capture")
	if err != nil || ns != "team-a" || agent != "agent-7" {
		t.Error(ns, agent, err)
	}
	for _, s := range []string{"", "mem.in.a.b", "mem.in.a.b.c", "mem.in.a.b.capture.x", "mem.out.a.b.capture", "x.in.a.b.capture",
		"mem.in..b.capture", "mem.in.a..capture", "mem.in.A.b.capture", "mem.in.a.B.capture", "mem.in.*.b.capture", "mem.in._sys.b.capture"} {
		if _, _, err := ParseCaptureSubject(s); memory.CodeOf(err) != memory.CodeInvalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestUpcasters(t *testing.T) {
	add := func(s string) Upcaster {
		return func(b []byte) ([]byte, error) { return append(bytes.Clone(b), s...), nil }
	}
	broken := errors.New("broken")
	u := Upcasters{
		TypeCaptured:  {add("2"), add("3")},
		TypeRevised:   {func([]byte) ([]byte, error) { return nil, broken }},
		TypeForgotten: {add("2"), nil, add("4")},
	}
	for _, c := range []struct {
		typ            Type
		schema, newest uint8
		want           string
		err            error
	}{
		{TypeCaptured, 1, 3, "123", nil},
		{TypeCaptured, 2, 3, "13", nil},
		{TypeCaptured, 3, 3, "1", nil},
		{TypeCaptured, 4, 3, "", ErrNewer},
		{TypeCaptured, 0, 3, "", ErrMalformed},
		{TypeCaptured, 1, 5, "", ErrMalformed}, // a step that nobody wrote
		{TypeRevised, 1, 2, "", broken},
		{TypeForgotten, 1, 4, "", ErrMalformed},
		{TypeForgotten, 3, 4, "14", nil},
		{Type(99), 1, 1, "", ErrNewer},
	} {
		got, err := u.Apply(c.typ, c.schema, c.newest, []byte("1"))
		if !errors.Is(err, c.err) || string(got) != c.want {
			t.Errorf("%s from %d to %d: %q, %v", c.typ, c.schema, c.newest, got, err)
		}
	}
	// The program's own table has a step for every old schema.
	for typ := range typeTable {
		if len(upcasters[typ]) != int(typ.Schema())-1 {
			t.Errorf("%s has %d steps for schema %d", typ, len(upcasters[typ]), typ.Schema())
		}
		if got, err := Upcast(typ, typ.Schema(), []byte("x")); err != nil || string(got) != "x" {
			t.Errorf("%s: %q, %v", typ, got, err)
		}
		if _, err := Upcast(typ, typ.Schema()+1, nil); !errors.Is(err, ErrNewer) {
			t.Errorf("%s of a newer schema: %v", typ, err)
		}
	}
}
