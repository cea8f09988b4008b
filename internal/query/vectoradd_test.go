package query

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

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// Sets hold bytes. Where an embedder gave floats, a vector's score is that of
// the floats all the same: candidates are opened again from the state.
func TestScoresAreOfFullPrecision(t *testing.T) {
	const n, dim, seed = 150, 64, 9
	rng := rand.New(rand.NewPCG(seed, seed))
	draw := func() []float32 {
		v, sum := make([]float32, dim), 0.0
		for i := range v {
			x := rng.NormFloat64()
			v[i], sum = float32(x), sum+x*x
		}
		for i := range v {
			v[i] = float32(float64(v[i]) / math.Sqrt(sum))
		}
		return v
	}
	space := embed.Space{Provider: embed.ProviderOllama, Model: "m", Dimensions: dim, Normalised: true, Version: 1}
	w := newWorld(t, func(opt *Options) { opt.Embedders = &outside{space: space} })
	graphs(w.svc)
	w.namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(space)})
	vectors := map[string][]float32{}
	var captures []memory.Capture
	for i := range n {
		captures = append(captures, memory.Capture{Agent: "ann", Text: fmt.Sprintf("note %d", i)})
	}
	ids := w.capture("team", captures...)
	for _, id := range ids {
		vectors[id] = draw()
		w.attach("team", id, 1, "ann", events.ScopeTeam, vectors[id])
	}
	check := func(when string) {
		t.Helper()
		w.waitGraphs()
		for range 10 {
			q := draw()
			var want []float64
			score := map[string]float64{}
			for id, v := range vectors {
				sum := 0.0
				for i, x := range v {
					sum += float64(x) * float64(q[i])
				}
				score[id] = sum
				want = append(want, sum)
			}
			slices.Sort(want)
			req := memory.SearchRequest{Mode: memory.ModeVector, Limit: ptr(5)}
			for _, x := range q {
				req.Vector = append(req.Vector, float64(x))
			}
			found := 0
			for _, r := range w.search("team", "", req).Results {
				if math.Abs(r.VectorScore-score[r.ID]) > 1e-6 {
					t.Fatalf("%s, seed %d: score %v, want %v", when, seed, r.VectorScore, score[r.ID])
				}
				if score[r.ID] >= want[len(want)-5]-1e-6 {
					found++
				}
			}
			if found < 4 {
				t.Errorf("%s, seed %d: %d of the best 5 found", when, seed, found)
			}
		}
	}
	check("applied")
	w.ok(w.svc.Load(context.Background()))
	check("loaded")
	w.forget("team", ids[3], "ann", events.ScopeTeam)
	delete(vectors, ids[3])
	check("one forgotten")

	// A vector that another state has in that place, or none has, is passed over.
	have := w.svc.vectors.Load().all()[0]
	set := &vectorSet{key: have.key, dim: dim, docs: append(slices.Clone(have.docs), chunkRef{doc: n})}
	set.docs[3].doc++
	dst := make([]float32, 3*dim)
	w.ok(w.svc.fullPrecision(context.Background(), set, []uint32{3, n, 4}, dst))
	if dst[0] == dst[0] || dst[dim] == dst[dim] || !slices.Equal(dst[2*dim:], vectors[ids[4]]) {
		t.Errorf("got %v …, %v …, %v …", dst[0], dst[dim], dst[2*dim])
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.svc.fullPrecision(gone, set, []uint32{4}, dst[:dim]); err == nil {
		t.Error("the context is ignored")
	}
}

// BenchmarkLoad measures a start: vectors opened from the state, the graph taken
// over. The number of records is MNEME_BENCH_RECORDS, 10,000 by default.
func BenchmarkLoad(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("MNEME_BENCH_RECORDS"))
	if err != nil {
		n = 10000
	}
	with := func(o *Options) { o.GraphDir = b.TempDir() }
	w := newWorld(b, with)
	w.svc.vectorOpt.Params.EfConstruction = 40 // quick to build
	w.namespace("team", withBuiltin())
	rng := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < n; from += 500 {
		var batch []memory.Capture
		for range min(500, n-from) {
			batch = append(batch, memory.Capture{Agent: "ann", Text: fmt.Sprintf("%x %x %x", rng.Uint32(), rng.Uint32(), rng.Uint32())})
		}
		w.capture("team", batch...)
	}
	w.waitGraphs()
	w.ok(w.svc.saveGraphs(w.svc.vectors.Load()))
	dir := w.svc.opt.GraphDir
	w.ok(w.svc.Close())
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		s, err := New(Options{State: w.state, Keys: w.keys, Book: w.book, GraphDir: dir})
		w.ok(err)
		s.vectorOpt.Params.EfConstruction = 40
		b.StartTimer()
		w.ok(s.Load(context.Background()))
		b.StopTimer()
		if st := s.vectors.Load().all()[0].set.Stats(); st.InGraph != n {
			b.Errorf("%d nodes in the graph, want %d", st.InGraph, n)
		}
		s.opt.GraphDir = ""
		w.ok(s.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "vectors/s")
}

// TestVectorsThatDoNotFit: a set takes bytes and floats in one batch, leaves out
// what is dead, and a row of other dimensions costs that row only.
func TestVectorsThatDoNotFit(t *testing.T) {
	const dim = 4
	set := &vectorSet{dim: dim}
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
