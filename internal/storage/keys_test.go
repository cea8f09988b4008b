package storage

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestGoldenKeyParts(t *testing.T) {
	k := AppendUint64(AppendBytes(AppendUint32(nil, 258), []byte("a\x00b")), 1)
	want := []byte{0, 0, 1, 2, 'a', 0, 0xFF, 'b', 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}
	if !bytes.Equal(k, want) {
		t.Fatalf("%x", k)
	}
	n, rest, err := DecodeUint32(k)
	if n != 258 || err != nil {
		t.Fatal(n, err)
	}
	v, rest, err := DecodeBytes(nil, rest)
	if string(v) != "a\x00b" || err != nil {
		t.Fatal(v, err)
	}
	m, rest, err := DecodeUint64(rest)
	if m != 1 || len(rest) != 0 || err != nil {
		t.Fatal(m, rest, err)
	}
	for _, bad := range [][]byte{nil, {1}, {'a', 0}, {0, 2}} {
		if _, _, err := DecodeBytes(nil, bad); !errors.Is(err, ErrKey) {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if _, _, err := DecodeUint32(nil); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
	if _, _, err := DecodeUint64(make([]byte, 7)); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
}

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

func FuzzKeyOrder(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00"), uint32(1), uint32(2), uint64(3), uint64(4))
	f.Add([]byte{0, 0xFF}, []byte{0, 1}, uint32(9), uint32(9), uint64(1<<63), uint64(0))
	f.Add([]byte{}, []byte{0}, uint32(0), uint32(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, a, b []byte, x, y uint32, u, v uint64) {
		key := func(a []byte, x uint32, u uint64) []byte {
			return AppendUint64(AppendBytes(AppendUint32(nil, x), a), u)
		}
		want := cmp.Or(cmp.Compare(x, y), bytes.Compare(a, b), cmp.Compare(u, v))
		if got := bytes.Compare(key(a, x, u), key(b, y, v)); got != want {
			t.Fatalf("(%d %x %d) to (%d %x %d): %d, want %d", x, a, u, y, b, v, got, want)
		}
		got, rest, err := DecodeBytes(nil, AppendBytes(nil, a))
		if err != nil || len(rest) != 0 || !bytes.Equal(got, a) {
			t.Fatal(got, rest, err)
		}
	})
}

func FuzzDecodeBytes(f *testing.F) {
	f.Add([]byte{'a', 0, 0xFF, 0, 1, 'z'})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := DecodeBytes(nil, b)
		if err != nil {
			if !errors.Is(err, ErrKey) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(append(AppendBytes(nil, v), rest...), b) {
			t.Fatalf("%x is not the only form of %x", b, v)
		}
	})
}
