package keyring

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"testing"
)

func fixedKey(fill byte) *DataKey {
	raw := new(secret)
	for i := range raw {
		raw[i] = fill + byte(i)
	}
	return &DataKey{id: KeyID{fill}, macs: new(macPool), raw: raw}
}

var testIdentity = Identity{Event: [16]byte{0x01, 0x02, 0x0F: 0x10}, Part: 3, Pipeline: 7}

// These bytes are in logs. They never change.
const (
	goldenSealed = "5ad5235bfa3f068673843696a063026c836782ba29dec8867a79614f0759e7440a31f80a8e38d59ef83b"
	goldenMAC    = "99bc2956f785b09059203573932d7c6b9f5f652f1a72bc5753c0e645b444cb55"
	goldenName   = "a73b3bbbc41ebe28fccfcbe2d5738d763273c0d40fafde6878f6771a6f5264bd"
	goldenPair   = "d0f17decc7bba34ce2b2cfab6754ef1e0611f29321ad7553b09812b0a40e5b22"
)

func goldenCheck(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if hex.EncodeToString(got) != want {
		t.Errorf("golden %s: %x, want %s", what, got, want)
	}
}

func TestGoldenBytes(t *testing.T) {
	d := fixedKey(0x20)
	goldenCheck(t, "SEALED", d.Seal(nil, testIdentity, []byte("header"), []byte("Ada likes tea.")), goldenSealed)
	mac := d.MAC("body", []byte("Ada likes tea."))
	goldenCheck(t, "MAC", mac[:], goldenMAC)
	n := newNamespaceKeys(nsA, fixedKey(0x40).raw, new(macPool))
	name := n.MAC("tag", []byte("tea"))
	goldenCheck(t, "NAME", name[:], goldenName)
	goldenCheck(t, "PAIR", combineRaw([]*DataKey{fixedKey(1), fixedKey(2)})[:], goldenPair)
}

// The nonce as the formula in Seal's comment says it, with the standard library's HMAC.
func TestSealNonceFollowsFormula(t *testing.T) {
	d := fixedKey(9)
	id := appendIdentity(nil, testIdentity)
	h := hmac.New(sha256.New, d.raw.derive("nonce")[:])
	for _, part := range [][]byte{id[:20], id[20:], []byte("aad"), []byte("text")} {
		h.Write(be64(len(part)))
		h.Write(part)
	}
	if got := d.Seal(nil, testIdentity, []byte("aad"), []byte("text"))[:nonceSize]; !bytes.Equal(got, h.Sum(nil)[:nonceSize]) {
		t.Fatalf("nonce %x, formula gives %x", got, h.Sum(nil)[:nonceSize])
	}
}

func TestMacerEqualsStandardLibrary(t *testing.T) {
	rng := rand.New(seeded(1))
	pool := new(macPool)
	for range 500 {
		key := new(secret)
		for i := range key {
			key[i] = byte(rng.Uint32())
		}
		data := make([]byte, rng.IntN(300))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		label := string(data[:len(data)/3])
		h := hmac.New(sha256.New, key[:])
		h.Write(be64(len(label)))
		h.Write([]byte(label))
		h.Write(data)
		if got := pool.labelled(key, label, data); !bytes.Equal(got[:], h.Sum(nil)) {
			t.Fatalf("HMAC differs for %d bytes", len(data))
		}
	}
}

func TestSealRoundTripAppendsAndRepeats(t *testing.T) {
	d := fixedKey(5)
	for _, size := range []int{0, 1, 100, 70_000} {
		plain := bytes.Repeat([]byte{0xAB}, size)
		sealed := d.Seal([]byte("before"), testIdentity, nil, plain)
		if !bytes.HasPrefix(sealed, []byte("before")) || len(sealed) != 6+size+Overhead {
			t.Fatalf("size %d: sealed has %d bytes", size, len(sealed))
		}
		if again := d.Seal(nil, testIdentity, nil, plain); !bytes.Equal(again, sealed[6:]) {
			t.Fatalf("size %d: equal input, other bytes", size)
		}
		got, err := d.Open([]byte("x"), testIdentity, nil, sealed[6:])
		if err != nil || !bytes.Equal(got[1:], plain) || got[0] != 'x' {
			t.Fatalf("size %d: open: %v", size, err)
		}
	}
}

func TestEveryDifferenceChangesNonceAndBreaksOpen(t *testing.T) {
	d := fixedKey(5)
	aad, plain := []byte("aad"), []byte("plain")
	sealed := d.Seal(nil, testIdentity, aad, plain)
	nonces := map[string]string{string(sealed[:nonceSize]): "original"}
	type variant struct {
		name string
		key  *DataKey
		id   Identity
		aad  string
	}
	event, part, pipeline := testIdentity, testIdentity, testIdentity
	event.Event[15]++
	part.Part++
	pipeline.Pipeline++
	for _, v := range []variant{
		{"event", d, event, "aad"}, {"part", d, part, "aad"}, {"pipeline", d, pipeline, "aad"},
		{"aad", d, testIdentity, "aae"}, {"no aad", d, testIdentity, ""}, {"key", fixedKey(6), testIdentity, "aad"},
	} {
		_, err := v.key.Open(nil, v.id, []byte(v.aad), sealed)
		wantErr(t, err, ErrSealBroken)
		n := string(v.key.Seal(nil, v.id, []byte(v.aad), plain)[:nonceSize])
		if was, ok := nonces[n]; ok {
			t.Errorf("%s has the nonce of %s", v.name, was)
		}
		nonces[n] = v.name
	}
	// Bytes moved from one part to the next are another input.
	if n := d.Seal(nil, testIdentity, []byte("aadp"), []byte("lain")); bytes.Equal(n[:nonceSize], sealed[:nonceSize]) {
		t.Error("lengths do not count")
	}
	for i := range sealed {
		sealed[i] ^= 1
		if _, err := d.Open(nil, testIdentity, aad, sealed); !errors.Is(err, ErrSealBroken) {
			t.Fatalf("flip at %d: %v", i, err)
		}
		sealed[i] ^= 1
	}
	for n := range len(sealed) {
		if _, err := d.Open(nil, testIdentity, aad, sealed[:n]); !errors.Is(err, ErrSealBroken) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestLabelsKeepMACsApart(t *testing.T) {
	d := fixedKey(1)
	n := newNamespaceKeys(nsA, fixedKey(1).raw, new(macPool))
	if d.MAC("a", []byte("bc")) == d.MAC("ab", []byte("c")) || n.MAC("a", []byte("bc")) == n.MAC("ab", []byte("c")) {
		t.Fatal("label and data run together")
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	d := fixedKey(1)
	n := newNamespaceKeys(nsA, fixedKey(1).raw, new(macPool))
	buf := make([]byte, 0, 1024)
	plain, aad := make([]byte, 500), make([]byte, 50)
	for name, f := range map[string]func(){
		"Seal": func() { d.Seal(buf, testIdentity, aad, plain) },
		"MAC":  func() { d.MAC("body", plain) },
		"name": func() { n.MAC("tag", aad) },
	} {
		f()
		// A collection may empty the pool meanwhile.
		if got := testing.AllocsPerRun(200, f); got > 0.5 && !raceEnabled {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}

func BenchmarkSeal1KiB(b *testing.B) {
	d, buf, plain := fixedKey(1), make([]byte, 0, 2048), make([]byte, 1024)
	b.ReportAllocs()
	for b.Loop() {
		d.Seal(buf, testIdentity, plain[:64], plain)
	}
}
