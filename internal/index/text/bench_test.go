package text

import (
	"context"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

const (
	benchDocs       = 100_000
	benchTokens     = 100 // about 80 distinct terms
	benchVocabulary = 200_000
	benchStopWords  = 100 // a query leaves out the most frequent
)

// benchCorpus draws documents by Zipf's law with a flattened head.
func benchCorpus(n int) []Doc {
	rng := rand.New(rand.NewSource(1))
	zipf := rand.NewZipf(rng, 1.1, 20, benchVocabulary-1)
	docs := make([]Doc, n)
	for i := range docs {
		tokens := make([]int, 50+rng.Intn(benchTokens))
		for j := range tokens {
			tokens[j] = int(zipf.Uint64())
		}
		slices.Sort(tokens)
		d := Doc{ID: uint32(i), Lengths: [NumFields]uint32{uint32(len(tokens)), 1, 0}}
		for j, v := range tokens {
			if j > 0 && tokens[j-1] == v {
				d.Terms[len(d.Terms)-1].TF++
			} else {
				d.Terms = append(d.Terms, Term{Key: termKey(0, v), TF: 1})
			}
		}
		d.Terms = append(d.Terms, Term{Key: termKey(1, rng.Intn(50)), Field: FieldTags, TF: 1})
		docs[i] = d
	}
	return docs
}

func benchQueries(n, skip int) []Query {
	rng := rand.New(rand.NewSource(2))
	zipf := rand.NewZipf(rng, 1.1, 20, benchVocabulary-1)
	qs := make([]Query, n)
	for i := range qs {
		qs[i] = Query{K: 20, FieldWeights: [NumFields]float64{1, 1, 1}}
		for len(qs[i].Terms) < 8 {
			if v := int(zipf.Uint64()); v >= skip {
				t := QueryTerm{Weight: 1}
				for f := range t.Keys {
					t.Keys[f] = termKey(Field(f), v)
				}
				qs[i].Terms = append(qs[i].Terms, t)
			}
		}
	}
	return qs
}

func benchDB(b *testing.B, docs []Doc, compact bool) *storage.DB {
	db, err := storage.Open(storage.Options{Dir: b.TempDir(), Merge: MergeTable()})
	if err != nil {
		b.Fatal(err)
	}
	w := NewWriter(db)
	for chunk := range slices.Chunk(docs, 100) {
		batch := db.NewBatch()
		if err := w.Add(batch, 1, chunk); err != nil {
			b.Fatal(err)
		}
		mustCommit(b, db, batch)
		w.Reset()
	}
	if compact {
		compactAll(b, db)
	}
	return db
}

// BenchmarkSearch prints p50 and p99 of 8-term queries with one document in ten
// removed. "fresh" is before the last flush and compaction.
func BenchmarkSearch(b *testing.B) {
	docs := benchCorpus(benchDocs)
	var live Bits
	for _, d := range docs {
		if d.ID%10 != 0 {
			live.Add(d.ID)
		}
	}
	run := func(name string, db *storage.DB, skip int, parts []Partition) {
		qs := benchQueries(500, skip)
		b.Run(name, func(b *testing.B) {
			var s Searcher
			var took []time.Duration
			b.ReportAllocs()
			for i := range b.N {
				start := time.Now()
				if _, err := s.Search(context.Background(), db, parts, qs[i%len(qs)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	db := benchDB(b, docs, false)
	defer db.Close()
	run("fresh", db, benchStopWords, []Partition{{ID: 1, Live: live}})
	compactAll(b, db)
	run("natural", db, benchStopWords, []Partition{{ID: 1, Live: live}})
	run("all-live", db, benchStopWords, []Partition{{ID: 1}})
	run("stop-words", db, 0, []Partition{{ID: 1, Live: live}})
}

// BenchmarkAdd adds ranges of 100 documents; one operation is one document.
func BenchmarkAdd(b *testing.B) {
	docs := benchCorpus(20_000)
	for _, commit := range []bool{false, true} {
		name := "batch"
		if commit {
			name = "commit"
		}
		b.Run(name, func(b *testing.B) {
			db, err := storage.Open(storage.Options{Dir: "db", FS: vfs.NewMem(), Merge: MergeTable()})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			w := NewWriter(db)
			chunk := make([]Doc, 0, 100)
			rows := 0
			b.ResetTimer()
			for i := range b.N {
				d := docs[i%len(docs)]
				d.ID = uint32(i)
				if chunk = append(chunk, d); len(chunk) < 100 && i != b.N-1 {
					continue
				}
				batch := db.NewBatchWithSize(256 << 10)
				if err := w.Add(batch, 1, chunk); err != nil {
					b.Fatal(err)
				}
				rows += int(batch.Count())
				if commit {
					if err := db.Commit(batch, false); err != nil {
						b.Fatal(err)
					}
				}
				_ = batch.Close()
				w.Reset()
				chunk = chunk[:0]
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "docs/s")
			b.ReportMetric(float64(rows)/float64(b.N), "rows/doc")
		})
	}
}
