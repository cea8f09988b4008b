package vectors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"mneme/bench/internal/stats"
	"mneme/bench/search/internal/peer"
)

// filters is the shares of the rows that a filtered search may return.
var filters = []float64{0.0001, 0.001, 0.01, 0.1, 0.5, 1}

// filterRecall is what a filtered search has to find before its rate counts;
// ef goes up until it does.
const filterRecall = 0.95

// filterQueries is how many of the queries are asked with filters: an index that
// looks in vain for what is allowed walks through all it holds.
const filterQueries = 100

// filters asks each index with masks from the narrowest to one that allows all.
func (b *bench) filters(ctx context.Context) error {
	const step = "filter"
	for _, share := range filters {
		mask, err := b.data.mask(b.opt.Seed, max(int(share*float64(b.data.n)), 1))
		if err != nil {
			return err
		}
		truth, err := b.nearest(ctx, b.data.base, mask, b.few())
		if err != nil {
			return err
		}
		err = b.each(ctx, step, func(r *result) error {
			if _, err := r.proc.Ask("filter %s", mask); err != nil {
				return err
			}
			p, err := b.reach(r, truth)
			if err != nil {
				return err
			}
			r.filtered = append(r.filtered, p)
			_, err = r.proc.Ask("filter -")
			return err
		})
		if err != nil {
			return err
		}
		if err := os.Remove(mask); err != nil {
			return err
		}
	}
	return nil
}

// few is the number of queries that are asked with filters.
func (b *bench) few() int { return min(filterQueries, b.data.queries) }

// reach raises ef until enough is found.
func (b *bench) reach(r *result, truth []int32) (p point, err error) {
	for _, ef := range []int{40, 80, 200, 400, 800} {
		p.ef = ef
		if p.rate, p.recall, err = b.search(r.proc, ef, 1, b.few(), truth, b.data.base); err != nil || p.recall >= filterRecall || r.fixed {
			break
		}
	}
	return p, err
}

// efOf is the ef that an index needs for the wanted recall, the largest tried
// where none is enough.
func efOf(r *result) int {
	if _, high, ok := bracket(r.curve); ok {
		return high.ef
	}
	if n := len(r.curve); n > 0 {
		return r.curve[n-1].ef
	}
	return sweep[len(sweep)-1]
}

// saveLoad saves each index and loads it in a new process.
func (b *bench) saveLoad(ctx context.Context) error {
	return b.each(ctx, "save and load", func(r *result) error {
		path := filepath.Join(b.data.dir, "saved")
		defer func() { _ = os.Remove(path) }()
		saved, err := r.proc.Ask("save %s", path)
		if err != nil {
			return err
		}
		var took []float64
		for range b.opt.Runs {
			seconds, share, err := b.loadOnce(ctx, r, path)
			if err != nil {
				return err
			}
			took, r.loadRecall = append(took, seconds), share
		}
		r.load, r.saved = stats.Median(took), float64(saved.Bytes)/float64(b.data.n)
		return nil
	})
}

// loadOnce loads a saved index and searches it, so that a load that leaves the
// work for later is seen.
func (b *bench) loadOnce(ctx context.Context, r *result, path string) (seconds, share float64, err error) {
	p, err := peer.Start(ctx, r.name, r.command)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if stopped := p.Stop(); err == nil {
			err = stopped
		}
	}()
	answer, err := p.Ask("load %s", path)
	if err != nil {
		return 0, 0, err
	}
	_, share, err = b.search(p, efOf(r), 1, b.data.queries, b.truth, b.data.base)
	return answer.Seconds, share, err
}

// replaceHalf replaces half of the vectors and compares the recall with that of
// an index built from what is there then.
func (b *bench) replaceHalf(ctx context.Context) error {
	if b.data.n > b.opt.ReplaceUpto {
		return nil
	}
	truth, err := b.nearest(ctx, b.data.mixed, "-", b.data.queries)
	if err != nil {
		return err
	}
	return b.each(ctx, "replace half", func(r *result) error {
		answer, err := r.proc.Ask("replace %s %s %d %d", b.data.fresh, b.data.rows, b.data.changed, b.opt.Threads)
		if err != nil {
			return err
		}
		r.churn.rate = float64(b.data.changed) / answer.Seconds
		b.opt.Progress("  %s: replaced in %.1f s", r.name, answer.Seconds)
		if _, r.churn.recall, err = b.search(r.proc, efOf(r), 1, b.data.queries, truth, b.data.mixed); err != nil {
			return err
		}
		fresh, _, _, err := b.buildOnce(ctx, r, b.data.mixed, b.opt.Threads)
		if err != nil {
			return fmt.Errorf("build what is there now: %w", err)
		}
		if _, r.churn.fresh, err = b.search(fresh, efOf(r), 1, b.data.queries, truth, b.data.mixed); err != nil {
			return err
		}
		return fresh.Stop()
	})
}
