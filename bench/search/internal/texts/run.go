package texts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
)

// K is the number of documents asked for.
const K = 10

// lengths of the queries, in terms.
var lengths = []int{1, 2, 3, 8}

// Options of Run.
type Options struct {
	Dir      string // an empty folder for files
	Threads  int    // all
	Queries  int    // different ones of each length
	Sample   int    // of each length, whose answers are compared with a scan
	Runs     int    // whose median counts
	Least    time.Duration
	Seed     uint64
	Progress func(format string, args ...any)
	// Peers is the program of the indexes in C and C++; Missing says why there is none.
	Peers   string
	Missing error
}

// patience ends a measurement of queries that take long, as a multiple of Least.
const patience = 10

// hit is a found document.
type hit struct {
	doc   uint32
	score float64
}

// engine is a text index in a folder.
type engine interface {
	// build fills an empty folder and closes the index.
	build(ctx context.Context, docs documents) error
	// open opens what build left; search then finds the k best documents that
	// hold one of the terms, best first.
	open() error
	search(ctx context.Context, terms []string, k int) ([]hit, error)
	close() error
}

// timed is an engine that measures its last call itself: what a pipe to another process
// costs is not the engine's.
type timed interface{ last() time.Duration }

// duration is how long the last call of an engine took, which began then.
func duration(e engine, began time.Time) time.Duration {
	if t, ok := e.(timed); ok {
		return t.last()
	}
	return time.Since(began)
}

// result is what one engine gave.
type result struct {
	name     string
	make     func(dir string) engine
	dir      string
	engine   engine
	one, all float64 // documents a second, on one thread and on all
	disk     int64
	rates    map[int]float64 // queries a second by length
	p50, p99 map[int]time.Duration
	answers  map[int][][]hit
	err      error
}

// bench measures one number of documents.
type bench struct {
	opt     Options
	docs    documents
	queries map[int][][]string
	all     []*result
}

// Run measures the texts and returns the tables.
func Run(ctx context.Context, opt Options, texts []string, from string) ([]*report.Table, error) {
	n := len(texts)
	opt.Progress("text %d: analyse", n)
	b := &bench{opt: opt, docs: analyse(texts), queries: map[int][][]string{}}
	for _, size := range lengths {
		b.queries[size] = b.docs.queries(opt.Seed, opt.Queries, size)
		if len(b.queries[size]) == 0 {
			return nil, fmt.Errorf("no document has %d different terms", size)
		}
	}
	for _, r := range []result{
		{name: "mneme", make: newOwn},
		{name: "bleve (scorch)", make: newBleve},
		{name: "SQLite FTS5, in Go", make: newFTS5},
		{name: "SQLite FTS5, in C", make: newOutside(opt.Peers, "fts5"), err: opt.Missing},
		{name: "Xapian", make: newOutside(opt.Peers, "xapian"), err: opt.Missing},
	} {
		r.rates, r.p50, r.p99, r.answers = map[int]float64{}, map[int]time.Duration{}, map[int]time.Duration{}, map[int][][]hit{}
		b.all = append(b.all, &r)
	}
	defer b.clear()
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	if err := b.ask(ctx); err != nil {
		return nil, err
	}
	opt.Progress("text %d: compare with a scan", n)
	identical := b.compare()
	return b.tables(from, identical), nil
}

// clear closes and removes what is left.
func (b *bench) clear() {
	for _, r := range b.all {
		if r.engine != nil && r.err == nil {
			_ = r.engine.close() // its numbers are taken
		}
		_ = os.RemoveAll(r.dir)
	}
}

// build builds each index on one thread and on all, and keeps the last.
func (b *bench) build(ctx context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, threads := range []int{1, b.opt.Threads} {
		runtime.GOMAXPROCS(threads)
		for i, r := range b.all {
			if r.err != nil {
				continue
			}
			dir := filepath.Join(b.opt.Dir, fmt.Sprintf("text-%d-%d", i, threads))
			took, err := r.fill(ctx, dir, b.docs)
			if err != nil {
				r.err = fmt.Errorf("build: %w", err)
				continue
			}
			rate := stats.PerSecond(len(b.docs.lines), took)
			if threads == 1 {
				r.one = rate
			}
			r.all = rate
			b.opt.Progress("text %d: %s built in %.1f s on %d", len(b.docs.lines), r.name, took.Seconds(), threads)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	for _, r := range b.all {
		if r.err == nil {
			r.disk, r.err = diskSize(r.dir)
		}
		if r.err == nil {
			r.err = r.engine.open()
		}
	}
	runtime.GC()
	return ctx.Err()
}

// fill builds the index in dir and removes the one before.
func (r *result) fill(ctx context.Context, dir string, docs documents) (time.Duration, error) {
	if err := errors.Join(os.RemoveAll(r.dir), os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return 0, err
	}
	r.dir, r.engine = dir, r.make(filepath.Join(dir, "index"))
	runtime.GC()
	began := time.Now()
	err := r.engine.build(ctx, docs)
	return duration(r.engine, began), err
}

func diskSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	return size, err
}

// ask runs the queries on one thread, in turns.
func (b *bench) ask(ctx context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, size := range lengths {
		b.opt.Progress("text %d: queries of %d terms", len(b.docs.lines), size)
		rates, took := map[*result][]float64{}, map[*result][]time.Duration{}
		for run := range b.opt.Runs {
			for _, r := range b.all {
				if r.err != nil {
					continue
				}
				each, answers, err := b.round(ctx, r, b.queries[size])
				if err != nil {
					r.err = fmt.Errorf("search: %w", err)
					continue
				}
				if run == 0 {
					r.answers[size] = answers
				}
				sum := time.Duration(0)
				for _, d := range each {
					sum += d
				}
				rates[r], took[r] = append(rates[r], stats.PerSecond(len(each), sum)), append(took[r], each...)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		for _, r := range b.all {
			r.rates[size] = stats.Median(rates[r])
			r.p50[size], r.p99[size] = stats.Percentile(took[r], 50), stats.Percentile(took[r], 99)
		}
	}
	return nil
}

// round asks the queries over and over until Least is over, all of them at least
// once unless that takes too long. answers are those of the first pass.
func (b *bench) round(ctx context.Context, r *result, queries [][]string) (took []time.Duration, answers [][]hit, err error) {
	began := time.Now()
	for i := 0; ; i++ {
		spent := time.Since(began)
		if i >= len(queries) && spent >= b.opt.Least || spent >= patience*b.opt.Least {
			return took, answers, nil
		}
		start := time.Now()
		hits, err := r.engine.search(ctx, queries[i%len(queries)], K)
		if err != nil {
			return nil, nil, err
		}
		took = append(took, duration(r.engine, start))
		if i < len(queries) {
			answers = append(answers, hits)
		}
	}
}

// compared counts answers of a length that are the scan's.
type compared struct{ identical, of int }

// compare scans for a sample of the queries.
func (b *bench) compare() map[int]compared {
	out := map[int]compared{}
	ours := b.all[0]
	if ours.err != nil {
		return out
	}
	t := newTwin(b.docs)
	for _, size := range lengths {
		var c compared
		for i := range min(b.opt.Sample, len(ours.answers[size])) {
			c.of++
			if same(ours.answers[size][i], t.search(b.queries[size][i], K)) {
				c.identical++
			}
		}
		out[size] = c
	}
	return out
}
