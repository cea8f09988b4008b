package vector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestKernelsEqualTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range detectKernels() {
		t.Run(k.name, func(t *testing.T) {
			for n := 0; n <= 1100; n++ {
				if n > 130 && n%7 != 0 {
					continue
				}
				a, b := gauss(rng, n, 1), gauss(rng, n, 1)
				var want, size float64
				for i := range a {
					want += float64(a[i]) * float64(b[i])
					size += math.Abs(float64(a[i]) * float64(b[i]))
				}
				if got := float64(k.dot(a, b)); math.Abs(got-want) > 1e-6*size+1e-9 {
					t.Fatalf("dot of %d: got %v, want %v", n, got, want)
				}
			}
		})
	}
}

// A row's score must not depend on which rows it is computed with: graph, scan
// and tail are merged by score.
func TestGatherIsPlaceIndependent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const rows = 3000
	for _, dim := range []int{1, 15, 16, 17, 48, 100, 384} {
		s := newSlab[float32](padded(dim))
		s.grow(rows, 0)
		v := s.view()
		for i := range uint32(rows) {
			copy(v.row(i), gauss(rng, dim, 1))
		}
		q := alignedSlice[float32](padded(dim))
		copy(q, gauss(rng, dim, 1))
		var rankings [][]key
		for _, k := range detectKernels() {
			var ranking []key
			for n := 1; n <= 9; n++ {
				ids, out := make([]uint32, n), make([]float32, n)
				for i := range ids {
					ids[i] = rng.Uint32N(rows)
				}
				k.gather(q, &v, ids, out)
				for i, id := range ids {
					if alone := k.dot(q, v.row(id)); out[i] != alone {
						t.Fatalf("%s dim %d: row %d of %d gives %v, alone %v", k.name, dim, i, n, out[i], alone)
					}
				}
			}
			for slot := range uint32(300) {
				// Neighbours in the ranking differ by more than the last bits.
				ranking = append(ranking, makeKey(float32(math.Round(float64(k.dot(q, v.row(slot)))*1e3)/1e3), slot))
			}
			slices.Sort(ranking)
			rankings = append(rankings, ranking)
		}
		for i := range rankings {
			same := 0
			for j, k := range rankings[i] {
				if keySlot(k) == keySlot(rankings[0][j]) {
					same++
				}
			}
			if same < 295 { // a score on the edge of rounding may move
				t.Errorf("dim %d: kernels %d and 0 rank %d of 300 alike", dim, i, same)
			}
		}
	}
}

func TestGatherNothing(t *testing.T) {
	for _, k := range detectKernels() {
		k.gather(nil, nil, nil, nil)
	}
}

func BenchmarkGather(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := newSlab[float32](384)
	s.grow(64, 0)
	v := s.view()
	ids, out := make([]uint32, 64), make([]float32, 64)
	for i := range ids {
		ids[i] = uint32(i)
		copy(v.row(uint32(i)), unit(gauss(rng, 384, 1)))
	}
	for _, k := range detectKernels() {
		b.Run(k.name, func(b *testing.B) {
			for range b.N {
				k.gather(v.row(0), &v, ids, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/dot")
		})
	}
}
