package views

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKeepBest compares with sorting everything.
func TestKeepBest(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, seed))
	for range 200 {
		best := map[uint32]float64{}
		var got []scored
		for range rnd.IntN(60) {
			h := scored{uint32(rnd.IntN(25)), float64(rnd.IntN(1000)) / 7}
			if old, ok := best[h.doc]; !ok || h.score > old {
				best[h.doc] = h.score
			}
			got = keepBest(got, h)
		}
		var want []float64
		for _, score := range best {
			want = append(want, score)
		}
		slices.Sort(want)
		slices.Reverse(want)
		want = want[:min(len(want), compareNearest)]
		var scores []float64
		docs := map[uint32]bool{}
		for _, h := range got {
			scores = append(scores, h.score)
			if docs[h.doc] {
				t.Fatalf("document %d twice in %v", h.doc, got)
			}
			docs[h.doc] = true
		}
		if !slices.Equal(scores, want) {
			t.Fatalf("kept %v, want %v", scores, want)
		}
	}
	if countAbove([]scored{{1, 0.9}, {2, 0.5}, {3, 0.2}}, []scored{{1, 0.9}, {2, 0.50005}}) != 2 || countAbove([]scored{{1, 1}}, nil) != 0 {
		t.Error("countAbove")
	}
}
