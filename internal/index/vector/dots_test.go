package vector

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
)

// Dots gives each vector the score that a search gives it, to the bit, whatever is beside
// it, and none to what was deleted or never there.
func TestDotsAreTheScoresOfASearch(t *testing.T) {
	const n, dim = 700, 40
	for _, exact := range []bool{false, true} {
		data := newClustered(7, dim, 9, 0.7)
		s, live := mustSet(t, dim, Options{ExactBelow: 100}), twin{}
		if exact {
			s.opt.Exact = live.exactly
		}
		vectors := data.take(n)
		for i, v := range vectors {
			live[ID(2*i)] = v
			if err := s.Add(ID(2*i), v); err != nil {
				t.Fatal(err)
			}
		}
		mustWait(t, s)
		s.Delete(10)
		delete(live, 10)
		q := data.next()
		want := map[ID]float32{}
		for _, h := range mustSearch(t, s, q, n, nil) {
			want[h.ID] = h.Score
		}
		for _, step := range []ID{1, 3, 500} {
			var ids []ID
			for id := ID(0); id < 2*n+9; id += step {
				ids = append(ids, id)
			}
			got := slices.Repeat([]float32{9}, len(ids))
			if err := s.Dots(context.Background(), q, ids, got); err != nil {
				t.Fatal(err)
			}
			for i, id := range ids {
				if score, ok := want[id]; ok && got[i] != score || !ok && !math.IsNaN(float64(got[i])) {
					t.Fatalf("exact %v: %d scores %v, a search says %v, %v", exact, id, got[i], score, ok)
				}
			}
		}
		if err := s.Dots(context.Background(), q[:dim-1], nil, nil); !errors.Is(err, ErrDimension) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Dots(ctx, q, []ID{0}, make([]float32, 1)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
