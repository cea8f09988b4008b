// Command node measures a whole node: durable captures through REST and NATS,
// beside raw JetStream publishing of the same frames; capture to searchable;
// search, memory, restart and rebuild with many records of real text; an empty
// node.
//
// It builds memnode and runs it as a process on temporary folders. With
// -profile the node runs inside this process instead and CPU profiles of its
// paths are written; the numbers are then no measurement.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
const timeLimit = 6 * time.Hour

// parts of a run, in order.
var parts = []string{"captures", "scale", "empty"}

// Parts that are measured only where they are named, for they take long: how searches grow,
// what a node takes, and what traces cost.
const (
	growth = "growth"
	size   = "size"
	traces = "traces"
)

type options struct {
	records  int           // of the large namespace
	sizes    []int         // of the namespaces that show growth, and what a node takes
	lengths  []int         // of the texts of the latter, in bytes; 0: their own
	captures int           // by REST, each run
	requests int           // by NATS, each run
	searches int           // under load
	paced    time.Duration // how long capture to searchable is measured
	idle     time.Duration // how long an empty node is watched
	settle   time.Duration // how long background work may take before searches
	runs     int
	seed     uint64
	only     []string
	sources  []string
	dir      string
	output   program.Output
	profile  string
}

func main() { program.Main("node", timeLimit, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	var only, sources, sizes, lengths string
	fs := opt.output.Flags("node", stderr)
	opt.output.JSON(fs)
	fs.IntVar(&opt.records, "records", 100_000, "records of the large namespace")
	fs.StringVar(&sizes, "sizes", "10000,100000", "records of the namespaces of the parts growth and size, separated by commas")
	fs.StringVar(&lengths, "lengths", ownLength+",1000", "bytes of each text of the part size, separated by commas; "+ownLength+" is texts as they are")
	fs.IntVar(&opt.captures, "captures", 20_000, "captures by REST in each run")
	fs.IntVar(&opt.requests, "requests", 10_000, "captures by NATS in each run")
	fs.IntVar(&opt.searches, "searches", 5_000, "searches while captures are written")
	fs.DurationVar(&opt.paced, "paced", 20*time.Second, "how long capture to searchable is measured")
	fs.DurationVar(&opt.idle, "idle", 30*time.Second, "how long an empty node is watched")
	fs.DurationVar(&opt.settle, "settle", 10*time.Minute, "how long to wait for background work before searching")
	fs.IntVar(&opt.runs, "runs", 3, "runs whose median counts")
	fs.Uint64Var(&opt.seed, "seed", 1, "seed of the order of texts and of queries")
	fs.StringVar(&only, "only", strings.Join(parts, ","), "parts to measure, separated by commas; "+growth+", "+size+" and "+traces+" are others")
	fs.StringVar(&sources, "texts", strings.Join(corpus.Names, ","), "sources of text in order of preference")
	fs.StringVar(&opt.dir, "dir", "", "where temporary folders go (default: the system's)")
	fs.StringVar(&opt.profile, "profile", "", "write CPU profiles into this folder instead of measuring")
	fs.BoolVar(&quick, "quick", false, "a twentieth of everything")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	if quick {
		opt.records, opt.captures, opt.requests, opt.searches = opt.records/20, opt.captures/20, opt.requests/20, opt.searches/20
		opt.paced, opt.idle = opt.paced/5, opt.idle/6
	}
	if opt.records < 1 || opt.captures < load.BatchSize || opt.requests < 1 || opt.searches < 1 || opt.runs < 1 || opt.paced <= 0 || opt.idle <= 0 {
		return opt, fmt.Errorf("sizes must be positive, and at least %d captures", load.BatchSize)
	}
	var err error
	if opt.sizes, err = program.Numbers(sizes); err != nil {
		return opt, fmt.Errorf("-sizes: %w", err)
	}
	if slices.Min(opt.sizes) < load.BatchSize {
		return opt, fmt.Errorf("-sizes: numbers of at least %d are wanted", load.BatchSize)
	}
	if opt.lengths, err = parseLengths(lengths); err != nil {
		return opt, fmt.Errorf("-lengths: %w", err)
	}
	opt.only, opt.sources = strings.Split(only, ","), strings.Split(sources, ",")
	for _, p := range opt.only {
		if !slices.Contains(parts, p) && p != growth && p != size && p != traces {
			return opt, fmt.Errorf("part %q is unknown; parts are %s, %s, %s, %s", p, strings.Join(parts, ", "), growth, size, traces)
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
	more  []*report.Table // of parts with tables of their own
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
	count := opt.records
	if len(opt.only) == 1 && (opt.only[0] == growth || opt.only[0] == size) {
		count = min(slices.Max(opt.sizes), realTexts)
	}
	if b.texts, err = corpus.Load(ctx, corpus.Options{Count: count, Seed: opt.seed, Sources: opt.sources}); err != nil {
		return err
	}
	b.say("texts: %s", b.texts.From)
	if opt.profile != "" {
		return b.profiles(ctx)
	}
	if b.bin, err = proc.Build(ctx, b.dir); err != nil {
		return err
	}
	write := opt.output.Watch() // after building, which is not ours to count
	b.table = report.NewTargets(fmt.Sprintf("A node, %d records", len(b.texts.Texts)))
	for _, part := range opt.only {
		measure := map[string]func(context.Context) error{"captures": b.captures, "scale": b.scale, "empty": b.empty, growth: b.growth, size: b.size, traces: b.traces}[part]
		b.say("part %s …", part)
		if err := measure(ctx); err != nil {
			if ctx.Err() != nil {
				return err
			}
			b.table.Failed("part "+part, "", err) // the other parts can still be measured
			b.say("part %s: %v", part, err)
		}
	}
	tables := b.more
	if len(b.table.Rows) > 0 {
		tables = append(tables, b.table)
	}
	last := tables[len(tables)-1]
	last.Note("texts: %s; seed %d; %d runs", b.texts.From, opt.seed, opt.runs)
	return write(stdout, tables...)
}

// newDir returns the path of a data directory that does not exist yet.
func (b *bench) newDir() string {
	b.dirs++
	return fmt.Sprintf("%s/data-%d", b.dir, b.dirs)
}

// withNode runs do with a node on a data directory and stops it afterwards.
func (b *bench) withNode(ctx context.Context, dir string, do func(*proc.Node) error) error {
	node, err := proc.Start(ctx, b.bin, dir)
	if err != nil {
		return err
	}
	return errors.Join(do(node), node.Stop())
}
