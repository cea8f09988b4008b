// Package cluster draws the vectors that benchmarks of indexes run on.
//
// Its job: unit vectors in clusters, the same for the same seed, in memory or in
// a file. Not its job: queries with known answers.
package cluster

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
)

// Source draws unit vectors around centres: a centre plus Gaussian noise of the
// given expected length, projected to the sphere. One goroutine uses it.
type Source struct {
	rng     *rand.Rand
	dim     int
	noise   float64
	centres [][]float32
}

// New makes a source of vectors of dim floats around that many centres.
func New(seed uint64, dim, clusters int, noise float64) *Source {
	c := &Source{rng: rand.New(rand.NewPCG(seed, 1)), dim: dim, noise: noise}
	for range clusters {
		c.centres = append(c.centres, unit(c.gauss(1)))
	}
	return c
}

// Take draws n vectors.
func (c *Source) Take(n int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = c.next()
	}
	return out
}

// Write draws n vectors into a file, one after the other as little-endian
// float32, and replaces what was there.
func (c *Source) Write(path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write vectors: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	row := make([]byte, 4*c.dim)
	for range n {
		for j, x := range c.next() {
			binary.LittleEndian.PutUint32(row[4*j:], math.Float32bits(x))
		}
		if _, err := w.Write(row); err != nil {
			return fmt.Errorf("write vectors: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write vectors: %w", err)
	}
	return nil
}

func (c *Source) next() []float32 {
	v := c.gauss(c.noise / math.Sqrt(float64(c.dim)))
	for j, x := range c.centres[c.rng.IntN(len(c.centres))] {
		v[j] += x
	}
	return unit(v)
}

func (c *Source) gauss(sigma float64) []float32 {
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
