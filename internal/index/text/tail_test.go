package text

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// longTerms is as many terms as fill somewhat less than half a tail.
const longTerms = (tailBytes/2 - 2<<10) / (MaxTerm + 2)

// lengthen gives a document terms that no other one of the seed has, so many per mille
// of longTerms.
func lengthen(d Doc, seed uint64, perMille int) Doc {
	d.Terms, d.Row = slices.Clone(d.Terms), nil
	for i := range longTerms * perMille / 1000 {
		text := fmt.Sprintf("%0*d", MaxTerm, seed<<32|uint64(d.ID)<<12|uint64(i))
		d.Terms = append(d.Terms, Term{Field: FieldText, Text: text, TF: 1})
		d.Lengths[FieldText]++
	}
	slices.SortFunc(d.Terms, CompareTerms)
	return d
}

// addEach adds each document in a batch of its own, and gives the longest batch.
func addEach(t *testing.T, w *Writer, newBatch func() *pebble.Batch, commit func(*pebble.Batch), docs []Doc) (longest int) {
	t.Helper()
	for i := range docs {
		b := newBatch()
		if err := w.Add(b, 1, docs[i:i+1]); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, b.Len())
		commit(b)
		w.Committed()
	}
	return longest
}

// TestLongDocumentsWereInvertedTogether: a tail counted documents, not bytes, so that
// the 64th of long ones wrote the terms of all in its batch: 300 MB, for 19 seconds.
func TestLongDocumentsWereInvertedTogether(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w := NewWriter(db)
	docs := make([]Doc, tailSize+tailSize/8)
	for i := range docs {
		docs[i] = lengthen(Doc{ID: uint32(i)}, 1, 1000)
	}
	longest := addEach(t, w, db.NewIndexedBatch, func(b *pebble.Batch) { mustCommit(t, db, b) }, docs)
	if limit := 4 * tailBytes; longest > limit {
		t.Errorf("one document of %d bytes wrote a batch of %d bytes, want at most %d", len(mustEncode(t, docs[0])), longest, limit)
	}
	// What that took is not kept, however many partitions there are.
	if n := cap(w.inv.pairs); n > keptPairs {
		t.Errorf("room for %d occurrences is kept, want at most %d", n, keptPairs)
	}
	if n := cap(w.tails[1].rows); n > tailBytes*2 {
		t.Errorf("%d bytes are kept for a tail of %d", n, len(w.tails[1].rows))
	}
}

// TestLongTailLeftItsMemory: the slices of an inversion stayed at their largest size.
func TestLongTailLeftItsMemory(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w := NewWriter(db)
	long := Doc{ID: 0, Lengths: [NumFields]uint32{2 * keptPairs}}
	for i := range 2 * keptPairs {
		long.Terms = append(long.Terms, Term{Text: fmt.Sprintf("%08d", i), TF: 1})
	}
	addEach(t, w, db.NewIndexedBatch, func(b *pebble.Batch) { mustCommit(t, db, b) }, []Doc{long, oneTerm(1, 1)})
	for name, got := range map[string]struct{ n, limit int }{
		"occurrences": {cap(w.inv.pairs), keptPairs}, "by term": {cap(w.inv.byTerm), keptPairs}, "terms": {cap(w.inv.terms), keptPairs},
		"row": {cap(w.rows), keptBytes}, "value": {cap(w.val), keptBytes}, "tail": {cap(w.tails[1].rows), keptBytes},
	} {
		if got.n > got.limit {
			t.Errorf("%s: room for %d is kept, want at most %d", name, got.n, got.limit)
		}
	}
}

// TestTailsEndByBytes: where a tail begins is a function of the documents.
func TestTailsEndByBytes(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w := NewWriter(db)
	for _, step := range []struct {
		id       uint32
		perMille int
		start    uint32 // of the tail, then
	}{
		{3, 0, 0}, {10, 1000, 0}, {11, 1000, 0}, {12, 1000, 12}, // the third does not fit
		{20, 3000, 20}, {21, 0, 21}, // longer than a tail: one of its own
		{70, 0, 70}, {71, 2040, 71}, {127, 0, 127}, {128, 0, 128}, // a tail does not go over a multiple of 64
	} {
		d := lengthen(Doc{ID: step.id}, 1, step.perMille)
		b := db.NewIndexedBatch()
		if err := w.Add(b, 1, []Doc{d}); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, db, b)
		w.Committed()
		_, c, err := readStats(db, 1)
		if err != nil {
			t.Fatal(err)
		}
		if c.start != step.start {
			t.Errorf("after document %d of %d bytes the tail begins at %d, want %d", step.id, len(mustEncode(t, d)), c.start, step.start)
		}
	}
}

// readCounter counts how often rows are looked for.
type readCounter struct {
	pebble.Reader
	gets, iterators int
}

func (r *readCounter) Get(key []byte) ([]byte, io.Closer, error) {
	r.gets++
	return r.Reader.Get(key)
}

func (r *readCounter) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) {
	r.iterators++
	return r.Reader.NewIter(o)
}

// TestEachTermWasLookedUpByItself: every term of a tail that the Writer did not know
// cost a read through all levels of the database, new ones too.
func TestEachTermWasLookedUpByItself(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	commit := func(b *pebble.Batch) { mustCommit(t, db, b) }
	addEach(t, NewWriter(db), db.NewIndexedBatch, commit, []Doc{lengthen(Doc{ID: 1}, 1, 500), oneTerm(2*tailSize, 1)})
	r := &readCounter{Reader: db}
	again := lengthen(Doc{ID: 1}, 1, 500) // terms that have ids, and new ones
	again.ID = 2*tailSize + 1
	addEach(t, NewWriter(r), db.NewIndexedBatch, commit, []Doc{lengthen(again, 2, 300), oneTerm(3*tailSize, 1)})
	// The counters; the rows of the tail, and the dictionary.
	if r.gets > 1 || r.iterators > 2 {
		t.Errorf("%d reads and %d iterators to invert a document of %d terms, want 1 and 2", r.gets, r.iterators, len(again.Terms))
	}
	named := 0
	if err := eachDictionaryRow(db, 1, func(name, uint32) error { named++; return nil }); err != nil {
		t.Fatal(err)
	}
	if want := longTerms*500/1000 + longTerms*300/1000 + 1; named != want {
		t.Errorf("%d terms in the dictionary, want %d", named, want)
	}
}
