package text

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func oneTerm(id, tf uint32) Doc {
	return Doc{ID: id, Terms: []Term{{Text: "tea", TF: tf}}, Lengths: [NumFields]uint32{tf}}
}

func TestAddRefuses(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w := NewWriter(db)
	bad := map[string][]Doc{
		"descending":  {oneTerm(2, 1), oneTerm(2, 1)},
		"no tf":       {oneTerm(1, 0)},
		"large tf":    {oneTerm(1, MaxTF+1)},
		"field":       {{Terms: []Term{{Text: "a", TF: 1, Field: NumFields}}}},
		"twice":       {{Terms: []Term{{Text: "a", TF: 1}, {Text: "a", TF: 2}}}},
		"empty term":  {{Terms: []Term{{TF: 1}}}},
		"long term":   {{Terms: []Term{{Text: strings.Repeat("a", MaxTerm+1), TF: 1}}}},
		"zero byte":   {{Terms: []Term{{Text: "a\x00b", TF: 1}}}},
		"long length": {{Lengths: [NumFields]uint32{MaxLength + 1}}},
	}
	for name, docs := range bad {
		b := db.NewBatch()
		if err := w.Add(b, 0, docs); !errors.Is(err, ErrInvalid) || !b.Empty() {
			t.Errorf("%s: %v, batch %d", name, err, b.Count())
		}
		if _, err := EncodeDoc(nil, docs[len(docs)-1]); name != "descending" && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: EncodeDoc: %v", name, err)
		}
		_ = b.Close()
	}
	b := db.NewBatch()
	defer b.Close()
	if err := w.Add(b, 0, nil); err != nil || !b.Empty() {
		t.Fatal(err)
	}
}

