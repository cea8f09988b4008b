//go:build unix

package text

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"mneme/internal/storage"
)

// largeDoc is a document of so many terms, of an alphabet of 20,000, in pairs.
func largeDoc(rng *rand.Rand, id uint32, terms int) Doc {
	seen := map[string]bool{}
	for len(seen) < terms {
		seen[string([]rune{rune(0x4e00 + rng.IntN(20000)), rune(0x4e00 + rng.IntN(20000))})] = true
	}
	d := Doc{ID: id}
	for t := range seen {
		d.Terms = append(d.Terms, Term{Text: t, TF: 1})
	}
	slices.SortFunc(d.Terms, CompareTerms)
	d.Lengths[FieldText] = uint32(terms)
	return d
}

// BenchmarkAddLarge adds documents of 100,000 terms, nearly all of them new; one
// operation is one document.
func BenchmarkAddLarge(b *testing.B) {
	for _, size := range []int{1, 2, 31} {
		b.Run(fmt.Sprint("batch=", size), func(b *testing.B) {
			db, err := storage.Open(storage.Options{Dir: b.TempDir(), Merge: MergeTable()})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			w := NewWriter(db)
			rng := rand.New(rand.NewPCG(1, 1))
			var spent, most int64
			largest := 0
			for i := 0; i < b.N; {
				var docs []Doc
				for range min(size, b.N-i) {
					docs = append(docs, largeDoc(rng, uint32(i), 100_000))
					i++
				}
				from := cpuTime()
				batch := db.NewIndexedBatch()
				if err := w.Add(batch, 1, docs); err != nil {
					b.Fatal(err)
				}
				largest = max(largest, batch.Len())
				mustCommit(b, db, batch)
				w.Committed()
				took := int64(cpuTime() - from)
				spent, most = spent+took, max(most, took)
			}
			b.ReportMetric(float64(spent)/1e6/float64(b.N), "cpu-ms")
			b.ReportMetric(float64(most)/1e6, "max-cpu-ms")
			b.ReportMetric(float64(largest)/1e6, "batch-MB")
		})
	}
}
