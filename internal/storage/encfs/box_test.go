package encfs

import (
	"bytes"
	"errors"
	"testing"

	"mneme/internal/storage"
)

func TestBox(t *testing.T) {
	keys := newRing()
	box := NewBox(keys, "raft log")
	var sealed [][]byte
	for range 3 {
		sealed = append(sealed, box.Seal([]byte("head"), []byte("index 7"), []byte("secret words")))
		ok(t, keys.rotate())
	}
	for i, s := range sealed {
		if !bytes.HasPrefix(s, []byte("head")) || bytes.Contains(s, []byte("secret")) || len(s) != 4+BoxOverhead+12 {
			t.Fatalf("sealed: %q", s)
		}
		if plain, err := box.Open([]byte("to:"), []byte("index 7"), s[4:]); err != nil || string(plain) != "to:secret words" {
			t.Fatalf("value %d: %q, %v", i, plain, err)
		}
		if _, err := box.Open(nil, []byte("index 8"), s[4:]); !errors.Is(err, storage.ErrDamaged) {
			t.Error("opened at another index:", err)
		}
		if _, err := NewBox(keys, "other").Open(nil, []byte("index 7"), s[4:]); !errors.Is(err, storage.ErrDamaged) {
			t.Error("opened under another label:", err)
		}
	}
	keys.destroyBefore(4)
	if _, err := box.Open(nil, []byte("index 7"), sealed[0][4:]); !errors.Is(err, storage.ErrMissingKey) {
		t.Error("opened under a destroyed key:", err)
	}
}

// The key that was current last stays in no cache once it is destroyed.
func TestBoxForgetsADestroyedKey(t *testing.T) {
	keys := newRing()
	box := NewBox(keys, "x")
	s := box.Seal(nil, nil, []byte("text"))
	ok(t, keys.rotate())
	keys.destroyBefore(2)
	if _, err := box.Open(nil, nil, s); !errors.Is(err, storage.ErrMissingKey) {
		t.Fatal(err)
	}
}

func TestBoxFindsEveryFlippedBit(t *testing.T) {
	box := NewBox(newRing(), "x")
	good := box.Seal(nil, nil, []byte("text"))
	for bit := range len(good) * 8 {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := box.Open(nil, nil, b); err == nil {
			t.Fatalf("bit %d", bit)
		}
	}
	for n := range good {
		if _, err := box.Open(nil, nil, good[:n]); !errors.Is(err, storage.ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}
