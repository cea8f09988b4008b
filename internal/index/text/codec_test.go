package text

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var goldenKey = TermKey{0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}

func TestGoldenKeys(t *testing.T) {
	golden := map[string][]byte{
		"4000000007a0010203040506070809 0a0b0100000003": appendPostingKey(nil, 7, goldenKey, FieldTags, 3),
		"4100000007":           appendPartition(nil, PrefixStatistics, 7),
		"420000000700030005":   appendForwardKey(nil, 7, 3<<16|5),
		"42000000070003000501": appendRemovedKey(nil, 7, 3<<16|5),
		"4000000007":           Spans(7)[0][0],
		"4000000008":           Spans(7)[0][1],
		"41ffffffff":           Spans(1<<32 - 1)[1][0],
		"42":                   Spans(1<<32 - 1)[1][1],
	}
	for want, got := range golden {
		if w := unhex(t, string(bytes.ReplaceAll([]byte(want), []byte(" "), nil))); !bytes.Equal(got, w) {
			t.Errorf("got %x, want %x", got, w)
		}
	}
	pk, err := ParsePostingKey(appendPostingKey(nil, 7, goldenKey, FieldTags, 3))
	if want := (PostingKey{Partition: 7, Key: goldenKey, Field: FieldTags, Block: 3}); err != nil || pk != want {
		t.Error(pk, err)
	}
	p, id, mark, err := ParseForwardKey(appendRemovedKey(nil, 7, 9))
	if p != 7 || id != 9 || !mark || err != nil {
		t.Error(p, id, mark, err)
	}
}

