// Command vectors measures the vector index alone: recall@10 and queries a
// second of its engines on clustered unit vectors, all in one run on one core.
//
// What stands for truth is the exact engine on the same vectors. The recall
// guard is off, because it would hide what a bad graph finds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"mneme/bench/internal/cluster"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/internal/index/vector"
)

// timeLimit ends a run that hangs.
const timeLimit = 15 * time.Minute

// Targets of the own engine.
const (
	wantRecall  = 0.98
	wantQueries = 10_000
	k           = 10
)

type options struct {
	vectors, dim, clusters int
	noise                  float64
	queries, runs          int
	seed                   uint64
	out                    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	fs := flag.NewFlagSet("vectors", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&opt.vectors, "vectors", 20_000, "number of vectors")
	fs.IntVar(&opt.dim, "dim", 384, "dimensions")
	fs.IntVar(&opt.clusters, "clusters", 200, "number of clusters")
	fs.Float64Var(&opt.noise, "noise", 1, "length of the noise around a centre of length 1")
	fs.IntVar(&opt.queries, "queries", 500, "number of different queries")
	fs.IntVar(&opt.runs, "runs", 5, "runs of at least a second over the queries; the median counts")
	fs.Uint64Var(&opt.seed, "seed", 20, "seed of vectors and queries")
	fs.StringVar(&opt.out, "o", "", "write the table to this file too")
	fs.BoolVar(&quick, "quick", false, "a twentieth of the vectors and clusters, fewer queries and runs")
	if err := fs.Parse(args); err != nil {
		return opt, err
	}
	if quick {
		opt.vectors, opt.clusters, opt.queries, opt.runs = opt.vectors/20, max(opt.clusters/20, 1), opt.queries/5, min(opt.runs, 3)
	}
	if opt.vectors < k || opt.dim < 1 || opt.clusters < 1 || opt.queries < 1 || opt.runs < 1 {
		return opt, fmt.Errorf("at least %d vectors and one of everything else are needed", k)
	}
	return opt, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	machine := report.Machine()
	watched := proc.Watch()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	data := cluster.New(opt.seed, opt.dim, opt.clusters, opt.noise)
	vectors, queries := data.Take(opt.vectors), data.Take(opt.queries)
	table := report.NewTargets(fmt.Sprintf("Vector index, %d vectors of %d dimensions, one core", opt.vectors, opt.dim))
	var truth [][]vector.Hit
	var exactRate float64
	for _, engine := range []vector.Engine{vector.EngineExact, vector.EngineMneme, vector.EngineCoder} {
		m, err := measure(ctx, engine, vectors, queries, truth, opt.runs)
		if err != nil {
			if engine != vector.EngineCoder {
				return fmt.Errorf("measure engine %s: %w", engine, err)
			}
			table.Failed("engine "+string(engine), "", err) // a peer that cannot be measured does not spoil the rest
			continue
		}
		if engine == vector.EngineExact {
			truth, exactRate = m.hits, m.rate
		}
		rows(table, engine, m, exactRate)
	}
	table.Note("%d clusters, noise %s, seed %d, %d queries, k = %d, median of %d runs; recall@%d against the exact engine; the recall guard is off",
		opt.clusters, report.Number(opt.noise), opt.seed, opt.queries, k, opt.runs, k)
	if share, err := watched(); err == nil {
		table.Note("other processes of this machine used %.0f %% of its processor time meanwhile", 100*share.Others)
	}
	return report.Write(stdout, opt.out, machine, table)
}

func rows(table *report.Table, engine vector.Engine, m measured, exactRate float64) {
	name := "engine " + string(engine)
	detail := fmt.Sprintf("p50 %.0f µs, p99 %.0f µs, %.1f times exact", m.p50.Seconds()*1e6, m.p99.Seconds()*1e6, m.rate/exactRate)
	if engine == vector.EngineMneme {
		table.AtLeast(name+": recall@10", wantRecall, m.recall, "", "")
		table.AtLeast(name+": queries", wantQueries, m.rate, "/s", detail)
	} else {
		table.Info(name+": recall@10", m.recall, "", "")
		table.Info(name+": queries", m.rate, "/s", detail)
	}
	if engine != vector.EngineExact {
		table.Info(name+": inserts", m.inserts, "/s", fmt.Sprintf("%.0f bytes a vector, kernel %s", m.stats.BytesPerVector, m.stats.Kernel))
	}
}

// measured is what one engine gave.
type measured struct {
	hits     [][]vector.Hit // for each query
	recall   float64        // 1 for the engine that stands for truth
	rate     float64        // queries a second, median of the runs
	p50, p99 time.Duration
	inserts  float64 // vectors a second, graph included
	stats    vector.Stats
}

// measure fills a set and searches it. truth nil means that this engine is it.
func measure(ctx context.Context, engine vector.Engine, vectors, queries [][]float32, truth [][]vector.Hit, runs int) (m measured, err error) {
	// ExactBelow: also a small set is to have a graph here.
	set, err := vector.NewSet(len(vectors[0]), vector.Options{Engine: engine, GuardRecall: -1, ExactBelow: -1})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	began := time.Now()
	for i, v := range vectors {
		if err := set.Add(vector.ID(i), v); err != nil {
			return m, err
		}
	}
	if err := set.Wait(ctx); err != nil {
		return m, err
	}
	m.inserts = stats.PerSecond(len(vectors), time.Since(began))
	m.stats = set.Stats()
	for _, q := range queries { // also warms caches
		hits, err := set.Search(ctx, q, k, nil)
		if err != nil {
			return m, err
		}
		m.hits = append(m.hits, hits)
	}
	if truth == nil {
		truth = m.hits
	}
	m.recall = recall(m.hits, truth)
	runtime.GC()
	return m, m.time(ctx, set, queries, runs)
}

// time measures runs of at least a second, in whole rounds over the queries.
func (m *measured) time(ctx context.Context, set *vector.Set, queries [][]float32, runs int) error {
	var rates []float64
	var took []time.Duration
	for range runs {
		n := 0
		began := time.Now()
		for time.Since(began) < time.Second {
			for _, q := range queries {
				start := time.Now()
				if _, err := set.Search(ctx, q, k, nil); err != nil {
					return err
				}
				took = append(took, time.Since(start))
			}
			n += len(queries)
		}
		rates = append(rates, stats.PerSecond(n, time.Since(began)))
	}
	m.rate = stats.Median(rates)
	m.p50, m.p99 = stats.Percentile(took, 50), stats.Percentile(took, 99)
	return nil
}

// recall is the mean share of the true hits that were found.
func recall(hits, truth [][]vector.Hit) float64 {
	var each []float64
	for i := range truth {
		each = append(each, stats.Recall(ids(hits[i]), ids(truth[i]), k))
	}
	return stats.Mean(each)
}

func ids(hits []vector.Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, fmt.Sprint(h.ID))
	}
	slices.Sort(out)
	return out
}
