package vector

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// int8s draws vectors of bytes around centres, of any length, with the unit
// vectors that they stand for.
func int8s(data *clustered, rng *rand.Rand, n int) (flat []int8, units [][]float32) {
	for range n {
		v := data.next()
		size := 20 + 107*rng.Float64()
		unitOf := make([]float32, len(v))
		for i, x := range v {
			b := int8(math.Round(float64(x) * size))
			flat, unitOf[i] = append(flat, b), float32(b)
		}
		units = append(units, unit(unitOf))
	}
	return flat, units
}

// Vectors that are bytes already score as if nothing had been rounded, and are
// never asked for; floats may stand among them.
func TestInt8VectorsAreExact(t *testing.T) {
	const n, dim = 1500, 48
	data, rng := newClustered(41, dim, 30, 0.8), rand.New(rand.NewPCG(41, 41))
	flat, units := int8s(data, rng, n)
	live := twin{}
	s := mustSet(t, dim, Options{ExactBelow: 500, Exact: func(context.Context, []ID, []float32) error {
		return errors.New("asked for")
	}})
	ids := make([]ID, n-1)
	for i, v := range units {
		live[ID(i)] = v
		if i > 0 {
			ids[i-1] = ID(i)
		}
	}
	if err := errors.Join(s.AddBulkInt8([]ID{0}, flat[:dim]), s.AddBulkInt8(ids, flat[dim:])); err != nil {
		t.Fatal(err)
	}
	for _, built := range []bool{false, true} {
		if built {
			mustWait(t, s)
		}
		recall := 0.0
		for range 50 {
			q := data.next()
			recall += checkScores(t, live, q, 10, nil, mustSearch(t, s, q, 10, nil), 1e-6) / 50
		}
		if recall < 0.97 {
			t.Errorf("built %v: recall %.3f", built, recall)
		}
	}
	s.opt.Exact = live.exactly
	fill(t, s, n, data.take(10))
	for i := ID(n); i < n+10; i++ {
		live[i] = nil
	}
	if len(mustSearch(t, s, data.next(), 20, nil)) != 20 {
		t.Error("too few of both kinds")
	}
	for _, err := range []error{s.AddBulkInt8([]ID{n}, flat[:dim]), s.AddBulkInt8([]ID{n + 20, n + 20}, flat[:2*dim])} {
		if !errors.Is(err, ErrOrder) {
			t.Error(err)
		}
	}
	if err := s.AddBulkInt8([]ID{n + 30}, flat[:dim-1]); !errors.Is(err, ErrDimension) {
		t.Error(err)
	}
}

// With full-precision vectors a search finds what a scan of floats finds.
func TestExactScores(t *testing.T) {
	const n, dim = 1200, 96
	data := newClustered(42, dim, 40, 1)
	vs := data.take(n)
	live := twin{}
	for i, v := range vs {
		live[ID(i)] = v
	}
	most := 0
	var fail error
	lost := map[ID]bool{}
	s := mustSet(t, dim, Options{ExactBelow: 500, Exact: func(ctx context.Context, ids []ID, dst []float32) error {
		most = max(most, len(ids))
		err := live.exactly(ctx, ids, dst)
		for i, id := range ids {
			if lost[id] {
				dst[i*dim] = float32(math.NaN())
			}
		}
		return errors.Join(err, fail)
	}})
	fill(t, s, 0, vs)
	mustWait(t, s)
	recall := map[int]float64{}
	for range 40 {
		q := data.next()
		for _, k := range []int{1, 10, 200} {
			recall[k] += checkScores(t, live, q, k, nil, mustSearch(t, s, q, k, nil), exactError) / 40
		}
	}
	if recall[1] < 0.95 || recall[10] < 0.97 || recall[200] < 0.97 {
		t.Errorf("recall %v", recall)
	}
	if most > 200+exactMost {
		t.Errorf("%d vectors asked for", most)
	}
	// A vector that is gone keeps the score of its bytes, and its place.
	q := vs[5]
	lost[5] = true
	if hits := mustSearch(t, s, q, 3, nil); hits[0].ID != 5 || math.Abs(float64(hits[0].Score-1)) > 0.001 {
		t.Errorf("hits %v", hits)
	}
	fail = errors.New("disk")
	if _, err := s.Search(context.Background(), q, 3, nil); !errors.Is(err, fail) {
		t.Errorf("error %v", err)
	}
}

func TestSetEfSearch(t *testing.T) {
	const n, dim = 2000, 64
	data := newClustered(43, dim, 1, 50)
	vs, queries := data.take(n), data.take(60)
	live := twin{}
	for i, v := range vs {
		live[ID(i)] = v
	}
	s := mustSet(t, dim, Options{ExactBelow: 500, GuardRecall: -1, Exact: live.exactly, Params: Params{M: 8, EfConstruction: 60}})
	fill(t, s, 0, vs)
	mustWait(t, s)
	var recall []float64
	for _, ef := range []int{1, 400} {
		if err := s.SetEfSearch(ef); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, q := range queries {
			sum += checkScores(t, live, q, 10, nil, mustSearch(t, s, q, 10, nil), exactError)
		}
		recall = append(recall, sum/float64(len(queries)))
	}
	if recall[0] > 0.9 || recall[1] < 0.95 {
		t.Errorf("recall with ef 1 and 400: %v", recall)
	}
	for _, ef := range []int{0, -1, maxEf + 1} {
		if err := s.SetEfSearch(ef); !errors.Is(err, ErrOptions) {
			t.Errorf("ef %d: %v", ef, err)
		}
	}
	if _, err := NewSet(4, Options{BuildWorkers: -1}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}