func TestGoldenPostings(t *testing.T) {
	first := []posting{makePosting(0, 1, 5), makePosting(3, 7, 300), makePosting(4, 2, 0)}
	second := []posting{makePosting(200, 1, 127), makePosting(blockSize-1, MaxTF, MaxLength)}
	v := appendRemoved(appendRun(appendRun(nil, first), second), 300)
	want := unhex(t, "01"+"03"+"0005"+"0505ac02"+"010000"+
		"01"+"02"+"90037f"+"edfc07"+"fdff3f"+"ffffff7f"+
		"03"+"ac02")
	if !bytes.Equal(v, want) {
		t.Fatalf("got %x, want %x", v, want)
	}
	ps, removed, err := readRow(nil, v[:len(v)-3])
	if err != nil || removed != 0 || !slices.Equal(ps, append(first, second...)) {
		t.Fatal(ps, removed, err)
	}
	if _, _, err := readRow(nil, v); !errors.Is(err, ErrCorrupt) {
		t.Fatal("more removed than there are:", err)
	}
	// Every cut is damage, except those between the parts.
	whole := len(appendRun(nil, first))
	for n := range v {
		if _, _, err := readRow(nil, v[:n]); (err == nil) != (n == whole || n == len(v)-3) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestGoldenChunk(t *testing.T) {
	ps := []posting{makePosting(0x0102, 1, 5), makePosting(0x0105, 7, 300), makePosting(0x0109, 2, 4), makePosting(0x010A, 1, 9)}
	v := appendChunk(nil, ps)
	want := unhex(t, "02"+"03"+"41"+"02"+
		"07ac02"+"0204"+ // the pair (2, 4) covers (1, 5) and (1, 9)
		"02010501"+"09010a01"+
		"00060100"+
		"01000000"+"28010000"+"00000000"+"05000000")
	if !bytes.Equal(v, want) {
		t.Fatalf("got %x, want %x", v, want)
	}
	got, _, err := readRow(nil, v)
	if err != nil || !slices.Equal(got, ps) {
		t.Fatal(got, err)
	}
	for n := range v {
		if _, _, err := readRow(nil, v[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestGoldenForward(t *testing.T) {
	d := Doc{ID: 3, Lengths: [NumFields]uint32{200, 1, 0}, Terms: []Term{
		{Key: goldenKey, Field: FieldTags, TF: 1}, {Key: TermKey{1}, TF: 130},
	}}
	v, err := EncodeForward(nil, d)
	want := unhex(t, "02"+"03"+"c801"+"01"+"00"+"02"+
		"010000000000000000000000"+"a00102030405060708090a0b"+
		"8404"+"01")
	if err != nil || !bytes.Equal(v, want) {
		t.Fatalf("got %x, %v, want %x", v, err, want)
	}
	slices.Reverse(d.Terms) // now in order
	got, err := DecodeForward(3, v)
	if err != nil || !reflect.DeepEqual(got, d) {
		t.Fatal(got, err)
	}
	for n := range v {
		if _, err := DecodeForward(3, v[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	old := unhex(t, "02"+"01"+"05"+"00") // of a program with one field
	if got, err := DecodeForward(1, old); err != nil || got.Lengths != [NumFields]uint32{5} {
		t.Fatal(got, err)
	}
}

func TestGoldenStats(t *testing.T) {
	s := Stats{Docs: 2, Length: [NumFields]uint64{300, 1, 0}}
	v := appendStats(nil, s, tailSize)
	want := unhex(t, "02"+"0000000000000002"+"0000000000000040"+"000000000000012c"+"0000000000000001"+"0000000000000000")
	if !bytes.Equal(v, want) {
		t.Fatalf("got %x", v)
	}
	short := unhex(t, "02"+"0000000000000001") // of a program without fields
	if got, tail, err := decodeStats(short); err != nil || got != (Stats{Docs: 1}) || tail != 0 {
		t.Fatal(got, tail, err)
	}
	if got, tail, err := decodeStats(v); err != nil || got != s || tail != tailSize {
		t.Fatal(got, tail, err)
	}
	negative := Stats{}
	negative.dropDoc([NumFields]uint32{1})
	for _, bad := range [][]byte{nil, {2}, v[:8], appendStats(nil, negative, 0), appendStats(nil, s, 1), append(bytes.Clone(v), 0, 0, 0, 0, 0, 0, 0, 1)} {
		if _, _, err := decodeStats(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func TestNames(t *testing.T) {
	if goldenKey.String() != "a00102030405060708090a0b" {
		t.Error(goldenKey)
	}
	for f, want := range map[Field]string{FieldText: "text", FieldTags: "tags", FieldURI: "uri", 9: "field(9)"} {
		if f.String() != want {
			t.Error(f)
		}
	}
}

func TestBits(t *testing.T) {
	var b Bits
	b.Remove(1000)
	for _, id := range []uint32{0, 63, 64, 200} {
		b.Add(id)
	}
	b.Remove(64)
	for id := range uint32(400) {
		if got, want := b.Contains(id), id == 0 || id == 63 || id == 200; got != want {
			t.Errorf("%d: %v", id, got)
		}
	}
	w := []uint64{7, 7, 7}
	if b.Words(192, w); w[0] != 1<<8 || w[1] != 0 || w[2] != 0 {
		t.Error(w)
	}
	if b.Words(1<<20, w); w[0] != 0 {
		t.Error(w)
	}
}

func FuzzForward(f *testing.F) {
	f.Add([]byte{2, 3, 1, 2, 3, 0})
	f.Add(unhex(f, "0203c801010002"+"010000000000000000000000"+"a00102030405060708090a0b"+"840401"))
	f.Add([]byte{2, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F})
	f.Fuzz(func(t *testing.T, v []byte) {
		d, err := DecodeForward(1, v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if f, err := splitForward(v); err == nil { // a search looks only
				f.find(&goldenKey, FieldText)
			}
			return
		}
		f, _ := splitForward(v)
		for _, term := range d.Terms {
			if tf := f.find(&term.Key, term.Field); tf != term.TF {
				t.Fatalf("%v: found %d times", term, tf)
			}
		}
		w, err := EncodeForward(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeForward(1, w); err != nil || !reflect.DeepEqual(again, d) {
			t.Fatal(again, err)
		}
	})
}

func FuzzStats(f *testing.F) {
	f.Add(appendStats(nil, Stats{Docs: 2}, tailSize))
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, v []byte) {
		s, tail, err := decodeStats(v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, at, err := decodeStats(appendStats(nil, s, tail)); err != nil || again != s || at != tail {
			t.Fatal(again, at, err)
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add(appendPostingKey(nil, 7, goldenKey, FieldTags, 3))
	f.Add(appendRemovedKey(nil, 7, 9))
	f.Fuzz(func(t *testing.T, k []byte) {
		if p, err := ParsePostingKey(k); err == nil && !bytes.Equal(appendPostingKey(nil, p.Partition, p.Key, p.Field, p.Block), k) {
			t.Fatal(p)
		}
		if p, id, mark, err := ParseForwardKey(k); err == nil {
			again := appendForwardKey(nil, p, id)
			if mark {
				again = appendRemovedKey(nil, p, id)
			}
			if !bytes.Equal(again, k) {
				t.Fatal(p, id, mark)
			}
		}
	})
}
