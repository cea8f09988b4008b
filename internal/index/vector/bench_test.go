package vector

import (
	"context"
	"testing"
	"time"
)

// The data of the benchmarks: 20,000 unit vectors of 384 dimensions around 200
// centres, with noise as long as the centres, so that the ten nearest of a
// query are to be told from a hundred others at nearly the same distance.
const (
	benchSeed     = 20
	benchVectors  = 20000
	benchDim      = 384
	benchClusters = 200
	benchNoise    = 1.0
	benchQueries  = 500
	benchK        = 10
)

func BenchmarkSearch20k384(b *testing.B) {
	data := newClustered(benchSeed, benchDim, benchClusters, benchNoise)
	vectors, queries := data.take(benchVectors), data.take(benchQueries)
	exact := mustSet(b, benchDim, Options{Engine: EngineExact})
	fill(b, exact, 0, vectors)
	want := make([][]Hit, len(queries))
	for i, q := range queries {
		want[i] = mustSearch(b, exact, q, benchK, nil)
	}
	for _, engine := range []Engine{EngineMneme, EngineCoder, EngineExact} {
		b.Run(string(engine), func(b *testing.B) {
			// The guard would hide what a bad graph finds.
			s := mustSet(b, benchDim, Options{Engine: engine, GuardRecall: -1})
			began := time.Now()
			fill(b, s, 0, vectors)
			mustWait(b, s)
			built := time.Since(began)
			recall := 0.0
			for i, q := range queries {
				recall += recallOf(mustSearch(b, s, q, benchK, nil), want[i])
			}
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			// The best round stands for an undisturbed core.
			best, round := time.Hour, time.Now()
			for i := range b.N {
				if i > 0 && i%len(queries) == 0 {
					best = min(best, time.Since(round))
					round = time.Now()
				}
				if _, err := s.Search(ctx, queries[i%len(queries)], benchK, nil); err != nil {
					b.Fatal(err)
				}
			}
			if best < time.Hour {
				b.ReportMetric(float64(len(queries))/best.Seconds(), "best-q/s")
			}
			b.ReportMetric(recall/float64(len(queries)), "recall@10")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "q/s")
			b.ReportMetric(float64(len(vectors))/built.Seconds(), "inserts/s")
			b.ReportMetric(s.Stats().BytesPerVector, "B/vector")
		})
	}
}
