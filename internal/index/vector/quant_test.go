package vector

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestQuantise(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dim := 1 + rng.IntN(200)
		vec := gauss(rng, dim, math.Pow(10, float64(rng.IntN(60)-30)))
		row := make([]uint8, padded(dim))
		scale := quantise(row, vec)
		back := make([]float32, dim)
		dequantise(back, row, scale)
		for i, x := range vec {
			if math.Abs(float64(back[i]-x)) > 0.75*float64(scale) {
				t.Fatalf("seed %d: component %d is %v, was %v, step %v", seed, i, back[i], x, scale)
			}
		}
		for _, b := range row[dim:] {
			if b != zeroByte {
				t.Fatalf("seed %d: padding %d", seed, b)
			}
		}
		fine, finer := make([]uint8, len(row)), make([]uint8, len(row))
		fineQuery(fine, finer, row, scale, vec)
		for i, x := range vec {
			at := func(b []uint8) float64 { return float64(int(b[i]) - zeroByte) }
			full := float64(scale) * (at(row) + at(fine)/fineSteps + at(finer)/fineSteps/fineSteps)
			if math.Abs(full-float64(x)) > 4e-5*float64(scale) {
				t.Fatalf("seed %d: component %d with all parts %v, was %v", seed, i, full, x)
			}
		}
	}
	row := make([]uint8, 64)
	for _, vec := range [][]float32{nil, {0, 0}, {1e-40, -1e-38}} {
		if scale := quantise(row, vec); scale != 0 || row[0] != zeroByte || row[63] != zeroByte {
			t.Errorf("%v: scale %v", vec, scale)
		}
	}
}

// Bytes come out as they went in, of length 1, also if they come as floats.
func TestQuantiseInt8(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	vec, floats := make([]int8, 100), make([]float32, 100)
	for i := range vec {
		vec[i] = int8(rng.IntN(256) - 128)
		floats[i] = float32(vec[i])
	}
	vec[7], floats[7] = -128, -128
	row := make([]uint8, 128)
	scale := quantiseInt8(row, vec)
	back := make([]float32, 100)
	dequantise(back, row, scale)
	var sum float64
	for i, x := range back {
		sum += float64(x) * float64(x)
		if int8(row[i]-zeroByte) != vec[i] {
			t.Fatalf("component %d", i)
		}
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("length² %v", sum)
	}
	if quantiseInt8(row, make([]int8, 100)) != 0 {
		t.Error("zero has a scale")
	}
}
