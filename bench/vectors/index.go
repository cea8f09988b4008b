package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mneme/bench/internal/stats"
	"mneme/internal/index/vector"
)

// held is the vectors of one measurement, outside of any index.
type held struct {
	dim     int
	vectors [][]float32 // by ID
	small   []int8      // the same as bytes, if they came so
	queries [][]float32
}

// exactly is vector.Options.Exact.
func (c *held) exactly(_ context.Context, ids []vector.ID, dst []float32) error {
	for i, id := range ids {
		copy(dst[i*c.dim:(i+1)*c.dim], c.vectors[id])
	}
	return nil
}

func (c *held) options(engine vector.Engine) vector.Options {
	// ExactBelow: also a small set is to have a graph here.
	return vector.Options{Engine: engine, GuardRecall: -1, ExactBelow: -1, Exact: c.exactly}
}

// index returns a set of the vectors of ids, built, and the time that it took.
func (c *held) index(ctx context.Context, engine vector.Engine, ids []vector.ID) (*vector.Set, time.Duration, error) {
	set, err := vector.NewSet(c.dim, c.options(engine))
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := errors.Join(c.add(set, ids), set.Wait(ctx)); err != nil {
		return nil, 0, errors.Join(err, set.Close())
	}
	return set, time.Since(began), nil
}

// add adds the vectors of ids, some thousand at a time.
func (c *held) add(set *vector.Set, ids []vector.ID) error {
	const most = 4096
	flat := make([]float32, 0, min(len(ids), most)*c.dim)
	for part := range slices.Chunk(ids, most) {
		flat = flat[:0]
		for _, id := range part {
			flat = append(flat, c.vectors[id]...)
		}
		if err := set.AddBulk(part, flat); err != nil {
			return err
		}
	}
	return nil
}

// upto lists the IDs below n.
func upto(n int) []vector.ID {
	ids := make([]vector.ID, n)
	for i := range ids {
		ids[i] = vector.ID(i)
	}
	return ids
}

// onOne runs f with one processor and puts the number back.
func onOne(f func() error) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	return f()
}

// truth is what a scan finds. Bytes choose five times k, floats rank them.
func (c *held) truth(ctx context.Context, set *vector.Set, f vector.Filter) ([][]vector.Hit, error) {
	return c.truthOf(ctx, set, f, k)
}

// truthOf is truth for the nearest most.
func (c *held) truthOf(ctx context.Context, set *vector.Set, f vector.Filter, most int) ([][]vector.Hit, error) {
	out := make([][]vector.Hit, len(c.queries))
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for w := range errs {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(out); i = int(next.Add(1)) - 1 {
				hits, err := set.Search(ctx, c.queries[i], 5*most, f)
				if err != nil {
					errs[w] = err
					return
				}
				out[i] = hits[:min(most, len(hits))]
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// asked is what a set gave for all queries.
type asked struct {
	recall   float64 // of the nearest k
	all      float64 // of all that were asked for
	rate     float64 // queries a second, median of the runs
	p50, p99 time.Duration
}

// ask measures a set on the processors that there are.
func (c *held) ask(ctx context.Context, set *vector.Set, f vector.Filter, truth [][]vector.Hit, opt options) (asked, error) {
	return c.askFor(ctx, set, f, truth, opt, k)
}

// askFor is ask for so many at a time.
func (c *held) askFor(ctx context.Context, set *vector.Set, f vector.Filter, truth [][]vector.Hit, opt options, most int) (a asked, err error) {
	var each, all []float64
	for i, q := range c.queries { // also warms caches
		hits, err := set.Search(ctx, q, most, f)
		if err != nil {
			return a, err
		}
		if len(hits) != len(truth[i]) {
			return a, fmt.Errorf("%d hits, %d exist", len(hits), len(truth[i]))
		}
		if len(truth[i]) > 0 {
			each, all = append(each, recall(hits, truth[i], k)), append(all, recall(hits, truth[i], most))
		}
	}
	a.recall, a.all = stats.Mean(each), stats.Mean(all)
	runtime.GC()
	var rates []float64
	var took []time.Duration
	for range opt.runs {
		rate, times, err := c.round(ctx, set, f, opt.roundTime, most)
		if err != nil {
			return a, err
		}
		rates, took = append(rates, rate), append(took, times...)
	}
	a.rate, a.p50, a.p99 = stats.Median(rates), stats.Percentile(took, 50), stats.Percentile(took, 99)
	return a, nil
}

// round searches for at least a given time from as many goroutines as there are
// processors.
func (c *held) round(ctx context.Context, set *vector.Set, f vector.Filter, atLeast time.Duration, most int) (float64, []time.Duration, error) {
	workers := runtime.GOMAXPROCS(0)
	took := make([][]time.Duration, workers)
	errs := make([]error, workers)
	began := time.Now()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; ; i++ {
				start := time.Now()
				if start.Sub(began) > atLeast && len(took[w]) > 0 {
					return
				}
				if _, err := set.Search(ctx, c.queries[i%len(c.queries)], most, f); err != nil {
					errs[w] = err
					return
				}
				took[w] = append(took[w], time.Since(start))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	return stats.PerSecond(len(all), time.Since(began)), all, errors.Join(errs...)
}

// tie is how far apart two scores of one distance may lie.
const tie = 1e-6

// recall is the share of the true nearest "most" that were found. What is as near as the
// last of them is one of them.
func recall(hits, truth []vector.Hit, most int) float64 {
	most = min(most, len(truth))
	found := 0
	for _, h := range hits[:min(most, len(hits))] {
		if h.Score >= truth[most-1].Score-tie {
			found++
		}
	}
	return float64(found) / float64(most)
}

// every allows one ID in step.
type every struct{ n, step int }

func (e every) Contains(id vector.ID) bool { return int(id)%e.step == 0 && int(id) < e.n }
func (e every) Count() int                 { return (e.n + e.step - 1) / e.step }
func (e every) Each(yield func(vector.ID) bool) {
	for id := 0; id < e.n; id += e.step {
		if !yield(vector.ID(id)) {
			return
		}
	}
}
