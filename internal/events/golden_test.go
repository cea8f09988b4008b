package events

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mneme/memory"
)

var rewrite = flag.Bool("rewrite", false, "write the present bytes into testdata")

// golden compares bytes with testdata/name.golden, which holds them in hex, and
// with the list of accepted bytes, which -rewrite leaves alone.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if sum := digest(got); sum != accepted[name] {
		t.Errorf("%s: digest %s, accepted is %s\n\tlogs that exist hold the accepted bytes and are never rewritten: a change needs a new version, "+
			"a reader for the old one, and a line in accepted_test.go", name, sum, accepted[name])
	}
	file := filepath.Join("testdata", name+".golden")
	if *rewrite {
		var out strings.Builder
		for rest := got; len(rest) > 0; {
			n := min(32, len(rest))
			out.WriteString(hex.EncodeToString(rest[:n]) + "\n")
			rest = rest[n:]
		}
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: logs that exist hold other bytes\n got %x\nwant %x", name, got, want)
	}
}

// seq makes n bytes that tell where they come from.
func seq[T ~[]byte](first byte, into T) {
	for i := range into {
		into[i] = first + byte(i)
	}
}

func testID(first byte) (id ID) { seq(first, id[:]); return id }

func testMAC(first byte) (m MAC) { seq(first, m[:]); return m }

func testKey(first byte) (k [16]byte) { seq(first, k[:]); return k }

// sampleEnvelopes has one envelope of each type, as ingest writes them.
func sampleEnvelopes() map[Type]Envelope {
	base := Header{Schema: 1, Event: testID(0x10), SealedAt: 1_700_000_000_000_000_001, OccurredAt: -62_000_000_000}
	with := func(t Type, payload string, change func(*Header)) Envelope {
		h := base
		h.Type = t
		change(&h)
		e := Envelope{Header: h}
		if payload != "" {
			e.Payload = []byte(payload)
		}
		return e
	}
	memoryEvent := func(h *Header) {
		h.Namespace, h.Agent, h.Key, h.Scope = testID(0x20), "agent-7", testKey(0x60), ScopeTeam
	}
	return map[Type]Envelope{
		TypeLeaderBegan: with(TypeLeaderBegan, "", func(*Header) {}),
		TypeEpochBegan:  with(TypeEpochBegan, "why", func(*Header) {}),
		TypeQuarantined: with(TypeQuarantined, string(Quarantined{Seq: 0x0102030405060708, Index: 0x090a0b0c, By: "ops", Note: []byte("sealed note")}.Encode()), func(h *Header) { h.Agent = "ops" }),
		TypeLevelRaised: with(TypeLevelRaised, string(EncodeLevel(4)), func(*Header) {}),
		TypeNamespaceCreated: with(TypeNamespaceCreated, "sealed settings", func(h *Header) {
			h.Namespace, h.Name, h.Key = testID(0x20), "team-a", testKey(0x60)
		}),
		TypeNamespaceChanged: with(TypeNamespaceChanged, "sealed settings", func(h *Header) {
			h.Namespace, h.Key = testID(0x20), testKey(0x60)
		}),
		TypeNamespaceDeleted: with(TypeNamespaceDeleted, "", func(h *Header) { h.Namespace = testID(0x20) }),
		TypeKeyCreated:       with(TypeKeyCreated, "", func(h *Header) { h.Namespace, h.Key = testID(0x20), testKey(0x61) }),
		TypeKeyDestroyed:     with(TypeKeyDestroyed, "", func(h *Header) { h.Namespace, h.Key = testID(0x20), testKey(0x61) }),
		TypeSpaceBuilding:    with(TypeSpaceBuilding, "sealed settings", func(h *Header) { h.Namespace, h.Key = testID(0x20), testKey(0x60) }),
		TypeSpaceSwitched:    with(TypeSpaceSwitched, "sealed settings", func(h *Header) { h.Namespace, h.Key = testID(0x20), testKey(0x60) }),
		TypeSpaceDropped:     with(TypeSpaceDropped, "sealed settings", func(h *Header) { h.Namespace, h.Key = testID(0x20), testKey(0x60) }),
		TypeNamespacePlaced: with(TypeNamespacePlaced, "sealed settings", func(h *Header) {
			h.Namespace, h.Name, h.Home, h.Key = testID(0x20), "team-a", 0x0102, testKey(0x60)
		}),
		TypeCaptured: with(TypeCaptured, "sealed content", func(h *Header) {
			memoryEvent(h)
			h.Kind, h.Record = KindOf(memory.KindDecision), testID(0x30)
			h.Principal, h.Directory = testID(0x50), Position{Epoch: 3, Seq: 1 << 33, Index: 5}
			h.ClientID, h.Body = testMAC(0x80), testMAC(0x90)
		}),
		TypeRevised: with(TypeRevised, "sealed content", func(h *Header) {
			memoryEvent(h)
			h.Scope, h.Kind, h.Target, h.BaseVersion = ScopeAgent, KindOf(memory.KindOther), testID(0x40), 3
		}),
		TypeForgotten: with(TypeForgotten, "", func(h *Header) {
			memoryEvent(h)
			h.Key, h.Target, h.BaseVersion = [16]byte{}, testID(0x40), 0xfffffffe
		}),
		TypeGraphChanged: with(TypeGraphChanged, "sealed steps", func(h *Header) {
			memoryEvent(h)
			h.ClientID, h.Body = testMAC(0x80), testMAC(0x90)
		}),
		TypeRead: with(TypeRead, "sealed read", func(h *Header) {
			memoryEvent(h)
			h.Scope = ScopeAgent
		}),
		TypeVectorsAttached: with(TypeVectorsAttached, "sealed vectors", func(h *Header) {
			memoryEvent(h)
			h.Target, h.BaseVersion = testID(0x40), 1
		}),
	}
}

