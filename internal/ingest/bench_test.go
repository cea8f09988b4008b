package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mneme/internal/eventlog/eventlogtest"
	"mneme/memory"
)

// words is a Zipf-like vocabulary, so that terms repeat as in real text.
func words(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "word%d ", int(rng.ExpFloat64()*300))
	}
	return b.String()
}

// BenchmarkCapture measures the way of an event without the log's fsync:
// batches of 100 texts of 500 bytes. One operation is one memory.
func BenchmarkCapture(b *testing.B) {
	w := newWorld(b, eventlogtest.NewFake())
	w.mustStart()
	w.namespace("bench")
	rng := rand.New(rand.NewPCG(1, 2))
	b.ResetTimer()
	for n := 0; n < b.N; n += 100 {
		items := make([]Item, min(100, b.N-n))
		for i := range items {
			items[i].Capture = memory.Capture{Agent: "a", Text: words(rng, 500)}
		}
		if _, err := w.writer.Capture(context.Background(), "bench", items, memory.WaitApplied); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "captures/s")
}
