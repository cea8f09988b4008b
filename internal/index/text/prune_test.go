package text

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The best k found by skipping are, to the bit, the first k of all that match, in
// an index large enough that most postings are skipped.
func TestSkippingChangesNothing(t *testing.T) {
	const seed, docs, partition = 11, 10_000, 3
	rng := rand.New(rand.NewPCG(seed, 4))
	c := newCorpus(seed)
	c.next = blockSize - docs/2
	db := openTestDB(t, vfs.NewMem())
	defer db.Close()
	w := NewWriter(db)
	var live, allow, few Bits
	for range docs / 500 {
		b := db.NewIndexedBatch()
		var ds []Doc
		for range 500 {
			d := c.doc(2, 40)
			ds = append(ds, d)
			if rng.IntN(8) > 0 {
				live.Add(d.ID)
			}
			if rng.IntN(2) > 0 {
				allow.Add(d.ID)
			}
			if rng.IntN(500) == 0 {
				few.Add(d.ID)
			}
		}
		if err := w.Add(b, partition, ds); err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if !live.Contains(d.ID) {
				if err := w.Remove(b, partition, d.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		mustCommit(t, db, b)
		w.Committed()
	}
	var s Searcher
	skipped := 0
	for i := range 300 {
		q := newCorpus(int64(i)).query(1+rng.IntN(10), rng.IntN(300), benchVocabulary)
		if rng.IntN(4) == 0 {
			q.Terms[0].Weight = []float64{-1, 0, 3}[rng.IntN(3)]
		}
		if rng.IntN(4) == 0 {
			q.Must = [][]int{{rng.IntN(len(q.Terms))}, {rng.IntN(len(q.Terms)), 0}}
		}
		parts := []Partition{{ID: partition, Live: live}}
		switch rng.IntN(4) {
		case 0:
			parts[0].Allow = allow
		case 1:
			parts[0].Allow = few
		case 2:
			parts[0].Allow = struct{ Set }{allow}
		}
		p, err := s.Prepare(context.Background(), db, parts, q)
		if err != nil {
			t.Fatal(err)
		}
		all, err := p.Top(context.Background(), docs, nil)
		if err != nil {
			t.Fatal(err)
		}
		k := 1 + rng.IntN(20)
		got, err := p.Top(context.Background(), k, nil)
		if n := min(k, len(all)); err != nil || !slices.EqualFunc(got, all[:n], sameHit) {
			t.Fatalf("seed %d, query %d %+v: %v, want %v, %v", seed, i, q, got, all[:n], err)
		}
		if len(all) > k {
			skipped++
			at := rng.IntN(len(all) - k)
			next, err := p.Top(context.Background(), k, &all[at])
			if n := at + 1 + k; err != nil || !slices.EqualFunc(next, all[at+1:min(n, len(all))], sameHit) {
				t.Fatalf("seed %d, query %d after %d: %v, %v", seed, i, at, next, err)
			}
			// A few documents are sought, and for many the lists are read.
			for _, hits := range [][]Hit{{got[0], all[len(all)-1]}, all} {
				refs, rows := make([]Ref, len(hits)), make([][]Share, len(hits))
				for j, h := range hits {
					refs[j], rows[j] = Ref{partition, h.Doc}, make([]Share, len(q.Terms))
				}
				err = p.Score(context.Background(), refs, func(i int) []Share { return rows[i] })
				for j, h := range hits {
					sum := 0.0
					for _, share := range rows[j] {
						sum += share.Score
					}
					if err != nil || q.Terms[0].Weight >= 0 && sum != h.Score {
						t.Fatalf("seed %d, query %d: scores %v of %v, %v", seed, i, rows[j], h, err)
					}
				}
			}
			if unfiltered, err := p.TopOfAll(context.Background(), docs); err != nil || len(unfiltered) < len(all) ||
				len(q.Must) == 0 && parts[0].Allow == nil && !slices.EqualFunc(unfiltered, all, sameHit) {
				t.Fatalf("seed %d, query %d: %d of all, %d allowed, %v", seed, i, len(unfiltered), len(all), err)
			}
		}
		p.Close()
	}
	if skipped < 100 {
		t.Fatalf("only %d queries had anything to skip", skipped)
	}
}
