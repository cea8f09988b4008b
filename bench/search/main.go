// Command search measures finding beside the engines that others use: vectors
// beside hnswlib, FAISS and coder/hnsw, text beside bleve, SQLite FTS5 and
// Xapian, and a whole node through REST.
//
// It is a module of its own, so that what it compares with is no dependency of
// the project. Numbers belong to a machine; what can be compared anywhere is
// the ratio to a peer of the same run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/points"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/bench/search/internal/vectors"
)

// timeLimit ends a run that hangs.
const timeLimit = 12 * time.Hour

// serveVectors is the first argument of a process that this program starts to
// run one of our vector engines.
const serveVectors = "serve-vectors"

// parts of a run, in order.
var parts = []string{"vectors", "text", "hybrid"}

type options struct {
	sizes       []int
	dims        []int
	only        []string
	of, texts   []string // kinds of vectors, and where texts come from
	indexes     []string // of vectors; empty: all
	runs        int
	queries     int
	searches    int           // through REST
	settle      time.Duration // how long a node may work after loading
	least       time.Duration
	threads     int
	seed        uint64
	debian      bool
	replaceUpto int
	dir         string
	output      program.Output
	progress    io.Writer
}

func main() {
	program.Main("search", timeLimit, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		return dispatch(ctx, args, os.Stdin, stdout, stderr)
	})
}

// dispatch serves or measures.
func dispatch(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == serveVectors {
		return vectors.Serve(ctx, args[1:], stdin, stdout)
	}
	return run(ctx, args, stdout, stderr)
}

func parse(args []string, stderr io.Writer) (options, error) {
	opt := options{progress: stderr}
	var sizes, dims, only, of, texts, indexes string
	fs := opt.output.Flags("search", stderr)
	opt.output.JSON(fs)
	fs.StringVar(&sizes, "sizes", "10000,100000", "numbers of vectors, documents and records")
	fs.StringVar(&dims, "dims", "384", "dimensions; all but the first are measured at 100000 vectors only, or the largest size below")
	fs.StringVar(&only, "only", strings.Join(parts, ","), "parts to run")
	fs.StringVar(&of, "of", strings.Join(points.Kinds, ","), "kinds of vectors; those of texts have 384 dimensions")
	fs.StringVar(&texts, "texts", strings.Join(corpus.Names, ","), "sources of text in order of preference, or paths of files and folders")
	fs.StringVar(&indexes, "indexes", "", "names of the vector indexes to measure, as in the tables; none means all")
	fs.IntVar(&opt.runs, "runs", 3, "rounds whose median counts")
	fs.IntVar(&opt.queries, "queries", 1000, "different queries")
	fs.IntVar(&opt.searches, "searches", 2000, "searches through REST")
	fs.DurationVar(&opt.settle, "settle", 20*time.Minute, "how long to wait for a node's background work after loading")
	fs.DurationVar(&opt.least, "least", 500*time.Millisecond, "least duration of one measurement")
	fs.IntVar(&opt.threads, "threads", runtime.NumCPU(), "all threads")
	fs.Uint64Var(&opt.seed, "seed", 20, "seed of everything that is drawn")
	fs.BoolVar(&opt.debian, "debian-kernels", false, "measure FAISS with the kernels of Debian's build too, at small sizes")
	fs.IntVar(&opt.replaceUpto, "replace-upto", 1_000_000, "largest number of vectors half of which are replaced; hnswlib takes long for it")
	fs.StringVar(&opt.dir, "dir", "", "folder for temporary files instead of the system's")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	var err error
	if opt.sizes, err = program.Numbers(sizes); err != nil {
		return opt, fmt.Errorf("-sizes: %w", err)
	}
	if opt.dims, err = program.Numbers(dims); err != nil {
		return opt, fmt.Errorf("-dims: %w", err)
	}
	if indexes != "" {
		opt.indexes = strings.Split(indexes, ",")
	}
	opt.of, opt.texts = strings.Split(of, ","), strings.Split(texts, ",")
	for _, kind := range opt.of {
		if !slices.Contains(points.Kinds, kind) {
			return opt, fmt.Errorf("-of %s: kinds are %s", kind, strings.Join(points.Kinds, ", "))
		}
	}
	opt.only = strings.Split(only, ",")
	for _, part := range opt.only {
		if !slices.Contains(parts, part) {
			return opt, fmt.Errorf("-only %s: parts are %s", part, strings.Join(parts, ", "))
		}
	}
	if opt.runs < 1 || opt.queries < 1 || opt.searches < 1 || opt.threads < 1 {
		return opt, errors.New("at least one run, query and thread are needed")
	}
	return opt, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(opt.dir, "mneme-bench-search-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	opt.dir = dir
	write := opt.output.Watch()
	var tables []*report.Table
	for _, part := range parts {
		if !slices.Contains(opt.only, part) {
			continue
		}
		did, err := map[string]func(context.Context, options) ([]*report.Table, error){
			"vectors": runVectors, "text": runText, "hybrid": runHybrid,
		}[part](ctx, opt)
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		tables = append(tables, did...)
	}
	return write(stdout, tables...)
}

// say prints a line of progress.
func (o options) say(format string, args ...any) {
	fmt.Fprintf(o.progress, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
