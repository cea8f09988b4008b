package text

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestAFieldOfFewTermsCostsFewSeeks: each word of a query was looked up in each field by
// a seek of its own, also in fields that have hardly a term.
func TestAFieldOfFewTermsCostsFewSeeks(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w, docs := NewWriter(db), []Doc{}
	for id := range uint32(1000) {
		d := Doc{ID: id, Terms: []Term{{Field: FieldText, Text: fmt.Sprintf("word%02d", id%20), TF: 1}, {Field: FieldWho, Text: "ann", TF: 1}}}
		d.Lengths[FieldText], d.Lengths[FieldWho] = 1, 1
		docs = append(docs, d)
	}
	b := db.NewBatch()
	if err := w.Add(b, 1, docs); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, db, b)
	const words = 12
	q := Query{K: 1, FieldWeights: [NumFields]float64{1, 1, 1, 1}}
	for i := range words {
		q.Terms = append(q.Terms, QueryTerm{Text: fmt.Sprintf("word%02d", i), Weight: 1})
	}
	q.Terms = append(q.Terms, QueryTerm{Text: "ann", Weight: 1})
	sc := scratch{slots: q.slots(nil)}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixPostings}, UpperBound: []byte{PrefixForward + 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	sc.seekOrder()
	sc.unread = sc.order
	if err := sc.loadPartition(context.Background(), it, 0, 1); err != nil {
		t.Fatal(err)
	}
	for i := range sc.slots {
		sl := &sc.slots[i]
		if want := sl.field == FieldText && sl.text != "ann" || sl.field == FieldWho && sl.text == "ann"; want != (sl.own > 0) {
			t.Errorf("%q in %s has %d documents", sl.text, sl.field, sl.own)
		}
	}
	// The counters, the words one after the other, the tail; nothing for the other fields.
	if n, most := it.Stats().ForwardSeekCount[pebble.InterfaceCall], words+6; n > most {
		t.Errorf("%d seeks for %d slots, want at most %d", n, len(sc.slots), most)
	}
}

// TestAskedAreInTheOrderOfGroups holds the numbers that documents are sorted by to the
// order in which groups are walked.
func TestAskedAreInTheOrderOfGroups(t *testing.T) {
	docs := []uint32{0, 1, blockSize - 1, blockSize, 5*blockSize + 7, 1<<32 - 1}
	for _, a := range docs {
		for _, b := range docs {
			for i := range 16 {
				g, h := groupOf(i&1, a, i&4 != 0), groupOf(i>>1&1<<20, b, i&8 != 0)
				x, y := makeAsked(g, a, 0), makeAsked(h, b, 1)
				if want := cmp.Or(g.compare(h), cmp.Compare(x.local(), y.local())); cmp.Compare(x.order, y.order) != want {
					t.Fatalf("%+v of %+v and %+v of %+v: %d, want %d", x, g, y, h, cmp.Compare(x.order, y.order), want)
				}
			}
		}
	}
}

// TestSortAsked compares the sort with the one of the library.
func TestSortAsked(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var s scratch
	for n := range 300 {
		s.asked = s.asked[:0]
		for i := range n {
			s.asked = append(s.asked, makeAsked(groupOf(rng.IntN(1+n%3*1000), rng.Uint32()>>(n%4*8), n%2 == 0 && rng.IntN(9) == 0), rng.Uint32()>>(n%4*8), i))
		}
		want := slices.Clone(s.asked)
		slices.SortStableFunc(want, func(a, b asked) int { return cmp.Compare(a.order, b.order) })
		if s.sortAsked(); !slices.Equal(s.asked, want) {
			t.Fatalf("%d: %v, want %v", n, s.asked, want)
		}
	}
}
