package vector

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// clustered draws unit vectors around clusters centres: a centre plus Gaussian
// noise of the given length, all of them projected to the sphere.
type clustered struct {
	rng     *rand.Rand
	dim     int
	noise   float64
	centres [][]float32
}

func newClustered(seed uint64, dim, clusters int, noise float64) *clustered {
	c := &clustered{rng: rand.New(rand.NewPCG(seed, 1)), dim: dim, noise: noise}
	for range clusters {
		c.centres = append(c.centres, unit(gauss(c.rng, dim, 1)))
	}
	return c
}

func (c *clustered) next() []float32 {
	v := gauss(c.rng, c.dim, c.noise/math.Sqrt(float64(c.dim)))
	for i, x := range c.centres[c.rng.IntN(len(c.centres))] {
		v[i] += x
	}
	return unit(v)
}

func (c *clustered) take(n int) [][]float32 {
	vs := make([][]float32, n)
	for i := range vs {
		vs[i] = c.next()
	}
	return vs
}

func gauss(rng *rand.Rand, dim int, sigma float64) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * sigma)
	}
	return v
}

func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

// twin is the dumb twin of a Set: a map and a sort.
type twin map[ID][]float32

func (t twin) search(q []float32, k int, f Filter) []Hit {
	var hits []Hit
	for id, v := range t {
		if f != nil && !f.Contains(id) {
			continue
		}
		var sum float64
		for i := range v {
			sum += float64(v[i]) * float64(q[i])
		}
		hits = append(hits, Hit{ID: id, Score: float32(sum)})
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return int(int64(a.ID) - int64(b.ID))
	})
	return hits[:min(k, len(hits))]
}

// recallOf is the share of want found in got, by score.
func recallOf(got, want []Hit) float64 {
	if len(want) == 0 {
		return 1
	}
	found := 0
	for _, h := range got {
		if h.Score >= want[len(want)-1].Score-1e-6 {
			found++
		}
	}
	return float64(found) / float64(len(want))
}

func mustSet(tb testing.TB, dim int, opt Options) *Set {
	tb.Helper()
	s, err := NewSet(dim, opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// fill adds vectors under IDs first, first+1, ….
func fill(tb testing.TB, s *Set, first ID, vs [][]float32) {
	tb.Helper()
	ids := make([]ID, len(vs))
	var flat []float32
	for i, v := range vs {
		ids[i] = first + ID(i)
		flat = append(flat, v...)
	}
	if err := s.AddBulk(ids, flat); err != nil {
		tb.Fatal(err)
	}
}

func mustWait(tb testing.TB, s *Set) {
	tb.Helper()
	if err := s.Wait(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

func mustSearch(tb testing.TB, s *Set, q []float32, k int, f Filter) []Hit {
	tb.Helper()
	hits, err := s.Search(context.Background(), q, k, f)
	if err != nil {
		tb.Fatal(err)
	}
	return hits
}
