package vectors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/bench/search/internal/peer"
)

// sweep is the values of ef that a curve is made of.
var sweep = []int{10, 14, 20, 28, 40, 56, 80, 120, 200, 400, 800}

// enough is the recall beyond which a longer list is not tried.
const enough = 0.9995

// point of a curve.
type point struct {
	ef     int
	recall float64
	rate   float64 // queries a second, one thread
}

// result is what one index gave. A step that failed leaves its fields zero and
// its error in failed.
type result struct {
	index
	proc       *peer.Process
	build      float64 // vectors a second, one thread
	buildAll   float64 // and on all
	bytes      float64 // resident memory of a vector
	curve      []point
	rateAll    float64 // queries a second at the wanted recall, all threads
	load       float64 // seconds
	saved      float64 // bytes of the saved file a vector
	loadRecall float64
	filtered   []point // for each of filters
	churn      churned
	failed     map[string]error
}

// churned is an index half of whose vectors were replaced.
type churned struct {
	rate          float64 // replacements a second, all threads
	recall, fresh float64 // and of an index built from the result
	bytes         float64
}

// bench measures one set of vectors.
type bench struct {
	opt   Options
	data  *data
	truth []int32
	all   []*result
}

// Run measures n vectors of dim floats and returns the tables.
func Run(ctx context.Context, opt Options, n, dim int) ([]*report.Table, error) {
	opt.Progress("vectors %d x %d: draw", n, dim)
	d, err := newData(ctx, opt.Dir, opt, n, dim)
	if err != nil {
		return nil, fmt.Errorf("draw vectors: %w", err)
	}
	defer d.remove()
	b := &bench{opt: opt, data: d}
	if b.truth, err = b.nearest(ctx, d.base, "-", d.queries); err != nil {
		return nil, fmt.Errorf("find the true neighbours: %w", err)
	}
	for _, x := range opt.indexes(n, dim) {
		b.all = append(b.all, &result{index: x, failed: map[string]error{}})
	}
	defer b.stop()
	for _, step := range []struct {
		name string
		do   func(ctx context.Context) error
	}{{"build", b.build}, {"search", b.curves}, {"search on all threads", b.parallel}, {"filter", b.filters},
		{"save and load", b.saveLoad}, {"replace half", b.replaceHalf}} {
		opt.Progress("vectors %d x %d: %s", n, dim, step.name)
		if d.changed == 0 && (step.name == "filter" || step.name == "replace half") {
			continue // these are measured on vectors that can be drawn at will
		}
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return b.tables(), nil
}

// nearest finds the true neighbours of the first queries with the C++ program, or
// with our exact engine where that is missing.
func (b *bench) nearest(ctx context.Context, file, mask string, queries int) ([]int32, error) {
	d, out := b.data, filepath.Join(b.data.dir, "truth")
	if b.opt.Peers == "" {
		p, err := peer.Start(ctx, "truth", append(append([]string{}, b.opt.Own...), args("exact", d.dim)...))
		if err != nil {
			return nil, err
		}
		defer p.Stop()
		if _, err := p.Ask("build %s %d %d", file, d.n, b.opt.Threads); err != nil {
			return nil, err
		}
		if _, err := p.Ask("filter %s", mask); err != nil {
			return nil, err
		}
		if _, err := p.Ask("search %s %d %d %d %d 0 %s", d.asked, queries, K, K, b.opt.Threads, out); err != nil {
			return nil, err
		}
		return readRows(out)
	}
	p, err := peer.Start(ctx, "truth", append([]string{b.opt.Peers}, args("hnswlib", d.dim)...))
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	if _, err := p.Ask("truth %s %d %s %d %d %d %s %s", file, d.n, d.asked, queries, K, b.opt.Threads, out, mask); err != nil {
		return nil, err
	}
	return readRows(out)
}

// each runs do for every index that has not failed to build. An error of one
// index is noted under the step's name and does not stop the others.
func (b *bench) each(ctx context.Context, step string, do func(r *result) error) error {
	for _, r := range b.all {
		if r.failed["build"] != nil || r.failed[step] != nil {
			continue
		}
		if err := do(r); err != nil {
			r.failed[step] = err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// build builds each index on one thread, which is the one that is searched, and
// on all. Small ones are built several times, in turn.
func (b *bench) build(ctx context.Context) error {
	runs := 1
	if b.data.n <= b.opt.Small {
		runs = b.opt.Runs
	}
	one, all, size := map[*result][]float64{}, map[*result][]float64{}, map[*result][]float64{}
	for range runs {
		err := b.each(ctx, "build", func(r *result) error {
			p, rate, _, err := b.buildOnce(ctx, r, b.data.base, b.opt.Threads)
			if err != nil {
				return err
			}
			if err := p.Stop(); err != nil {
				return err
			}
			all[r] = append(all[r], rate)
			var bytes float64
			if p, rate, bytes, err = b.buildOnce(ctx, r, b.data.base, 1); err != nil {
				return err
			}
			one[r], size[r] = append(one[r], rate), append(size[r], bytes)
			if r.proc != nil {
				err = r.proc.Stop()
			}
			r.proc = p
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, r := range b.all {
		r.build, r.buildAll, r.bytes = stats.Median(one[r]), stats.Median(all[r]), stats.Median(size[r])
	}
	return nil
}

// buildOnce builds an index in a process of its own.
func (b *bench) buildOnce(ctx context.Context, r *result, file string, threads int) (p *peer.Process, rate, bytes float64, err error) {
	if p, err = peer.Start(ctx, r.name, r.command); err != nil {
		return nil, 0, 0, err
	}
	answer, err := p.Ask("build %s %d %d", file, b.data.n, threads)
	if err != nil {
		return nil, 0, 0, errors.Join(err, p.Stop())
	}
	n := float64(b.data.n)
	b.opt.Progress("  %s: %.1f s on %d", r.name, answer.Seconds, threads)
	return p, n / answer.Seconds, float64(answer.Bytes) / n, nil
}

// search asks the first queries and returns the rate and the recall against truth.
// The vectors in file are those that the index holds.
func (b *bench) search(p *peer.Process, ef, threads, queries int, truth []int32, file string) (rate, share float64, err error) {
	out := filepath.Join(b.data.dir, "found")
	answer, err := p.Ask("search %s %d %d %d %d %g %s", b.data.asked, queries, K, ef, threads, b.opt.Least.Seconds(), out)
	if err != nil {
		return 0, 0, err
	}
	found, err := readRows(out)
	if err != nil {
		return 0, 0, err
	}
	rows, err := mapFloats(file, b.data.n*b.data.dim)
	if err != nil {
		return 0, 0, err
	}
	defer rows.close()
	asked, err := mapFloats(b.data.asked, queries*b.data.dim)
	if err != nil {
		return 0, 0, err
	}
	defer asked.close()
	return float64(answer.Queries) / answer.Seconds, recall(found, truth, K, rows.floats, asked.floats, b.data.dim), nil
}

// median asks each index as often as runs says, in turn, and gives the medians
// to take. ef says what to ask an index with; 0 leaves it out.
func (b *bench) median(ctx context.Context, step string, threads int, truth []int32, ef func(*result) int, take func(r *result, p point)) error {
	rates, last := map[*result][]float64{}, map[*result]point{}
	for range b.opt.Runs {
		err := b.each(ctx, step, func(r *result) error {
			use := ef(r)
			if use == 0 {
				return nil
			}
			rate, share, err := b.search(r.proc, use, threads, b.data.queries, truth, b.data.base)
			if err != nil {
				return err
			}
			rates[r] = append(rates[r], rate)
			last[r] = point{ef: use, recall: share, rate: stats.Median(rates[r])}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, r := range b.all {
		if p, ok := last[r]; ok && r.failed[step] == nil {
			take(r, p)
		}
	}
	return nil
}

// flat reports whether a longer list finds no more: everything is found, or two
// longer lists found nothing that this one did not.
func flat(curve []point) bool {
	n := len(curve)
	if curve[n-1].recall >= enough {
		return true
	}
	return n >= 6 && curve[n-1].recall <= curve[n-3].recall
}

// curves walks up ef until an index finds no more.
func (b *bench) curves(ctx context.Context) error {
	for _, ef := range sweep {
		err := b.median(ctx, "search", 1, b.truth, func(r *result) int {
			if len(r.curve) > 0 && (r.fixed || flat(r.curve)) {
				return 0
			}
			return ef
		}, func(r *result, p point) { r.curve = append(r.curve, p) })
		if err != nil {
			return err
		}
	}
	return nil
}

// bracket returns the points of a curve around the wanted recall; the same one
// twice where the first has it already, ok false where none has.
func bracket(curve []point) (low, high point, ok bool) {
	for i, p := range curve {
		if p.recall >= wanted {
			return curve[max(i-1, 0)], p, true
		}
	}
	return low, high, false
}

// between is the rate at the wanted recall on the line from low to high.
func between(low, high point) float64 {
	if low.recall >= wanted || high.recall <= low.recall {
		return high.rate
	}
	return low.rate + (wanted-low.recall)/(high.recall-low.recall)*(high.rate-low.rate)
}

// parallel asks around the wanted recall on all threads.
func (b *bench) parallel(ctx context.Context) error {
	low, high := map[*result]point{}, map[*result]point{}
	for _, side := range []struct {
		of   map[*result]point
		pick func(low, high point) int
	}{{low, func(l, _ point) int { return l.ef }}, {high, func(_, h point) int { return h.ef }}} {
		err := b.median(ctx, "search on all threads", b.opt.Threads, b.truth, func(r *result) int {
			l, h, _ := bracket(r.curve)
			return side.pick(l, h)
		}, func(r *result, p point) { side.of[r] = p })
		if err != nil {
			return err
		}
	}
	for _, r := range b.all {
		r.rateAll = between(low[r], high[r])
	}
	return nil
}

// stop ends what still runs.
func (b *bench) stop() {
	for _, r := range b.all {
		if r.proc != nil {
			_ = r.proc.Stop() // its numbers are taken
		}
	}
}

// remove deletes the files of the run.
func (d *data) remove() {
	for _, path := range []string{d.base, d.asked, d.fresh, d.rows, d.mixed} {
		_ = os.Remove(path) // in a temporary folder
	}
}
