package main

import (
	"math"
	"math/rand/v2"
)

// clustered draws unit vectors around centres: a centre plus Gaussian noise of
// the given expected length, projected to the sphere.
type clustered struct {
	rng     *rand.Rand
	dim     int
	noise   float64
	centres [][]float32
}

func newClustered(seed uint64, dim, clusters int, noise float64) *clustered {
	c := &clustered{rng: rand.New(rand.NewPCG(seed, 1)), dim: dim, noise: noise}
	for range clusters {
		c.centres = append(c.centres, unit(c.gauss(1)))
	}
	return c
}

// take draws n vectors.
func (c *clustered) take(n int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		v := c.gauss(c.noise / math.Sqrt(float64(c.dim)))
		for j, x := range c.centres[c.rng.IntN(len(c.centres))] {
			v[j] += x
		}
		out[i] = unit(v)
	}
	return out
}

func (c *clustered) gauss(sigma float64) []float32 {
	v := make([]float32, c.dim)
	for i := range v {
		v[i] = float32(c.rng.NormFloat64() * sigma)
	}
	return v
}

// unit scales v to length 1, in place.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	length := math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return v
}
