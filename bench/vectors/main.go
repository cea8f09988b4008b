// Command vectors measures the vector index alone on clustered unit vectors, all
// in one run: build rate, bytes a vector, recall@10 against queries a second,
// filtered searches, churn, saving and loading.
//
// What stands for truth is a scan of every vector in full precision. The recall
// guard is off, because it would hide what a bad graph finds. Full-precision
// vectors for the last step of a search lie in this program's memory, outside of
// the index, as they would in a sealed state.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mneme/bench/internal/proc"
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
	vectors, dims    []int
	clusters         int
	noise            float64
	queries, runs    int
	seed             uint64
	limit, roundTime time.Duration
	out              string
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
	var vectors, dims string
	fs := flag.NewFlagSet("vectors", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&vectors, "vectors", "10000,20000,100000", "numbers of vectors")
	fs.StringVar(&dims, "dim", "384", "dimensions; each with each number of vectors")
	fs.IntVar(&opt.clusters, "clusters", 0, "number of clusters; 0 = one for 100 vectors")
	fs.Float64Var(&opt.noise, "noise", 1, "length of the noise around a centre of length 1")
	fs.IntVar(&opt.queries, "queries", 500, "number of different queries")
	fs.IntVar(&opt.runs, "runs", 3, "runs over the queries; the median counts")
	fs.DurationVar(&opt.roundTime, "round", 500*time.Millisecond, "least time of a run")
	fs.Uint64Var(&opt.seed, "seed", 20, "seed of vectors and queries")
	fs.DurationVar(&opt.limit, "limit", time.Hour, "time after which a run that hangs is ended")
	fs.StringVar(&opt.out, "o", "", "write the tables to this file too")
	fs.BoolVar(&quick, "quick", false, "a twentieth of the vectors, fewer queries and runs")
	if err := fs.Parse(args); err != nil {
		return opt, err
	}
	var err error
	if opt.vectors, err = numbers(vectors); err == nil {
		opt.dims, err = numbers(dims)
	}
	if err != nil {
		return opt, err
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

// numbers reads a list of positive numbers with commas between.
func numbers(list string) ([]int, error) {
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", s)
		}
		out = append(out, n)
	}
	return out, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, opt.limit)
	defer cancel()
	machine := report.Machine()
	watched := proc.Watch()
	var tables []*report.Table
	for _, dim := range opt.dims {
		for _, n := range opt.vectors {
			table := report.NewTargets(fmt.Sprintf("Vector index, %d vectors of %d dimensions", n, dim))
			if err := measure(ctx, table, opt, n, dim); err != nil {
				return fmt.Errorf("%d vectors of %d dimensions: %w", n, dim, err)
			}
			tables = append(tables, table)
		}
	}
	last := tables[len(tables)-1]
	last.Note("seed %d, noise %s, %d queries, k = %d, median of %d runs; recall@%d against a scan in full precision; the recall guard is off",
		opt.seed, report.Number(opt.noise), opt.queries, k, opt.runs, k)
	if share, err := watched(); err == nil {
		last.Note("other processes of this machine used %.0f %% of its processor time meanwhile", 100*share.Others)
	}
	return report.Write(stdout, opt.out, machine, tables...)
}
