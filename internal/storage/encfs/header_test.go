package encfs

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

func TestHeaderLayout(t *testing.T) {
	keys := newRing()
	for range 6 {
		ok(t, keys.rotate())
	}
	s := sealSlot([32]byte{1, 2, 3}, 0x0102, keys)
	b := s.header()
	want := append([]byte("MNEF\x01\x00\x00\x00"), 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2)
	if len(b) != 8192 || !bytes.Equal(b[:20], want) || !bytes.Equal(b[4096:4116], want) {
		t.Fatalf("header begins with %x", b[:20])
	}
	if !bytes.Equal(b[slotEnd:slotSize], make([]byte, slotSize-slotEnd)) {
		t.Error("bytes behind the slot")
	}
	got, err := openHeader(b, keys)
	if err != nil || got.secret != [32]byte{1, 2, 3} || !got.same() {
		t.Fatal(got, err)
	}
}

// A slot that is torn at any byte, or whose block is lost, leaves the other one.
func TestTornSlotLeavesTheOther(t *testing.T) {
	keys := newRing()
	old := sealSlot([32]byte{1}, 4, keys)
	ok(t, keys.rotate())
	next := sealSlot([32]byte{1}, 5, keys)
	for at := range 2 {
		for cut := range slotEnd + 1 {
			b := old.header()
			copy(b[at*slotSize:], next.raw[:cut])
			s, err := openHeader(b, keys)
			if err != nil || s.secret != [32]byte{1} {
				t.Fatalf("slot %d torn at %d: %v", at, cut, err)
			}
			if whole := s.at[s.best].generation == 5; whole != (cut == slotEnd) {
				t.Fatalf("slot %d torn at %d: generation %d counts", at, cut, s.at[s.best].generation)
			}
		}
		b := next.header()
		clear(b[at*slotSize : (at+1)*slotSize])
		if _, err := openHeader(b, keys); err != nil {
			t.Errorf("block %d is lost: %v", at, err)
		}
	}
}

// No flipped bit of one slot changes the key or hides it, and one in both is damage.
func TestFlippedBitsOfAHeader(t *testing.T) {
	keys := newRing()
	good := sealSlot([32]byte{9}, 1, keys).header()
	for bit := range slotEnd * 8 {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if s, err := openHeader(b, keys); err != nil || s.secret != [32]byte{9} {
			t.Fatalf("bit %d of one slot: %v", bit, err)
		}
		b[slotSize+bit/8] ^= 1 << (bit % 8)
		_, err := openHeader(b, keys)
		version := bit/8 == 4
		if !errors.Is(err, storage.ErrDamaged) && !(version && errors.Is(err, storage.ErrNewerFormat)) {
			t.Fatalf("bit %d of both slots: %v", bit, err)
		}
	}
}

func TestMissingKeySaysWhatToDo(t *testing.T) {
	base, keys := vfs.NewMem(), newRing()
	put(t, New(base, keys), "a.sst", "text")
	_, err := New(base, newRingAt(5)).Open("a.sst")
	var missing *MissingKeyError
	if !errors.As(err, &missing) || missing.KeyID != 1 || missing.Name != "a.sst" || !errors.Is(err, storage.ErrMissingKey) || errors.Is(err, storage.ErrDamaged) {
		t.Fatal(err)
	}
	for _, want := range []string{"a.sst", "storage key 1", "keys/storage.keys", "shards/"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

// newRingAt has one key only, with this id.
func newRingAt(id uint32) *ring {
	r := newRing()
	for r.last < id {
		_ = r.rotate()
	}
	r.destroyBefore(id)
	return r
}

// Another key under the same id, as in the keyring of another node, opens nothing.
func TestKeyOfAnotherNode(t *testing.T) {
	base := vfs.NewMem()
	put(t, New(base, newRing()), "a.sst", "text")
	if _, err := New(base, newRing()).Open("a.sst"); !errors.Is(err, storage.ErrDamaged) {
		t.Fatal(err)
	}
}

func FuzzHeader(f *testing.F) {
	keys := newRing()
	good := sealSlot([32]byte{1}, 1, keys).header()
	f.Add(good, uint16(0), byte(0))
	f.Add(good[:slotSize], uint16(8), byte(1))
	f.Add([]byte(slotMagic), uint16(4), byte(255))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, x byte) {
		if len(b) > 0 {
			b = bytes.Clone(b)
			b[int(at)%len(b)] ^= x
		}
		s, err := openHeader(b, keys)
		switch {
		case err == nil && s.secret != [32]byte{1}:
			t.Fatal("a header that nobody sealed was opened")
		case err != nil && !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrMissingKey) && !errors.Is(err, storage.ErrNewerFormat):
			t.Fatal("untyped:", err)
		}
	})
}
