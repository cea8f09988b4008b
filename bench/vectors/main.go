// Command vectors measures the vector index alone, all in one run. On clustered
// unit vectors: build rate, bytes a vector, recall@10 against queries a second,
// filtered searches, churn, saving and loading. On vectors as a model of language
// spreads them, and on those of real texts, recall@10 against queries a second,
// also as a node searches.
//
// What stands for truth is a scan of every vector in full precision; what is as near
// as the last of the true ones is right. The recall guard is off, because it would
// hide what a bad graph finds, but for the rows that say "as in a node". Full-precision
// vectors for the last step of a search lie in this program's memory, outside of
// the index, as they would in the state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/points"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
)

const (
	// Targets of the own engine.
	wantRecall  = 0.98
	wantQueries = 10_000
	mostBytes   = 1.3  // times what bytes and links take
	mostLoss    = 0.01 // of recall, under churn
	k           = 10
	// coderMost is the largest set that the engine of coder/hnsw is measured on.
	coderMost = 20_000
)

type options struct {
	vectors, dims []int
	of, texts     []string
	clusters      int
	noise         float64
	queries, runs int
	seed          uint64
	roundTime     time.Duration
	output        program.Output
}

// titles of the kinds of vectors.
var titles = map[string]string{points.Clusters: "vectors", points.Model: "vectors as a model spreads them", points.Texts: "vectors of texts"}

func main() { program.Main("vectors", time.Hour, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	var vectors, dims, of, texts string
	fs := opt.output.Flags("vectors", stderr)
	fs.StringVar(&vectors, "vectors", "10000,20000,100000", "numbers of vectors")
	fs.StringVar(&dims, "dim", "384", "dimensions; each with each number of vectors")
	fs.StringVar(&of, "of", strings.Join(points.Kinds, ","), "kinds of vectors; those of texts have 384 dimensions")
	fs.StringVar(&texts, "texts", strings.Join(corpus.Names, ","), "sources of text in order of preference, or paths of files and folders, whose paragraphs are texts")
	fs.IntVar(&opt.clusters, "clusters", 0, "number of clusters; 0 = one for 100 vectors")
	fs.Float64Var(&opt.noise, "noise", 1, "length of the noise around a centre of length 1")
	fs.IntVar(&opt.queries, "queries", 500, "number of different queries")
	fs.IntVar(&opt.runs, "runs", 3, "runs over the queries; the median counts")
	fs.DurationVar(&opt.roundTime, "round", 500*time.Millisecond, "least time of a run")
	fs.Uint64Var(&opt.seed, "seed", 20, "seed of vectors and queries")
	fs.BoolVar(&quick, "quick", false, "a twentieth of the vectors, fewer queries and runs")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	var err error
	if opt.vectors, err = program.Numbers(vectors); err == nil {
		opt.dims, err = program.Numbers(dims)
	}
	if err != nil {
		return opt, err
	}
	opt.of, opt.texts = strings.Split(of, ","), strings.Split(texts, ",")
	for _, kind := range opt.of {
		if !slices.Contains(points.Kinds, kind) {
			return opt, fmt.Errorf("-of %s: kinds are %s", kind, strings.Join(points.Kinds, ", "))
		}
	}
	if quick {
		for i := range opt.vectors {
			opt.vectors[i] /= 20
		}
		opt.queries, opt.runs, opt.roundTime = opt.queries/5, 1, opt.roundTime/10
	}
	for _, n := range opt.vectors {
		if n < 10*k {
			return opt, fmt.Errorf("at least %d vectors are needed", 10*k)
		}
	}
	if opt.queries < 1 || opt.runs < 1 || opt.clusters < 0 {
		return opt, errors.New("at least one query and one run are needed")
	}
	return opt, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	write := opt.output.Watch()
	var tables []*report.Table
	for _, kind := range opt.of {
		for _, dim := range opt.dims {
			for _, n := range opt.vectors {
				table := report.NewTargets(fmt.Sprintf("Vector index, %d %s of %d dimensions", n, titles[kind], dim))
				if err := measure(ctx, table, opt, kind, n, dim); errors.Is(err, points.ErrTooFew) {
					table.Failed("recall@10", "", err)
				} else if err != nil {
					return fmt.Errorf("%d %s of %d dimensions: %w", n, titles[kind], dim, err)
				}
				tables = append(tables, table)
			}
		}
	}
	last := tables[len(tables)-1]
	last.Note("seed %d, %d queries, median of %d runs; recall@%d against a scan in full precision, where what is as near as the last of the true ones is right; the recall guard is off but as in a node",
		opt.seed, opt.queries, opt.runs, k)
	return write(stdout, tables...)
}
