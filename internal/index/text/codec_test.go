package text

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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

func TestGoldenKeys(t *testing.T) {
	golden := map[string][]byte{
		"4000000007 01 746561 00 0003": appendPostingKey(nil, 7, FieldTags, "tea", 3),
		"4000000007 01 746561 00":      appendTermPrefix(nil, 7, FieldTags, "tea"),
		"4100000007":                   appendPartition(nil, PrefixStatistics, 7),
		"420000000700030005":           appendForwardKey(nil, 7, 3<<16|5),
		"42000000070003000501":         appendRemovedKey(nil, 7, 3<<16|5),
		"4300000007 02 746561":         appendDictionaryKey(nil, 7, FieldURI, "tea"),
		"4400000007 00010203":          appendNamesKey(nil, 7, 0x010203),
		"4000000007":                   Spans(7)[0][0],
		"4000000008":                   Spans(7)[0][1],
		"41ffffffff":                   Spans(1<<32 - 1)[1][0],
		"42":                           Spans(1<<32 - 1)[1][1],
		"4400000008":                   Spans(7)[4][1],
	}
	for want, got := range golden {
		if w := unhex(t, string(bytes.ReplaceAll([]byte(want), []byte(" "), nil))); !bytes.Equal(got, w) {
			t.Errorf("got %x, want %x", got, w)
		}
	}
	pk, err := parsePostingKey(appendPostingKey(nil, 7, FieldTags, "tea", 3))
	if want := (postingKey{Partition: 7, Field: FieldTags, Term: "tea", Block: 3}); err != nil || pk != want {
		t.Error(pk, err)
	}
	p, id, mark, err := ParseForwardKey(appendRemovedKey(nil, 7, 9))
	if p != 7 || id != 9 || !mark || err != nil {
		t.Error(p, id, mark, err)
	}
}

