package text

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

var (
	benchDocs = flag.Int("docs", 100_000, "documents of BenchmarkSearch")
	benchAdd  = flag.Int("add", 100, "documents of one Add and batch in BenchmarkSearch")
)

const (
	benchVocabulary = 200_000
	benchStopWords  = 100 // a query leaves out the most frequent
)

// corpus draws short documents, 8 to 32 tokens, by Zipf's law with a flattened head.
type corpus struct {
	rng  *rand.Rand
	zipf *rand.Zipf
	next uint32
}

func newCorpus(seed int64) *corpus {
	rng := rand.New(rand.NewSource(seed))
	return &corpus{rng: rng, zipf: rand.NewZipf(rng, 1.1, 20, benchVocabulary-1)}
}

func (c *corpus) doc(least, most int) Doc {
	tokens := make([]int, least+c.rng.Intn(most-least+1))
	for j := range tokens {
		tokens[j] = int(c.zipf.Uint64())
	}
	slices.Sort(tokens)
	d := Doc{ID: c.next, Lengths: [NumFields]uint32{uint32(len(tokens)), 1, 0}}
	c.next++
	for j, v := range tokens {
		if j > 0 && tokens[j-1] == v {
			d.Terms[len(d.Terms)-1].TF++
		} else {
			d.Terms = append(d.Terms, Term{Key: termKey(0, v), TF: 1})
		}
	}
	d.Terms = append(d.Terms, Term{Key: termKey(1, c.rng.Intn(50)), Field: FieldTags, TF: 1})
	slices.SortFunc(d.Terms, compareTerms) // as derive gives them
	return d
}

// benchQueries draws queries of so many terms of the vocabulary's ranks from, to.
func benchQueries(n, terms, from, to int) []Query {
	c := newCorpus(2)
	qs := make([]Query, n)
	for i := range qs {
		qs[i] = Query{K: 10, FieldWeights: [NumFields]float64{1, 1, 1}}
		for len(qs[i].Terms) < terms {
			if v := int(c.zipf.Uint64()); v >= from && v < to {
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

// benchDB builds an index on disk and prints how fast.
func benchDB(b *testing.B, docs, add int) *storage.DB {
	db, err := storage.Open(storage.Options{Dir: b.TempDir(), Merge: MergeTable()})
	if err != nil {
		b.Fatal(err)
	}
	w, c := NewWriter(db), newCorpus(1)
	var took time.Duration
	for done := 0; done < docs; {
		var chunk []Doc
		for range min(add, docs-done) {
			chunk = append(chunk, c.doc(8, 32))
		}
		done += len(chunk)
		start := time.Now()
		batch := db.NewBatch()
		if err := w.Add(batch, 1, chunk); err != nil {
			b.Fatal(err)
		}
		mustCommit(b, db, batch)
		w.Reset()
		took += time.Since(start)
	}
	fmt.Printf("build of %d documents, %d a batch: %.0f documents/s\n", docs, add, float64(docs)/took.Seconds())
	return db
}

// BenchmarkSearch prints p50 and p99 at k = 10 of queries of 1 to 8 terms, with one
// document in ten not alive, as built and after compaction.
func BenchmarkSearch(b *testing.B) {
	var live Bits
	for id := range uint32(*benchDocs) {
		if id%10 != 0 {
			live.Add(id)
		}
	}
	db := benchDB(b, *benchDocs, *benchAdd)
	defer db.Close()
	parts := []Partition{{ID: 1, Live: live}}
	run := func(name string, qs []Query) {
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
	for _, state := range []string{"fresh", "compact"} {
		if state == "compact" {
			compactAll(b, db)
			total := db.DB.Metrics().Total()
			fmt.Printf("on disk: %.1f bytes a document\n", float64(total.TablesSize)/float64(*benchDocs))
		}
		for _, n := range []int{1, 2, 3, 8} {
			run(fmt.Sprintf("%s/terms=%d", state, n), benchQueries(500, n, benchStopWords, benchVocabulary))
		}
		run(state+"/frequent=2", benchQueries(500, 2, 10, 200))
		run(state+"/frequent=8", benchQueries(500, 8, 10, 200))
	}
}

// BenchmarkAdd adds ranges of documents; one operation is one document. Those of
// one document are captures, those of 100 are a rebuild.
func BenchmarkAdd(b *testing.B) {
	c := newCorpus(1)
	docs := make([]Doc, 20_000)
	for i := range docs {
		docs[i] = c.doc(8, 32)
	}
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprint("batch=", size), func(b *testing.B) {
			db, err := storage.Open(storage.Options{Dir: "db", FS: vfs.NewMem(), Merge: MergeTable()})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			w := NewWriter(db)
			var took []time.Duration
			chunk := make([]Doc, 0, size)
			rows := 0
			b.ResetTimer()
			for i := range b.N {
				d := docs[i%len(docs)]
				d.ID = uint32(i)
				if chunk = append(chunk, d); len(chunk) < size && i != b.N-1 {
					continue
				}
				start := time.Now()
				batch := db.NewBatch()
				if err := w.Add(batch, 1, chunk); err != nil {
					b.Fatal(err)
				}
				rows += int(batch.Count())
				mustCommit(b, db, batch)
				w.Reset()
				took = append(took, time.Since(start))
				chunk = chunk[:0]
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
			b.ReportMetric(float64(rows)/float64(b.N), "rows/doc")
		})
	}
}
