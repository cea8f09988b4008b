package projections

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

func sampleRange() *Range {
	return &Range{Pipeline: 2, Keys: 9, Applied: Mark{5, events.Chain{8}}, Previous: 7, Chain: events.Chain{1, 2}, Frames: []RangeFrame{
		{Bytes: []byte("void")},
		{Bytes: []byte("frame"), Contributions: []*Contribution{nil, {
			Terms:   []text.Term{{Field: text.FieldTags, Text: "tea", TF: 300}},
			Lengths: [text.NumFields]uint32{1, 200, 3}, Attrs: []AttrKey{Attr(AttrTag, "ops"), Attr(AttrConversation, "c-1")}, URI: "a/b",
			SpaceVectors: SpaceVectors{Space: SpaceKey{3}, Chunks: 2, Vectors: [][]byte{[]byte("v0"), []byte("v1")}},
			Next:         SpaceVectors{Space: SpaceKey{4}, Chunks: 1},
		}, {Code: "unreadable"}, {}}},
	}}
}

func TestRangeGolden(t *testing.T) {
	b := sampleRange().Encode()
	const want = "0106" + "00000002" + "0000000000000009" + "0000000000000005" + "0800000000000000000000000000000000000000000000000000000000000000" +
		"0000000000000007" + "0102000000000000000000000000000000000000000000000000000000000000" + "02" +
		"04766f6964" + "00" + "056672616d65" + "04" + "00" +
		"3f" + // sections: text, attributes, uri, vectors, next
		"0210" + "04" + "01c8010300" + "00010000" + "03746561" + "ac02" +
		"030a" + "01036f7073" + "0203632d31" +
		"0403" + "612f62" +
		"050f" + "0300000000000000" + "02" + "027630" + "027631" +
		"0609" + "0400000000000000" + "01" +
		"0c" + "010a" + "756e7265616461626c65" +
		"02" + "0300"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("Raft logs that exist hold other bytes\n got %s\nwant %s", got, want)
	}
	got, err := DecodeRange(b)
	if err != nil || !reflect.DeepEqual(got, sampleRange()) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := DecodeRange(b[:n]); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if KeysOf(b) != 9 || KeysOf(b[:rangeFixed-1]) != 0 || KeysOf((&Reserve{}).Encode()) != 0 {
		t.Errorf("keys up to %d", KeysOf(b))
	}
	for _, head := range [][]byte{{commandRange, rangeVersion + 1}, {99, rangeVersion}} {
		if _, err := DecodeRange(append(head, b[2:]...)); !errors.Is(err, events.ErrNewer) {
			t.Error(err)
		}
	}
	if _, err := DecodeRange(append(b, 0)); !errors.Is(err, events.ErrMalformed) {
		t.Error(err)
	}
}

// TestRangeAllocation: counts that promise more than the bytes hold cost nothing.
func TestRangeAllocation(t *testing.T) {
	head := append([]byte{commandRange, rangeVersion}, make([]byte, rangeFixed-2)...)
	for _, n := range []uint64{1 << 24, math.MaxUint64} {
		checkAllocation(t, head, binary.AppendUvarint(nil, n))
	}
}

