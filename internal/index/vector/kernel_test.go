package vector

import (
	"math/rand/v2"
	"testing"
)

// randomRows fills a slab with bytes of every value.
func randomRows(rng *rand.Rand, rows, stride int) rowSource {
	s := newSlab[uint8](stride)
	s.grow(rows, 0)
	v := s.view()
	for i := range uint32(rows) {
		row := v.row(i)
		for j := range row {
			row[j] = uint8(rng.Uint32())
		}
	}
	return v
}

// Integer sums are exact: every kernel gives what the plain loop gives, for
// every number of rows, at every place among them and in chunks after the first.
func TestKernelsEqualTwin(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 2))
	for _, stride := range []int{64, 128, 192, 384, 448, 768, 1024, 4096, 65536} {
		rows := 5000
		if stride > 1024 {
			rows = 200
		}
		v := randomRows(rng, rows, stride)
		for _, k := range detectKernels() {
			for n := 1; n <= 21; n++ {
				ids, out := make([]uint32, n), make([]int32, (n+3)&^3)
				for i := range ids {
					ids[i] = rng.Uint32N(uint32(rows))
				}
				q := v.row(rng.Uint32N(uint32(rows)))
				k.gather(q, &v, ids, out)
				for i, id := range ids {
					var want int64
					for j, x := range v.row(id) {
						want += (int64(x) - zeroByte) * (int64(q[j]) - zeroByte)
					}
					if int64(out[i]) != want {
						t.Fatalf("seed %d, %s, stride %d: row %d of %d gives %d, want %d", seed, k.name, stride, i, n, out[i], want)
					}
				}
			}
		}
	}
}

// The largest sums that there can be do not overflow.
func TestKernelsAtTheBounds(t *testing.T) {
	s := newSlab[uint8](maxDim)
	s.grow(3, 0)
	v := s.view()
	for i := range v.row(1) {
		v.row(1)[i], v.row(2)[i] = 255, zeroByte
	}
	for _, k := range detectKernels() {
		out := make([]int32, 4)
		k.gather(v.row(0), &v, []uint32{0, 1, 2}, out)
		if out[0] != maxDim*128*128 || out[1] != -maxDim*128*127 || out[2] != 0 {
			t.Errorf("%s: %v", k.name, out)
		}
	}
}

func TestGatherNothing(t *testing.T) {
	for _, k := range detectKernels() {
		k.gather(nil, nil, nil, nil)
	}
}

// Scores, not only sums, are one and the same on every kernel.
func TestKernelsRankAlike(t *testing.T) {
	data := newClustered(7, 100, 20, 0.8)
	vs, queries := data.take(800), data.take(20)
	var want [][]Hit
	for i, k := range detectKernels() {
		s := mustSet(t, 100, Options{ExactBelow: -1, Params: Params{M: 8, EfConstruction: 40}})
		s.kern = k
		fill(t, s, 0, vs)
		mustWait(t, s)
		for j, q := range queries {
			got := mustSearch(t, s, q, 10, nil)
			if i == 0 {
				want = append(want, got)
				continue
			}
			for n, h := range got {
				if h != want[j][n] {
					t.Fatalf("%s: hit %d of query %d is %v, want %v", k.name, n, j, h, want[j][n])
				}
			}
		}
	}
}

func BenchmarkGather(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	v := randomRows(rng, 20000, 384)
	ids, out := make([]uint32, 16), make([]int32, 16)
	for _, k := range detectKernels() {
		for name, rows := range map[string]uint32{"near": 64, "far": 20000} {
			b.Run(k.name+"/"+name, func(b *testing.B) {
				for range b.N {
					for i := range ids {
						ids[i] = rng.Uint32N(rows)
					}
					k.gather(v.row(0), &v, ids, out)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/dot")
			})
		}
	}
}