func TestGoldenEnvelopes(t *testing.T) {
	samples := sampleEnvelopes()
	for typ := range typeTable {
		e, ok := samples[typ]
		if !ok {
			t.Errorf("%s has no golden bytes: add a sample", typ)
			continue
		}
		t.Run(typ.String(), func(t *testing.T) {
			b := e.Encode()
			golden(t, "envelope-"+typ.String(), b)
			got, err := DecodeEnvelope(b)
			if err != nil || !reflect.DeepEqual(got, e) {
				t.Fatalf("decoded %+v, %v, want %+v", got, err, e)
			}
			eachFlip(b, func(at int, flipped []byte) {
				got, err := DecodeEnvelope(flipped)
				checkDecoded(t, at, flipped, err, got.Encode)
			})
			eachCut(b, func(n int, cut []byte) {
				if _, err := DecodeEnvelope(cut); !errors.Is(err, ErrMalformed) {
					t.Errorf("cut at %d: %v", n, err)
				}
			})
		})
	}
}

func sampleFrame() Frame {
	s := sampleEnvelopes()
	f := Frame{Shard: 7, Feature: featureActor, Epoch: 2, Term: 9, Seq: 1 << 40}
	seq(0xc0, f.Previous[:])
	for _, typ := range []Type{TypeCaptured, TypeForgotten, TypeNamespaceCreated} {
		e := s[typ]
		f.Events = append(f.Events, e.Encode())
	}
	return f
}

func TestGoldenFrame(t *testing.T) {
	f := sampleFrame()
	b := f.Encode()
	golden(t, "frame", b)
	if len(b) != f.EncodedSize() {
		t.Errorf("EncodedSize says %d, it is %d", f.EncodedSize(), len(b))
	}
	got, err := DecodeFrame(b)
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Fatalf("decoded %+v, %v", got, err)
	}
	joined, err := JoinFrame(f.AppendHeader(nil), got.Events)
	if err != nil || !bytes.Equal(joined, b) {
		t.Fatalf("joined %x, %v", joined, err)
	}
	eachFlip(b, func(at int, flipped []byte) {
		if _, err := DecodeFrame(flipped); !errors.Is(err, ErrMalformed) {
			t.Errorf("flip at %d: %v", at, err) // the checksum sees every single byte
		}
	})
	eachCut(b, func(n int, cut []byte) {
		if _, err := DecodeFrame(cut); !errors.Is(err, ErrMalformed) {
			t.Errorf("cut at %d: %v", n, err)
		}
	})
}

