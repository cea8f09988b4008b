package storage

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "\xFF": "", "a": "b", "a\xFF\xFF": "b", "\x00": "\x01"} {
		got := PrefixEnd([]byte(prefix))
		if string(got) != want || (want == "") != (got == nil) {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func() []byte {
		b := make([]byte, rng.IntN(4))
		for i := range b {
			b[i] = []byte{0, 1, 0xFE, 0xFF}[rng.IntN(4)]
		}
		return b
	}
	for range 20_000 {
		p, k := draw(), draw()
		end := PrefixEnd(p)
		inside := bytes.Compare(k, p) >= 0 && (end == nil || bytes.Compare(k, end) < 0)
		if inside != bytes.HasPrefix(k, p) {
			t.Fatalf("seed %d: prefix %x, key %x, end %x", seed, p, k, end)
		}
	}
}
