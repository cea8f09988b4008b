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

// TestBackground: what the query means stands out of the cosines with a set however small
// the set is and however much of it is meant; what is like all the others never does.
func TestBackground(t *testing.T) {
	const clear, unclear = 3, 2.9 // deviations above the mean: by default 2.95 are enough for a hit by vector
	spread := func(n int, around, width float64) (cosines []float64) {
		for i := range n {
			cosines = append(cosines, around+width*(2*float64(i)/float64(max(n-1, 1))-1))
		}
		return cosines
	}
	for name, c := range map[string]struct {
		cosines       []float64
		meant, others float64
	}{
		"none":                               {nil, 0.81, 0.7},
		"one, and it is meant":               {[]float64{0.9}, 0.9, 0.7},
		"two of three are meant":             {[]float64{0.05, 0.97, 0.98}, 0.97, 0.5},
		"six of eight are meant":             {append(spread(6, 0.92, 0.03), 0.2, 0.25), 0.92, 0.5},
		"all of few are alike":               {spread(5, 0.72, 0.02), 0.9, 0.72},
		"all of many are alike":              {spread(600, 0.72, 0.05), 0.86, 0.77},
		"many are alike, a tenth is meant":   {append(spread(540, 0.72, 0.05), spread(60, 0.88, 0.02)...), 0.88, 0.77},
		"many stand square, a few are meant": {append(spread(300, 0, 0.1), spread(5, 0.5, 0.05)...), 0.45, 0.1},
	} {
		set := &VectorSet{dim: 2}
		var err error
		if set.set, err = vector.NewSet(2, vector.Options{}); err != nil {
			t.Fatal(err)
		}
		var rows []projections.VectorRow
		for doc, x := range c.cosines {
			row := projections.VectorRow{Doc: uint32(doc), Numbers: []byte{events.VectorsFloat}}
			for _, x := range []float64{x, math.Sqrt(1 - x*x)} {
				row.Numbers = binary.LittleEndian.AppendUint32(row.Numbers, math.Float32bits(float32(x)))
			}
			rows = append(rows, row)
		}
		if err := set.add(0, rows, nil); err != nil {
			t.Fatal(err)
		}
		look := Lookup{Query: []float32{1, 0}}
		mean, deviation, err := look.Background(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		if z := (c.meant - mean) / deviation; z < clear {
			t.Errorf("%s: what is meant is %.2f deviations above the mean (%.3f ± %.3f)", name, z, mean, deviation)
		}
		if z := (c.others - mean) / deviation; z > unclear {
			t.Errorf("%s: what is like the others is %.2f deviations above the mean (%.3f ± %.3f)", name, z, mean, deviation)
		}
		if err := set.set.Close(); err != nil {
			t.Error(err)
		}
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