func sampleContent() Content {
	half := 0.5
	return Content{Text: "Deploys happen on Tuesdays.\n部署在星期二。", Role: "user", Tags: []string{"ops", "ops", "deploy"},
		URI: "mem://team-a/ops/deploys", Conversation: "c-1", Subject: "alice", ClientID: "k/0", Source: "/somewhere",
		Origin: memory.OriginHook, Importance: &half, DerivedFrom: []ID{testID(1), testID(2)},
		Metadata: []byte(`{"a":1.50,"b":{"c":null}}`), OccurredSet: true}
}

func TestGoldenContent(t *testing.T) {
	for name, c := range map[string]Content{"content": sampleContent(), "content-text": {Text: "only text"}} {
		b := c.Encode()
		golden(t, name, b)
		got, err := DecodeContent(b)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%s: decoded %+v, %v", name, got, err)
		}
		eachFlip(b, func(at int, flipped []byte) {
			got, err := DecodeContent(flipped)
			checkDecoded(t, at, flipped, err, got.Encode)
		})
	}
}

func TestGoldenSettings(t *testing.T) {
	s := Settings{Set: map[string]string{"search.vector_weight": "0.7", "search.fusion": "rrf", "empty": ""}, Reset: []string{"b", "a"}}
	b := s.Encode()
	golden(t, "settings", b)
	got, err := DecodeSettings(b)
	if want := (Settings{Set: s.Set, Reset: []string{"a", "b"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("decoded %+v, %v", got, err)
	}
	eachFlip(b, func(at int, flipped []byte) {
		got, err := DecodeSettings(flipped)
		checkDecoded(t, at, flipped, err, got.Encode)
	})
}

func TestGoldenVectors(t *testing.T) {
	for name, v := range map[string]Vectors{
		"vectors-float": {Space: "0011223344556677", Chunks: [][]float32{{1, -0.5, 0}, {0, 3e-8, 1e30}}},
		"vectors-small": {Space: "0011223344556677", Small: [][]int8{{127, -128, 0}, {0, 1, -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := v.Encode()
			golden(t, name, b)
			got, err := DecodeVectors(b)
			if err != nil || !reflect.DeepEqual(got, v) || got.Dimensions() != 3 {
				t.Fatalf("decoded %+v, %v", got, err)
			}
			eachFlip(b, func(at int, flipped []byte) {
				got, err := DecodeVectors(flipped)
				checkDecoded(t, at, flipped, err, got.Encode)
			})
		})
	}
}

// TestVectorsOfTheFirstSchema: what was written before there were encodings
// means the same floats.
func TestVectorsOfTheFirstSchema(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.golden")
	if err != nil {
		t.Fatal(err)
	}
	old, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Upcast(TypeVectorsAttached, 1, old)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeVectors(b)
	want := Vectors{Space: "0011223344556677", Chunks: [][]float32{{1, -0.5, 0}, {0, 3e-8, 1e30}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("decoded %+v, %v", got, err)
	}
}

// eachFlip calls visit with every copy of b that differs in one bit, and with
// each byte inverted.
func eachFlip(b []byte, visit func(at int, flipped []byte)) {
	for i := range b {
		for _, mask := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			c := bytes.Clone(b)
			c[i] ^= mask
			visit(i, c)
		}
	}
}

func eachCut(b []byte, visit func(n int, cut []byte)) {
	for n := range b {
		visit(n, b[:n])
	}
}

// checkDecoded holds a decoder to its promise for any bytes: a typed error, or
// a value that encodes to the same bytes.
func checkDecoded(t *testing.T, at int, in []byte, err error, encode func() []byte) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, ErrMalformed) && !IsForeign(err) {
			t.Errorf("byte %d: untyped error %v", at, err)
		}
		return
	}
	if out := encode(); !bytes.Equal(out, in) {
		t.Errorf("byte %d: accepted %x\nwhich is %x", at, in, out)
	}
}
