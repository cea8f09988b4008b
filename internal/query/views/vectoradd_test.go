package views

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/memory"
)

// BenchmarkLoad measures a start: vectors opened from the state, the graph taken
// over. The number of records is MNEME_BENCH_RECORDS, 10,000 by default.
func BenchmarkLoad(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("MNEME_BENCH_RECORDS"))
	if err != nil {
		n = 10000
	}
	quick := vector.Options{}
	quick.Params.EfConstruction = 40
	dir := b.TempDir()
	with := func(o *Options) { o.GraphDir, o.Vector = dir, quick }
	w := newWorld(b, with)
	w.Namespace("team", withBuiltin())
	rng := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < n; from += 500 {
		var batch []memory.Capture
		for range min(500, n-from) {
			batch = append(batch, memory.Capture{Agent: "ann", Text: fmt.Sprintf("%x %x %x", rng.Uint32(), rng.Uint32(), rng.Uint32())})
		}
		w.Capture("team", batch...)
	}
	w.waitGraphs()
	w.OK(w.views.Close()) // saves the graph
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		s, err := New(Options{State: w.State, Keys: w.Keys, Settings: w.Settings, GraphDir: dir, Vector: quick})
		w.OK(err)
		b.StartTimer()
		w.OK(s.Load(context.Background()))
		b.StopTimer()
		if st := s.Sets()[0].Stats(); st.InGraph != n {
			b.Errorf("%d nodes in the graph, want %d", st.InGraph, n)
		}
		s.vectors.graphs.dir = ""
		w.OK(s.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "vectors/s")
}

// TestVectorsThatDoNotFit: a set takes bytes and floats in one batch, leaves out
// what is dead, and a row of other dimensions costs that row only.
func TestVectorsThatDoNotFit(t *testing.T) {
	const dim = 4
	set := &VectorSet{dim: dim}
	var err error
	if set.set, err = vector.NewSet(dim, vector.Options{}); err != nil {
		t.Fatal(err)
	}
	defer set.set.Close()
	small := func(doc uint32, numbers ...int8) projections.VectorRow {
		row := projections.VectorRow{Doc: doc, Numbers: []byte{events.VectorsSmall}}
		for _, x := range numbers {
			row.Numbers = append(row.Numbers, byte(x))
		}
		return row
	}
	float := func(doc uint32, numbers ...float32) projections.VectorRow {
		row := projections.VectorRow{Doc: doc, Numbers: []byte{events.VectorsFloat}}
		for _, x := range numbers {
			row.Numbers = binary.LittleEndian.AppendUint32(row.Numbers, math.Float32bits(x))
		}
		return row
	}
	rows := []projections.VectorRow{
		small(0, 127, 0, 0, 0), small(1, 0, 127, 0, 0), float(2, 0, 0, 1, 0), small(3, 0, 0, 0),
		float(4, 1, 0), {Doc: 5}, small(6, 0, 0, -127, 0), float(7, 0, 0, 0, 1),
	}
	err = set.add(10, rows, func(doc uint32) bool { return doc == 1 })
	if !errors.Is(err, events.ErrMalformed) {
		t.Errorf("rows of other dimensions: %v", err)
	}
	for doc, q := range map[uint32][]float32{0: {1, 0, 0, 0}, 2: {0, 0, 1, 0}, 6: {0, 0, -1, 0}, 7: {0, 0, 0, 1}} {
		hits, err := set.set.Search(context.Background(), q, 10, nil)
		if err != nil || len(hits) != 4 || hits[0].ID != 10+doc || hits[0].Score < 0.99 {
			t.Errorf("document %d: %+v, %v", doc, hits, err)
		}
	}
	// What is known already is not added again.
	if err := set.add(10, rows[:1], nil); err != nil {
		t.Error(err)
	}
	if n := len(set.snapshot()); n != 18 {
		t.Errorf("%d VectorIDs are known", n)
	}
}

// A vector that another state has in that place, or none has, is passed over.
func TestFullPrecisionPassesOverOthers(t *testing.T) {
	w := newWorld(t)
	w.Namespace("team", withBuiltin())
	w.fill("team", 6)
	have := w.views.Sets()[0]
	dim := have.dim
	set := &VectorSet{key: have.key, dim: dim, docs: append(slices.Clone(have.docs), chunkRef{doc: 6})}
	set.docs[3].doc++
	dst := make([]float32, 3*dim)
	w.OK(w.views.vectors.fullPrecision(context.Background(), set, []uint32{3, 6, 4}, dst))
	if dst[0] == dst[0] || dst[dim] == dst[dim] || dst[2*dim] != dst[2*dim] {
		t.Errorf("got %v …, %v …, %v …; want NaN, NaN and a number", dst[0], dst[dim], dst[2*dim])
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.views.vectors.fullPrecision(gone, set, []uint32{4}, dst[:dim]); err == nil {
		t.Error("the context is ignored")
	}
}
