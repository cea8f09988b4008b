//go:build unix

package text

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/storage"
)

var (
	benchDocs = flag.Int("docs", 100_000, "documents of BenchmarkSearch")
	benchAdd  = flag.Int("add", 100, "documents of one Add and batch in BenchmarkSearch")
)

// benchDB builds an index on disk and prints how fast.
func benchDB(b *testing.B, docs, add int) *storage.DB {
	db, err := storage.Open(storage.Options{Dir: b.TempDir(), Merge: MergeTable()})
	if err != nil {
		b.Fatal(err)
	}
	w, c := NewWriter(db), newCorpus(1)
	var took time.Duration
	cpu := cpuTime()
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
		w.Committed()
		took += time.Since(start)
	}
	spent := cpuTime() - cpu
	fmt.Printf("build of %d documents, %d a batch: %.0f documents/s, %.1f µs of CPU each\n", docs, add,
		float64(docs)/took.Seconds(), float64(spent.Microseconds())/float64(docs))
	return db
}

// cpuTime is what the process spent, of all cores: on a machine with other work it
// says more than a clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
			cpu := cpuTime()
			b.ReportAllocs()
			for i := range b.N {
				start := time.Now()
				if _, err := s.Search(context.Background(), db, parts, qs[i%len(qs)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs")
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
// one document are captures, those of 100 and 1,000 are a rebuild.
func BenchmarkAdd(b *testing.B) {
	c := newCorpus(1)
	docs := make([]Doc, 20_000)
	for i := range docs {
		docs[i] = c.doc(8, 32)
	}
	for _, size := range []int{1, 100, 1000} {
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
			cpu := cpuTime()
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
				w.Committed()
				took = append(took, time.Since(start))
				chunk = chunk[:0]
			}
			slices.Sort(took)
			b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(took[len(took)-1].Microseconds()), "max-µs")
			b.ReportMetric(float64(rows)/float64(b.N), "rows/doc")
		})
	}
}
