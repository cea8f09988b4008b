package text

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

// batches adds documents in batches, whose sizes next gives.
func batches(t *testing.T, db *storage.DB, docs []Doc, next func() int, writer func() *Writer) {
	t.Helper()
	for len(docs) > 0 {
		n := min(next(), len(docs))
		w, b := writer(), db.NewBatch()
		if err := w.Add(b, 1, docs[:n]); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, db, b)
		w.Committed()
		docs = docs[n:]
	}
}

// rowsBeside gives the rows of all but postings, whose parts may wait for a merge.
func rowsBeside(t *testing.T, db *storage.DB) (rows []string) {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.SeekGE([]byte{PrefixStatistics}); ok; ok = it.Next() {
		rows = append(rows, fmt.Sprintf("%x %x", it.Key(), it.Value()))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestIDsDoNotDependOnBatches: replicas that cut a log into other batches, or that
// stopped and started in between, give every term the same id.
func TestIDsDoNotDependOnBatches(t *testing.T) {
	c := newCorpus(3)
	docs := make([]Doc, 300)
	for i := range docs {
		docs[i] = c.doc(8, 32)
		if i%40 < 2 { // tails end by their bytes too
			docs[i] = lengthen(docs[i], 1, 400+i%3*400)
		}
	}
	docs[125] = lengthen(docs[125], 1, 2500)
	const half = 150 // where documents leave
	rng := rand.New(rand.NewPCG(3, 3))
	var want []string
	for name, next := range map[string]func() int{
		"1": func() int { return 1 }, "7": func() int { return 7 }, "64": func() int { return 64 }, "65": func() int { return 65 },
		"all": func() int { return len(docs) }, "random": func() int { return 1 + rng.IntN(150) },
	} {
		for _, restarts := range []bool{false, true} {
			db := openTestDB(t, vfs.NewMem())
			w := NewWriter(db)
			writer := func() *Writer {
				if restarts {
					w = NewWriter(db)
				}
				return w
			}
			batches(t, db, docs[:half], next, writer)
			b := db.NewIndexedBatch()
			if err := errors.Join(w.RemovePhysical(b, 1, 3), w.RemovePhysical(b, 1, half-1), w.Remove(b, 1, 4), w.Remove(b, 1, half-2)); err != nil {
				t.Fatal(err)
			}
			mustCommit(t, db, b)
			w.Committed()
			batches(t, db, docs[half:], next, writer)
			got := rowsBeside(t, db)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("batches of %s, restarts %v: %d rows that differ from the %d of another size", name, restarts, len(got), len(want))
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// idOf finds the id of a term of the text; false if it is not in the dictionary.
func idOf(t *testing.T, db *storage.DB, term string) (id uint32, ok bool) {
	t.Helper()
	err := view(db, appendDictionaryKey(nil, 1, FieldText, term), func(v []byte) (err error) {
		id, err = readID(v)
		return err
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	return id, err == nil
}

// TestATermThatComesBackGetsANewID: an id never means two terms, nor a term that
// left and came back, so that a row which an erasure missed names nothing.
func TestATermThatComesBackGetsANewID(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		db := openTestDB(t, vfs.NewMem())
		w := NewWriter(db)
		common := func(id uint32) Doc {
			return Doc{ID: id, Terms: []Term{{Text: "water", TF: 1}}, Lengths: [NumFields]uint32{1}}
		}
		one := func() int { return 1 }
		writer := func() *Writer {
			if restarts {
				w = NewWriter(db)
			}
			return w
		}
		batches(t, db, []Doc{common(0), oneTerm(5, 1), common(tailSize)}, one, writer)
		first, ok := idOf(t, db, "tea")
		if !ok {
			t.Fatal("a term with postings has no id")
		}
		b := db.NewIndexedBatch()
		if err := writer().RemovePhysical(b, 1, 5); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, db, b)
		w.Committed()
		if id, ok := idOf(t, db, "tea"); ok {
			t.Errorf("a term that no document has is still in the dictionary, as %d", id)
		}
		names, err := openNames(db, 1)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := names.name(first); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the id of a term that left names %q, %v", n.text, err)
		}
		if err := names.it.Close(); err != nil {
			t.Fatal(err)
		}
		batches(t, db, []Doc{oneTerm(tailSize+1, 2), common(2 * tailSize)}, one, writer)
		again, ok := idOf(t, db, "tea")
		if !ok || again <= first {
			t.Errorf("restarts %v: the term came back as %d, %v, and was %d", restarts, again, ok, first)
		}
		if d, err := ReadDoc(db, 1, tailSize+1); err != nil || !slices.Equal(d.Terms, oneTerm(0, 2).Terms) {
			t.Errorf("its document is %v, %v", d, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
