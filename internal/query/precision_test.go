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
	w := newWorld(t, smallGraphs, func(opt *options) { opt.Embedders = &outside{space: space} })
	w.Namespace("team", map[string]string{settings.EmbedderSpace: settings.EncodeSpace(space)})
	vectors := map[string][]float32{}
	var captures []memory.Capture
	for i := range n {
		captures = append(captures, memory.Capture{Agent: "ann", Text: fmt.Sprintf("note %d", i)})
	}
	ids := w.Capture("team", captures...)
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
			req := memory.SearchRequest{Mode: memory.ModeVector, All: true, Limit: ptr(5)}
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
	w.OK(w.views.Load(context.Background()))
	check("loaded")
	w.Forget("team", ids[3], "ann", events.ScopeTeam)
	delete(vectors, ids[3])
	check("one forgotten")
}
