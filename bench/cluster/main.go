// Command cluster measures three nodes on one machine: how long writes wait
// when a node is killed, stopped or stands still, captures a second, reads at a
// position, searches on a follower beside a single node, how soon a node is
// back after a wipe or a time away, and what an idle node costs.
//
// It builds memnode and runs it as processes on temporary folders. All nodes
// and the clients share the machine's cores and its disk, which a cluster's
// nodes do not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
)

// timeLimit ends a run that hangs.
const timeLimit = 2 * time.Hour

// nodes is how many a cluster here has.
const nodes = 3

// parts of a run, in order.
var parts = []string{"idle", "captures", "reads", "back", "faults"}

type options struct {
	records  int // of the large namespace
	captures int // by REST, each run
	requests int // by NATS, each run
	paced    time.Duration
	idle     time.Duration // how long empty nodes are watched
	away     time.Duration // how long a node is away
	reads    int           // of each kind
	runs     int
	faults   int // of each kind
	kinds    *regexp.Regexp
	seed     uint64
	only     []string
	sources  []string
	dir      string
	output   program.Output
}

func main() { program.Main("cluster", timeLimit, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	var only, sources, kinds string
	fs := opt.output.Flags("cluster", stderr)
	opt.output.JSON(fs)
	fs.IntVar(&opt.records, "records", 100_000, "records of the large namespace")
	fs.IntVar(&opt.captures, "captures", 20_000, "captures by REST in each run")
	fs.IntVar(&opt.requests, "requests", 10_000, "captures by NATS in each run")
	fs.DurationVar(&opt.paced, "paced", 20*time.Second, "how long 100 captures a second are measured")
	fs.DurationVar(&opt.idle, "idle", 30*time.Second, "how long empty nodes are watched")
	fs.DurationVar(&opt.away, "away", time.Minute, "how long a node is away while others write")
	fs.IntVar(&opt.reads, "reads", 5_000, "reads of each kind")
	fs.IntVar(&opt.runs, "runs", 3, "runs whose median counts")
	fs.IntVar(&opt.faults, "faults", 20, "faults of each kind")
	fs.StringVar(&kinds, "kinds", "", "only the kinds of faults whose names match this regular expression")
	fs.Uint64Var(&opt.seed, "seed", 1, "seed of the order of texts and of queries")
	fs.StringVar(&only, "only", strings.Join(parts, ","), "parts to measure, separated by commas")
	fs.StringVar(&sources, "texts", strings.Join(corpus.Names, ","), "sources of text in order of preference")
	fs.StringVar(&opt.dir, "dir", "", "where temporary folders go (default: the system's)")
	fs.BoolVar(&quick, "quick", false, "a twentieth of everything")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	if quick {
		opt.records, opt.captures, opt.requests, opt.reads = opt.records/20, opt.captures/20, opt.requests/20, opt.reads/20
		opt.paced, opt.idle, opt.away, opt.faults, opt.runs = opt.paced/10, opt.idle/6, opt.away/12, max(opt.faults/20, 1), 1
	}
	if min(opt.records, opt.captures) < load.BatchSize || min(opt.requests, opt.reads, opt.runs, opt.faults) < 1 || min(opt.paced, opt.idle, opt.away) <= 0 {
		return opt, fmt.Errorf("sizes must be positive, and at least %d captures", load.BatchSize)
	}
	var err error
	if opt.kinds, err = regexp.Compile(kinds); err != nil {
		return opt, fmt.Errorf("-kinds: %w", err)
	}
	opt.only, opt.sources = strings.Split(only, ","), strings.Split(sources, ",")
	for _, p := range opt.only {
		if !slices.Contains(parts, p) {
			return opt, fmt.Errorf("part %q is unknown; parts are %s", p, strings.Join(parts, ", "))
		}
	}
	return opt, nil
}

// bench is what the parts of a run share.
type bench struct {
	opt   options
	bin   string // memnode
	dir   string // temporary, removed at the end
	texts *corpus.Corpus
	table *report.Table
	say   func(format string, args ...any)
	dirs  int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	b := &bench{opt: opt, say: func(f string, a ...any) { fmt.Fprintf(stderr, f+"\n", a...) }}
	if b.dir, err = os.MkdirTemp(opt.dir, "mneme-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.texts, err = corpus.Load(ctx, corpus.Options{Count: opt.records, Seed: opt.seed, Sources: opt.sources}); err != nil {
		return err
	}
	b.say("texts: %s", b.texts.From)
	if b.bin, err = proc.Build(ctx, b.dir); err != nil {
		return err
	}
	write := opt.output.Watch() // after building, which is not ours to count
	b.table = report.NewTargets(fmt.Sprintf("%d nodes on one machine, %d records", nodes, opt.records))
	for _, part := range opt.only {
		measure := map[string]func(context.Context) error{"idle": b.idle, "captures": b.captures, "reads": b.reads, "back": b.back, "faults": b.faults}[part]
		b.say("part %s …", part)
		if err := measure(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			b.table.Failed("part "+part, "", err) // the other parts can still be measured
			b.say("part %s: %v", part, err)
		}
	}
	b.table.Note("texts: %s; seed %d; %d runs, %d faults of each kind", b.texts.From, opt.seed, opt.runs, opt.faults)
	return write(stdout, b.table)
}

// newDir returns the path of a directory that does not exist yet.
func (b *bench) newDir() string {
	b.dirs++
	return fmt.Sprintf("%s/data-%d", b.dir, b.dirs)
}