func checkAllocation(t *testing.T, head, huge []byte) {
	t.Helper()
	for name, tail := range map[string][]byte{
		"frames":        huge,
		"frame length":  append([]byte{1}, huge...),
		"contributions": append([]byte{1, 0}, huge...),
		"section":       append([]byte{1, 0, 1, byte(1 + len(huge)), sectionText}, huge...),
		"terms":         append([]byte{1, 0, 1, byte(6 + len(huge)), sectionText, byte(4 + len(huge)), 3, 0, 0, 0}, huge...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeRange(append(bytes.Clone(head), tail...))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, events.ErrMalformed) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("%s: %v, %d bytes allocated", name, err, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

func FuzzRange(f *testing.F) {
	f.Add(sampleRange().Encode())
	f.Add([]byte{commandRange, rangeVersion})
	f.Add((&Range{}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := DecodeRange(b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+400*uint64(len(b)) {
			t.Fatalf("%d bytes allocated for %d", n, len(b))
		}
		if err != nil {
			if !errors.Is(err, events.ErrMalformed) && !errors.Is(err, events.ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		if again, err := DecodeRange(r.Encode()); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v becomes %+v, %v", r, again, err)
		}
	})
}

func TestReserveGolden(t *testing.T) {
	r := &Reserve{Applied: Mark{5, events.Chain{8}}, Replaces: events.StreamRef{Epoch: 1, Identity: "old"}, Next: events.StreamRef{Epoch: 3, Identity: "new"}}
	b := r.Encode()
	const want = "0201" + "0000000000000005" + "0800000000000000000000000000000000000000000000000000000000000000" +
		"00000001" + "036f6c64" + "00000003" + "036e6577"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("Raft logs that exist hold other bytes\n got %s\nwant %s", got, want)
	}
	if got, err := DecodeReserve(b); err != nil || *got != *r {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := DecodeReserve(b[:n]); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	r.Next.Identity = strings.Repeat("x", maxIdentity+1)
	for name, b := range map[string][]byte{"long identity": r.Encode(), "tail": append(b, 0)} {
		if _, err := DecodeReserve(b); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzKeys: keys sort as what they are made of, and parse back.
func FuzzKeys(f *testing.F) {
	f.Add(uint32(1), uint64(2), uint32(3), int64(-4), uint32(1), uint64(2), uint32(4), int64(5), []byte("abc"))
	f.Add(uint32(0), uint64(math.MaxUint64), uint32(math.MaxUint32), int64(math.MinInt64), uint32(0), uint64(0), uint32(0), int64(math.MaxInt64), []byte{0xff})
	f.Fuzz(func(t *testing.T, p1 uint32, s1 uint64, i1 uint32, t1 int64, p2 uint32, s2 uint64, i2 uint32, t2 int64, raw []byte) {
		a, b := Ref{s1, i1}, Ref{s2, i2}
		var ns events.ID
		attr, other := Attr(AttrTag, string(raw)), Attr(AttrTag, string(raw)+"x")
		var mac events.MAC
		copy(ns[:], raw)
		copy(mac[:], raw)
		order := func(name string, x, y []byte, less, equal bool) {
			t.Helper()
			if c := bytes.Compare(x, y); (c < 0) != less && !equal || (c == 0) != equal {
				t.Fatalf("%s: %x against %x", name, x, y)
			}
		}
		order("audit", auditKey(ns, a), auditKey(ns, b), a.Before(b), a == b)
		order("read", readKey(ns, a), readKey(ns, b), a.Before(b), a == b)
		order("history", historyKey(ns, ns, a), historyKey(ns, ns, b), a.Before(b), a == b)
		order("envelope", envelopeKey(s1, i1), envelopeKey(s2, i2), a.Before(b), a == b)
		order("quarantine", quarantineKey(a), quarantineKey(b), a.Before(b), a == b)
		order("death", deathKey(p1, a, 0), deathKey(p1, b, 0), a.Before(b), a == b)
		order("frame", frameKey(s1), frameKey(s2), s1 < s2, s1 == s2)
		order("time", timeKey(p1, t1, i1), timeKey(p1, t2, i2), t1 < t2 || t1 == t2 && i1 < i2, t1 == t2 && i1 == i2)
		order("conversation", conversationKey(p1, attr, t1, i1), conversationKey(p1, attr, t2, i2), t1 < t2 || t1 == t2 && i1 < i2, t1 == t2 && i1 == i2)
		order("doc", docKey(p1, i1), docKey(p2, i2), p1 < p2 || p1 == p2 && i1 < i2, p1 == p2 && i1 == i2)
		order("vector", vectorKey(p1, SpaceKey{}, i1), vectorKey(p1, SpaceKey{}, i2), i1 < i2, i1 == i2)
		g, h := events.GraphRef{Seq: s1, Index: i1, N: p1}, events.GraphRef{Seq: s2, Index: i2, N: p2}
		order("graph entity", graphEntityKey(p1, g), graphEntityKey(p1, h), g.Before(h), g == h)
		order("graph relation", graphRelationKey(p1, g), graphRelationKey(p1, h), g.Before(h), g == h)
		order("observation", graphObservationKey(p1, g, g), graphObservationKey(p1, g, h), g.Before(h), g == h)
		order("owner", graphOwnerKey(p1, g), graphOwnerKey(p1, h), g.Before(h), g == h)
		order("ended", graphEndedKey(p1, a), graphEndedKey(p1, b), a.Before(b), a == b)
		order("find", graphFindKey(p1, graphEntityByName, g, string(raw)), graphFindKey(p1, graphEntityByName, h, string(raw)), g.Before(h), g == h)
		if events.DecodeGraphRef(graphEntityKey(p1, g)[5:]) != g || !bytes.HasPrefix(graphEntityKey(p1, g), Ref{g.Seq, g.Index}.append(be32([]byte{prefixGraphEntity}, p1))) {
			t.Fatalf("%v comes back otherwise, or is not below its event", g)
		}
		if bytes.Equal(graphFinds(p1, graphRelationByAll, string(raw), "a", "b"), graphFinds(p1, graphRelationByAll, string(raw)+"a", "", "b")) {
			t.Fatal("strings run into one another")
		}
		order("day", bitmapPrefix(p1, dayNumberKey(t1)), bitmapPrefix(p1, dayNumberKey(t2)), t1 < t2, t1 == t2)
		if got := decodeRef(readKey(ns, a)[17:]); got != a || !bytes.HasPrefix(readKey(ns, a), readPrefix(ns)) {
			t.Fatalf("%v comes back as %v", a, got)
		}
		if got := decodeRef(auditKey(ns, a)[17:]); got != a {
			t.Fatalf("%v comes back as %v", a, got)
		}
		if got := decodeTime(timeKey(p1, t1, i1)[5:]); got != t1 {
			t.Fatalf("time %d comes back as %d", t1, got)
		}
		if !bytes.HasPrefix(conversationKey(p1, attr, t1, i1), conversationPrefix(p1, attr)) || !bytes.HasPrefix(bitmapKey(p1, attr, uint16(i1)), bitmapPrefix(p1, attr)) {
			t.Fatal("prefix")
		}
		if strings.HasPrefix(string(attr), string(other)) || strings.HasPrefix(string(other), string(attr)) || len(attr) > 257 {
			t.Fatalf("attributes %q and %q", attr, other)
		}
		if k, rest := cutAttr(append([]byte(attr), other...)); k != attr || string(rest) != string(other) {
			t.Fatalf("attribute %q comes back as %q", attr, k)
		}
		if bytes.Equal(partitionKey(ns, 1, string(raw)), partitionKey(ns, 2, string(raw))) || bytes.Equal(idemKey(ns, mac, "a"), idemKey(ns, mac, "b")) {
			t.Fatal("keys collide")
		}
	})
}

func TestDayKeys(t *testing.T) {
	const day = int64(24 * 3600 * 1e9)
	for at, want := range map[int64]int64{0: 0, day - 1: 0, day: 1, -1: -1, -day: -1, -day - 1: -2, math.MaxInt64: 106751, math.MinInt64: -106752} {
		if DayKey(at) != dayNumberKey(want) {
			t.Errorf("%d is not on day %d", at, want)
		}
	}
}

// rowCodecs decodes and encodes each kind of row.
var rowCodecs = map[string]func(b []byte) ([]byte, error){
	"cursor":         func(b []byte) ([]byte, error) { v, err := decodeCursor(b); return v.encode(), err },
	"cursor, raised": func(b []byte) ([]byte, error) { v, err := decodeCursor(b); return v.encode(), err },
	"partition":      func(b []byte) ([]byte, error) { v, err := decodePartition(3, b); return v.encode(), err },
	"doc":            func(b []byte) ([]byte, error) { v, err := decodeDoc(b); return v.encode(), err },
	"used key":       func(b []byte) ([]byte, error) { v, err := decodeUsedKey(b); return v.encode(), err },
	"audit":          func(b []byte) ([]byte, error) { v, err := decodeAuditRow(Ref{}, b); return v.encode(), err },
	"read":           func(b []byte) ([]byte, error) { v, err := decodeLoggedRead(Ref{}, b); return v.encode(), err },
	"graph totals":   func(b []byte) ([]byte, error) { v, err := decodeGraphTotals(b); return v.encode(), err },
	"vector":         func(b []byte) ([]byte, error) { v, err := decodeVectorRow(b); return v.encode(), err },
	"head": func(b []byte) ([]byte, error) {
		v, err := decodeHead(b)
		if err == nil && b[12] > 1 {
			return b, nil // any mark but 1 is dead
		}
		return v.encode(), err
	},
}

func sampleRows() map[string][]byte {
	c := Cursor{RaftIndex: 1, RaftTerm: 2, Shard: 3, Epoch: 4, Seq: 5, Index: 6, Term: 7, Chain: events.Chain{8}, SealedAt: -9, Partitions: 10, Pipeline: 11, Events: 12, Identity: "stream"}
	p := Partition{ID: 3, Namespace: events.ID{1}, Scope: events.ScopeAgent, Agent: "ann", NextDoc: 4}
	d := Doc{Record: events.ID{1}, Version: 2, Kind: 3, At: Ref{4, 5}, SealedAt: 6, OccurredAt: -7, Death: Ref{8, 9}, Agent: "ann"}
	s := UsedKey{Record: events.ID{1}, At: Ref{2, 3}, Body: events.MAC{4}}
	a := AuditRow{Type: 20, Scope: 1, Outcome: OutcomeCreated, SealedAt: -5, Event: events.ID{6}, Record: events.ID{7}, Hash: events.Hash{8}, Agent: "ann"}
	v := VectorRow{Doc: 1, Chunk: 2, Numbers: []byte("numbers")}
	h := Head{Partition: 1, Doc: 2, Versions: 3, Living: true, URI: "a/b"}
	g := GraphTotals{Entities: 1, Observations: 2, Relations: 3, Bytes: 4, Changed: Ref{5, 6}}
	l := LoggedRead{Scope: events.ScopeAgent, SealedAt: -5, Agent: "ann"}
	raised := c
	raised.Level = events.FeatureLevel
	return map[string][]byte{"cursor": c.encode(), "cursor, raised": raised.encode(), "partition": p.encode(), "doc": d.encode(), "used key": s.encode(), "audit": a.encode(), "vector": v.encode(), "head": h.encode(), "graph totals": g.encode(), "read": l.encode()}
}

func TestRows(t *testing.T) {
	for name, b := range sampleRows() {
		again, err := rowCodecs[name](b)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: %x becomes %x, %v", name, b, again, err)
		}
		if _, err := rowCodecs[name](b[:min(12, len(b)/3)]); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("%s, cut: %v", name, err)
		}
	}
	if _, err := decodeCursor(append([]byte{cursorVersion + 1}, make([]byte, 200)...)); !errors.Is(err, events.ErrNewer) {
		t.Error(err)
	}
	c, level := sampleRows()["cursor"], Cursor{Level: events.FeatureLevel, Identity: "stream"}
	if c[0] != cursorNoLevel {
		t.Error("a cursor without a level cannot be read by the program before")
	}
	if got, err := decodeCursor(level.encode()); err != nil || got.Level != level.Level || got.Identity != "stream" || got.FeatureLevel() != events.FeatureLevel {
		t.Errorf("%+v, %v", got, err)
	}
	if level.Level++; level.encode()[0] != cursorVersion {
		t.Error("a program from before takes a raised level for none")
	}
	if _, err := decodeCursor(level.encode()); !errors.Is(err, events.ErrNewer) {
		t.Errorf("a level that nobody knows: %v", err)
	}
	for _, cut := range [][]byte{level.encode()[:cursorFixed], level.encode()[:cursorFixed+1]} {
		if _, err := decodeCursor(cut); !errors.Is(err, events.ErrMalformed) {
			t.Errorf("cut: %v", err)
		}
	}
	if _, err := decodeEntry([]byte("{")); !errors.Is(err, events.ErrMalformed) {
		t.Error(err)
	}
	if _, err := decodeHome([]byte("{")); !errors.Is(err, events.ErrMalformed) {
		t.Error(err)
	}
	for _, bad := range [][]byte{nil, []byte("junk")} {
		if _, err := decodeBitmap(bad); !errors.Is(err, events.ErrMalformed) {
			t.Error(err)
		}
	}
	if Outcome(200).String() != "outcome-200" || OutcomeVoid.String() != "void" {
		t.Error("outcome names")
	}
}

func FuzzRows(f *testing.F) {
	for name, b := range sampleRows() {
		f.Add(name, b)
	}
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		codec := rowCodecs[name]
		if codec == nil {
			return
		}
		again, err := codec(b)
		if err == nil && !bytes.Equal(again, b) {
			t.Fatalf("%s: %x becomes %x", name, b, again)
		}
		if err != nil && !errors.Is(err, events.ErrMalformed) && !errors.Is(err, events.ErrNewer) {
			t.Fatal(err)
		}
	})
}

func TestStateHash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	random := func() (h StateHash) {
		for i := range h {
			h[i] = rnd.Uint64()
		}
		return h
	}
	for range 200 {
		a, b, c := random(), random(), random()
		if a.Add(b) != b.Add(a) || a.Add(b).Add(c) != a.Add(b.Add(c)) || a.Add(b).Sub(b) != a || a.Sub(a) != (StateHash{}) || decodeStateHash(a.encode()) != a {
			t.Fatal("no group", a, b, c)
		}
	}
	ones := StateHash{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}
	if ones.Add(StateHash{1}) != (StateHash{}) || ones.String() != strings.Repeat("f", 64) {
		t.Error("carry")
	}
	if s := (StateHash{1}).String(); s != strings.Repeat("0", 63)+"1" {
		t.Error(s)
	}
	if decodeStateHash([]byte("short")) != (StateHash{}) {
		t.Error("a hash row of another length")
	}
	h, _ := factHash(nil, []byte("k"), []byte("v"))
	other, _ := factHash(nil, []byte("kv"), nil)
	if h == other || h == (StateHash{}) {
		t.Error("key and value run together")
	}
}