func TestRemove(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w := NewWriter(db)
	plain := db.NewBatch()
	defer plain.Close()
	if err := w.Remove(plain, 5, 1); !errors.Is(err, ErrInvalid) {
		t.Fatal("a plain batch was taken:", err)
	}
	if err := w.RemovePhysical(plain, 5, 1); !errors.Is(err, ErrInvalid) {
		t.Fatal("a plain batch was taken:", err)
	}
	b := db.NewIndexedBatch()
	if err := w.Remove(b, 5, 1); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := w.Add(b, 5, []Doc{oneTerm(1, 2), oneTerm(2, 3)}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // of the same, uncommitted batch; twice is once
		if err := w.Remove(b, 5, 1); err != nil {
			t.Fatal(err)
		}
	}
	mustCommit(t, db, b)
	w.Committed()
	b = db.NewIndexedBatch()
	if err := w.Remove(b, 5, 1); err != nil || !b.Empty() {
		t.Fatal("a removed document was removed again:", err)
	}
	st, err := ReadStats(db, 5)
	if want := (Stats{Docs: 1, Length: [NumFields]uint64{3}}); err != nil || st != want {
		t.Fatal(st, err)
	}
	if gone, err := Removed(db, 5, 1); err != nil || !gone {
		t.Fatal(gone, err)
	}
	if err := w.RemovePhysical(b, 5, 2); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(b, 5, 2); !errors.Is(err, ErrNotFound) {
		t.Fatal("an erased document was removed:", err)
	}
	mustCommit(t, db, b)
	if _, err := ReadDoc(db, 5, 2); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

func TestSearchRefuses(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	nan := 0.0
	nan /= nan
	term := []QueryTerm{{Text: "tea", Weight: 1}}
	ones := [NumFields]float64{1, 1, 1}
	bad := []Query{
		{},
		{K: 1, K1: -1},
		{K: 1, B: 2},
		{K: 1, FieldWeights: [NumFields]float64{nan}},
		{K: 1, Terms: []QueryTerm{{Weight: nan}}},
	}
	for _, q := range bad {
		if _, err := new(Searcher).Search(context.Background(), db, nil, q); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	q := Query{K: 1, Terms: term, FieldWeights: ones}
	if _, err := new(Searcher).Search(context.Background(), db, []Partition{{ID: 1}, {ID: 1}}, q); !errors.Is(err, ErrInvalid) {
		t.Error("a partition twice:", err)
	}
	if hits, err := new(Searcher).Search(context.Background(), db, []Partition{{ID: 1}}, q); err != nil || len(hits) != 0 {
		t.Error("empty partition:", hits, err)
	}
	w, b := NewWriter(db), db.NewBatch()
	if err := w.Add(b, 1, []Doc{oneTerm(1, 1)}); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, db, b)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := new(Searcher).Search(ctx, db, []Partition{{ID: 1}}, q); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func mustEncode(t testing.TB, d Doc) []byte {
	t.Helper()
	v, err := EncodeDoc(nil, d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCorruptRowsAreErrors(t *testing.T) {
	key := appendPostingKey(nil, 1, 0, "tea", 0)
	row, err := appendTailRow(nil, mustEncode(t, oneTerm(0, 1)))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][2][]byte{
		"run":        {key, {runVersion, 9, 0}},
		"chunk":      {key, {chunkVersion, 9, 0}},
		"nothing":    {key, nil},
		"order":      {key, {runVersion, 1, 0, 1, runVersion, 1, 0, 1}},
		"removed":    {key, {runVersion, 1, 0, 1, removedVersion, 2}},
		"version":    {key, {9}},
		"key":        {append(slices.Clone(key), 1), {runVersion, 1, 0, 1}},
		"statistics": {appendPartition(nil, PrefixStatistics, 1), {statsVersion}},
		"tail row":   {appendForwardKey(nil, 1, tailSize), {tailVersion, 1}},
		"tail key":   {append(appendForwardKey(nil, 1, tailSize), 9, 9), nil},
		"tail":       {appendForwardKey(nil, 1, tailSize+blockSize), row},
	}
	q := Query{K: 1, FieldWeights: [NumFields]float64{1}, Terms: []QueryTerm{{Text: "tea", Weight: 1}}}
	for name, kv := range rows {
		db := openTestDB(t, vfs.NewMem())
		w, b := NewWriter(db), db.NewBatch()
		if err := w.Add(b, 1, []Doc{oneTerm(1, 1), oneTerm(tailSize, 1)}); err != nil {
			t.Fatal(err)
		}
		if err := b.Set(kv[0], kv[1], nil); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, db, b)
		if _, err := new(Searcher).Search(context.Background(), db, []Partition{{ID: 1}}, q); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err := db.Set(appendForwardKey(nil, 1, 1), []byte{invertedVersion, 0, 1}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDoc(db, 1, 1); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: forward row: %v", name, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A search on a snapshot sees one state while ranges are committed: with the live
// set "all", all documents hold the term, so the counters and the postings must
// agree.
func TestSearchWhileWriting(t *testing.T) {
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	var s Searcher
	var stop atomic.Bool
	var wg sync.WaitGroup
	q := Query{K: 5, FieldWeights: [NumFields]float64{1}, Explain: true,
		Terms: []QueryTerm{{Text: "tea", Weight: 1}}}
	for range 3 {
		wg.Go(func() {
			for !stop.Load() {
				snap := db.NewSnapshot()
				hits, err := s.Search(context.Background(), snap, []Partition{{ID: 1}}, q)
				if err != nil {
					t.Error(err)
				}
				for _, h := range hits {
					if p := h.Parts[0]; p.DF != p.N {
						t.Errorf("%d documents, %d hold the term", p.N, p.DF)
					}
				}
				if err := snap.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	w := NewWriter(db)
	rng := rand.New(rand.NewPCG(1, 1))
	for id := uint32(0); id < 6_000; {
		var docs []Doc
		for range 1 + rng.IntN(200) {
			docs = append(docs, oneTerm(id, 1+uint32(rng.IntN(3))))
			id++
		}
		b := db.NewBatch()
		if err := w.Add(b, 1, docs); err != nil {
			t.Fatal(err)
		}
		mustCommit(t, db, b)
		w.Committed()
		if rng.IntN(40) == 0 {
			if _, err := db.AsyncFlush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
}

var _ pebble.Reader = (*pebble.Snapshot)(nil)
