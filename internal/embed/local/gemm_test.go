package local

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// kernelSets are all that this processor can run.
func kernelSets() map[string]kernelSet {
	best := pickKernels()
	return map[string]kernelSet{"go": {small: kernelGo}, "small": {small: best.small}, "best": best}
}

// TestMultiply holds each kernel to sums in float64.
func TestMultiply(t *testing.T) {
	for name, set := range kernelSets() {
		t.Run(name, func(t *testing.T) {
			seed := uint64(7)
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 60 {
				k, n, rows := 1+rng.IntN(70), 1+rng.IntN(50), 1+rng.IntN(21)
				lda, ldc := k+rng.IntN(3), panels(n)*panel+rng.IntN(3)
				weights, bias, a := randomNumbers(rng, n*k), randomNumbers(rng, n), randomNumbers(rng, padRows(rows)*lda)
				c := make([]float32, padRows(rows)*ldc)
				multiply(set, pack(weights, bias, k, n), a, lda, c, ldc, rows, make([]float32, 2*rowStep*panel))
				for i := range rows {
					for j := range n {
						want := float64(bias[j])
						for l := range k {
							want += float64(a[i*lda+l]) * float64(weights[j*k+l])
						}
						if got := float64(c[i*ldc+j]); math.Abs(got-want) > 1e-4 {
							t.Fatalf("seed %d: %d×%d×%d at %d,%d: %v, want %v", seed, rows, k, n, i, j, got, want)
						}
					}
				}
			}
		})
	}
}

func randomNumbers(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(rng.NormFloat64())
	}
	return out
}

// TestRowsDoNotDependOnRows: the same row gives the same bits in any batch.
func TestRowsDoNotDependOnRows(t *testing.T) {
	for name, set := range kernelSets() {
		if name == "small" {
			continue
		}
		rng := rand.New(rand.NewPCG(3, 1))
		const k, n, rows = 48, 40, 23
		m := pack(randomNumbers(rng, n*k), randomNumbers(rng, n), k, n)
		a, edge := randomNumbers(rng, padRows(rows)*k), make([]float32, 2*rowStep*panel)
		all := make([]float32, padRows(rows)*n)
		multiply(set, m, a, k, all, n, rows, edge)
		for i := range rows {
			one := make([]float32, rowStep*n)
			alone := make([]float32, rowStep*k)
			copy(alone, a[i*k:(i+1)*k])
			multiply(set, m, alone, k, one, n, 1, edge)
			for j := range n {
				if one[j] != all[i*n+j] {
					t.Fatalf("%s: row %d column %d is %v alone and %v among others", name, i, j, one[j], all[i*n+j])
				}
			}
		}
	}
}

func BenchmarkMultiply(b *testing.B) {
	for name, set := range kernelSets() {
		for _, rows := range []int{4, 16, 128} {
			b.Run(fmt.Sprintf("%s/%d rows", name, rows), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 1))
				const k, n = 384, 1536
				m := pack(randomNumbers(rng, n*k), nil, k, n)
				a, c, edge := randomNumbers(rng, rows*k), make([]float32, rows*n), make([]float32, 2*rowStep*panel)
				for b.Loop() {
					multiply(set, m, a, k, c, n, rows, edge)
				}
				b.ReportMetric(2*float64(rows*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
