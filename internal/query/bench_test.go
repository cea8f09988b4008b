package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mneme/internal/query/views"
	"mneme/memory"
)

// BenchmarkSearch measures whole searches, opening the view included. The
// number of records is MNEME_BENCH_RECORDS, 10,000 by default.
func BenchmarkSearch(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("MNEME_BENCH_RECORDS"))
	if err != nil {
		n = 10000
	}
	w := newWorld(b)
	w.Namespace("team", withBuiltin())
	g := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(g, 1.2, 4, 20000)
	words := func(k int) string {
		out := make([]string, k)
		for i := range out {
			out[i] = fmt.Sprintf("w%s", strconv.FormatUint(zipf.Uint64()*2654435761%1000003, 36))
		}
		return strings.Join(out, " ")
	}
	for from := 0; from < n; from += 500 {
		var batch []memory.Capture
		for i := range 500 {
			batch = append(batch, memory.Capture{Agent: agentName(g.IntN(8)), Text: words(25), Tags: []string{[]string{"red", "green"}[g.IntN(2)]},
				Conversation: fmt.Sprintf("talk-%d", (from+i)/20)})
		}
		w.Capture("team", batch...)
	}
	began := time.Now()
	w.OK(w.views.Sets()[0].Wait(context.Background()))
	b.Logf("%d records, graph after %s: %+v", n, time.Since(began), w.views.VectorStatus())
	queries := make([]string, 64)
	for i := range queries {
		queries[i] = words(5)
	}
	for _, c := range []struct {
		name string
		req  memory.SearchRequest
	}{
		{"hybrid", memory.SearchRequest{}},
		{"text", memory.SearchRequest{Mode: memory.ModeText}},
		{"plain", memory.SearchRequest{Mode: memory.ModeText, Parts: map[memory.Part]bool{memory.PartNeighbours: false}}},
		{"vector", memory.SearchRequest{Mode: memory.ModeVector}},
		{"filtered", memory.SearchRequest{Filter: &memory.Filter{Tags: []string{"red"}}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			took := make([]time.Duration, 0, b.N)
			for i := 0; b.Loop(); i++ {
				at := time.Now()
				r, err := w.svc.Open(context.Background(), "team", "agent-1", views.Freshness{})
				w.OK(err)
				req := c.req
				req.Query = queries[i%len(queries)]
				_, err = r.Search(context.Background(), req)
				w.OK(err)
				w.OK(r.Close())
				took = append(took, time.Since(at))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
