package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mneme/internal/embed"
	"mneme/internal/events"
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