// Keys sort by partition, field and term, whatever follows in them: a range of keys
// is a range of the vocabulary.
func TestKeysSortLikeTerms(t *testing.T) {
	terms := []string{"\x01", "a", "a\x01", "ab", "ab1", "abc", "b", "z", "é", "部署"}
	var last []byte
	for _, partition := range []uint32{0, 1, 256} {
		for f := range Field(NumFields) {
			for _, term := range terms {
				for _, block := range []uint32{0, 1, 1<<16 - 1} {
					k := appendPostingKey(nil, partition, f, term, block)
					if bytes.Compare(last, k) >= 0 {
						t.Fatalf("%x is not after %x", k, last)
					}
					last = k
				}
			}
		}
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

func TestGoldenDoc(t *testing.T) {
	d := Doc{ID: 3, Lengths: [NumFields]uint32{200, 1, 0, 7}, Terms: []Term{
		{Text: "ops", Field: FieldTags, TF: 1}, {Text: "tea", TF: 130}, {Text: "team", TF: 1},
	}}
	v, err := EncodeDoc(nil, d)
	want := unhex(t, "04"+"c801"+"01"+"00"+"07"+"02010000"+"03746561"+"8201"+"047465616d"+"01"+"036f7073"+"01")
	if err != nil || !bytes.Equal(v, want) {
		t.Fatalf("got %x, %v, want %x", v, err, want)
	}
	d.Terms = []Term{d.Terms[1], d.Terms[2], d.Terms[0]} // now in order
	got, err := DecodeDoc(3, v)
	if err != nil || !reflect.DeepEqual(got, d) {
		t.Fatal(got, err)
	}
	for n := range v {
		if _, err := DecodeDoc(3, v[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestGoldenTailRow(t *testing.T) {
	doc := unhex(t, "04"+"c801"+"01"+"00"+"07"+"02010000"+"03746561"+"8201"+"047465616d"+"01"+"036f7073"+"01")
	v, err := appendTailRow(nil, doc)
	want := append(unhex(t, "05"+"03"+"7a2e98"), doc...)
	if err != nil || !bytes.Equal(v, want) {
		t.Fatalf("got %x, %v, want %x", v, err, want)
	}
	d := Doc{}
	for i := range 34 {
		d.Terms = append(d.Terms, Term{Text: fmt.Sprintf("%02d", i), TF: 1})
	}
	if v, err = appendTailRow(nil, mustEncode(t, d)); err != nil || !bytes.Equal(v[2+34:][:8], unhex(t, "40000000"+"80000000")) {
		t.Fatalf("offsets %x, %v", v[2+34:][:8], err)
	}
}

func TestGoldenInverted(t *testing.T) {
	lengths := [NumFields]uint32{200, 1, 0, 7}
	terms := []numbered{{0, 1}, {1, 130}, {500, 1}, {maxTermID, 2}}
	v := appendInverted(nil, lengths, terms)
	want := unhex(t, "06"+"c801"+"01"+"00"+"07"+"00"+"018001"+"e407"+"95f8ffff0f"+"00")
	if !bytes.Equal(v, want) {
		t.Fatalf("got %x, want %x", v, want)
	}
	l, got, err := readInverted(nil, v)
	if err != nil || l != lengths || !slices.Equal(got, terms) {
		t.Fatal(l, got, err)
	}
	if _, _, err := readInverted(nil, append(v, 0)); !errors.Is(err, ErrCorrupt) {
		t.Fatal("an id past the greatest:", err)
	}
}

func TestGoldenNames(t *testing.T) {
	names := []name{{FieldText, "tea"}, {FieldText, "team"}, {FieldText, ""}, {FieldTags, "teas"}, {FieldURI, "tea"}, {FieldWho, "tea"}}
	v := appendNames(nil, names)
	want := unhex(t, "0003746561"+"0c016d"+"0000"+"010474656173"+"0e00"+"0f00")
	if !bytes.Equal(v, want) {
		t.Fatalf("got %x, want %x", v, want)
	}
	got, err := readNames(nil, v)
	if err != nil || !slices.Equal(got, names) {
		t.Fatal(got, err)
	}
	if _, err := readNames(nil, nil); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if _, err := readNames(nil, appendNames(nil, make([]name, maxNames+1))); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
}

func TestGoldenStats(t *testing.T) {
	s := Stats{Docs: 2, Length: [NumFields]uint64{300, 1, 0, 7}}
	v := appendStats(nil, s, counters{5, 9, 77})
	want := unhex(t, "04"+"0000000000000002"+"0000000000000005"+"0000000000000009"+"000000000000004d"+"000000000000012c"+"0000000000000001"+"0000000000000000"+"0000000000000007")
	if !bytes.Equal(v, want) {
		t.Fatalf("got %x", v)
	}
	short := unhex(t, "04"+"0000000000000001") // of a program without fields
	if got, c, err := decodeStats(short); err != nil || got != (Stats{Docs: 1}) || c != (counters{}) {
		t.Fatal(got, c, err)
	}
	if got, c, err := decodeStats(v); err != nil || got != s || c != (counters{5, 9, 77}) {
		t.Fatal(got, c, err)
	}
	negative := Stats{}
	negative.dropDoc([NumFields]uint32{1})
	for _, bad := range [][]byte{nil, {statsVersion}, v[:8], append([]byte{statsVersion - 1}, v[1:]...), appendStats(nil, negative, counters{}), appendStats(nil, s, counters{size: 1 << 63}), appendStats(nil, s, counters{nextID: maxTermID + 2}), append(bytes.Clone(v), 0, 0, 0, 0, 0, 0, 0, 1)} {
		if _, _, err := decodeStats(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func TestNames(t *testing.T) {
	for f, want := range map[Field]string{FieldText: "text", FieldTags: "tags", FieldURI: "uri", FieldWho: "who", 9: "field(9)"} {
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

func FuzzDoc(f *testing.F) {
	f.Add(unhex(f, "03c801010002010003746561820104746561"+"6d01036f707301"))
	f.Add(unhex(f, "03000000ffffffff0f0000"))
	f.Add([]byte{3, 1, 2, 3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, v []byte) {
		d, err := DecodeDoc(1, v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			if _, err := appendTailRow(nil, v); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		row, err := appendTailRow(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := openTailRow(row)
		if err != nil {
			t.Fatal(err)
		}
		for _, term := range append(slices.Clone(d.Terms), Term{Text: "tea"}, Term{Text: "tea", Field: FieldTags}) {
			at := slices.IndexFunc(d.Terms, func(t Term) bool { return t.Field == term.Field && t.Text == term.Text })
			tf, err := f.find(term.Field, term.Text, fingerprint(term.Text))
			if err != nil || (at < 0) != (tf == 0) || at >= 0 && tf != d.Terms[at].TF {
				t.Fatalf("%s %q: found %d times in %v, %v", term.Field, term.Text, tf, d, err)
			}
		}
		w, err := EncodeDoc(nil, d)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeDoc(1, w); err != nil || !reflect.DeepEqual(again, d) {
			t.Fatal(again, err)
		}
	})
}

// FuzzTailRow: of a damaged row a search may find anything, but it does not panic.
func FuzzTailRow(f *testing.F) {
	for _, terms := range []int{0, 1, 2, 16, 17, 40} {
		d := Doc{}
		for i := range terms {
			d.Terms = append(d.Terms, Term{Field: Field(i % NumFields), Text: termText(i), TF: uint32(1 + 100*i)})
		}
		row, err := appendTailRow(nil, mustEncode(f, d))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		s := &scratch{}
		for field := range Field(NumFields) {
			for _, text := range []string{termText(0), termText(1), termText(5), "tea"} {
				s.slots = append(s.slots, slot{field: field, text: text, print: fingerprint(text)})
			}
		}
		err := s.findInRow(1, v, false)
		_, errLengths := lengthsOf(v)
		for _, err := range []error{err, errLengths} {
			if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

func FuzzInverted(f *testing.F) {
	f.Add(unhex(f, "04c801010000018001e40795f8ffff0f00"))
	f.Add([]byte{4, 1, 2, 3})
	f.Fuzz(func(t *testing.T, v []byte) {
		lengths, terms, err := readInverted(nil, v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if l, err := lengthsOf(v); err != nil || l != lengths {
			t.Fatal(l, err)
		}
		for i := 1; i < len(terms); i++ {
			if terms[i].id <= terms[i-1].id {
				t.Fatal("ids do not ascend:", terms)
			}
		}
		l, again, err := readInverted(nil, appendInverted(nil, lengths, terms))
		if err != nil || l != lengths || !slices.Equal(again, terms) {
			t.Fatal(l, again, err)
		}
	})
}

func FuzzNames(f *testing.F) {
	f.Add(unhex(f, "00037465610c016d0000010474656173"+"0e00"))
	f.Add([]byte{0, 0})
	f.Add([]byte{0xFC, 1})
	f.Fuzz(func(t *testing.T, v []byte) {
		names, err := readNames(nil, v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, err := readNames(nil, appendNames(nil, names)); err != nil || !slices.Equal(again, names) {
			t.Fatal(again, err)
		}
	})
}

func FuzzStats(f *testing.F) {
	f.Add(appendStats(nil, Stats{Docs: 2}, counters{tailSize, 9, 1}))
	f.Add([]byte{statsVersion})
	f.Fuzz(func(t *testing.T, v []byte) {
		s, c, err := decodeStats(v)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, d, err := decodeStats(appendStats(nil, s, c)); err != nil || again != s || d != c {
			t.Fatal(again, d, err)
		}
	})
}

// postingKey is a postings key taken apart.
type postingKey struct {
	Partition uint32
	Field     Field
	Term      string
	Block     uint32
}

// parsePostingKey takes a postings key apart. Error: ErrCorrupt.
func parsePostingKey(k []byte) (postingKey, error) {
	term := len(k) - 3 // where it ends
	if term <= partitionLen || k[0] != PrefixPostings || k[term] != 0 || k[partitionLen] >= NumFields {
		return postingKey{}, fmt.Errorf("%w: postings key %x", ErrCorrupt, k)
	}
	p := postingKey{
		Partition: binary.BigEndian.Uint32(k[1:]),
		Field:     Field(k[partitionLen]),
		Term:      string(k[partitionLen+1 : term]),
		Block:     uint32(binary.BigEndian.Uint16(k[term+1:])),
	}
	if !ValidTerm(p.Term) {
		return postingKey{}, fmt.Errorf("%w: postings key %x: term", ErrCorrupt, k)
	}
	return p, nil
}

func FuzzKeys(f *testing.F) {
	f.Add(appendPostingKey(nil, 7, FieldTags, "tea", 3))
	f.Add(appendDictionaryKey(nil, 7, FieldTags, "tea"))
	f.Add(appendRemovedKey(nil, 7, 9))
	f.Fuzz(func(t *testing.T, k []byte) {
		if p, err := parsePostingKey(k); err == nil && !bytes.Equal(appendPostingKey(nil, p.Partition, p.Field, p.Term, p.Block), k) {
			t.Fatal(p)
		}
		if p, f, term, err := parseDictionaryKey(k); err == nil && !bytes.Equal(appendDictionaryKey(nil, p, f, string(term)), k) {
			t.Fatal(p, f, term)
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
