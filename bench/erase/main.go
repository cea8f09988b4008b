// Command erase measures erasing in one node that holds many memories of many
// subjects: how long it takes until one subject has left the files, and what it
// does to the searches of everybody else meanwhile. A deleted namespace goes
// through the same plan and is measured beside it.
//
// The node runs inside this process, because erasing a subject has no verb yet;
// searches go over HTTP, one after the other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/load"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/client"
	"mneme/internal/node"
)

// Targets.
const (
	mostSeconds = 30 // until one subject has left the files
	mostSlower  = 2  // times the p99 of searches alone
)

type options struct {
	records, subjects, runs int
	quiet                   time.Duration
	seed                    uint64
	dir                     string
	output                  program.Output
}

func main() { program.Main("erase", time.Hour, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	var quick bool
	fs := opt.output.Flags("erase", stderr)
	opt.output.JSON(fs)
	fs.IntVar(&opt.records, "records", 100_000, "memories")
	fs.IntVar(&opt.subjects, "subjects", 1_000, "subjects that they are about, in turn")
	fs.IntVar(&opt.runs, "runs", 3, "erasures of each kind; the median counts")
	fs.DurationVar(&opt.quiet, "quiet", 15*time.Second, "how long searches alone are measured before each erasure")
	fs.Uint64Var(&opt.seed, "seed", 1, "seed of the order of texts and of queries")
	fs.StringVar(&opt.dir, "dir", "", "where the temporary folder goes (default: the system's)")
	fs.BoolVar(&quick, "quick", false, "a twentieth of the memories, one run")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	if quick {
		opt.records, opt.subjects, opt.runs, opt.quiet = opt.records/20, opt.subjects/20, 1, opt.quiet/5
	}
	if opt.runs < 1 || opt.subjects < opt.runs || opt.records < 10*opt.subjects || opt.quiet <= 0 {
		return opt, errors.New("at least as many subjects as runs, and ten memories for each, are needed")
	}
	return opt, nil
}

// bench is one node and what is asked of it.
type bench struct {
	opt     options
	node    *node.Node
	client  *client.Client
	texts   *corpus.Corpus
	queries []string
	asked   int
	step    atomic.Pointer[string] // of the erasure that is under way
	table   *report.Table
	say     func(format string, args ...any)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	b := &bench{opt: opt, say: func(f string, a ...any) { fmt.Fprintf(stderr, f+"\n", a...) },
		table: report.NewTargets(fmt.Sprintf("Erasing, %d memories of %d subjects", opt.records, opt.subjects))}
	if b.texts, err = corpus.Load(ctx, corpus.Options{Count: opt.records, Seed: opt.seed}); err != nil {
		return err
	}
	b.queries = b.texts.Queries(5_000)
	dir, err := os.MkdirTemp(opt.dir, "mneme-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	write := opt.output.Watch()
	if b.node, err = node.Open(ctx, node.Config{DataDir: dir, HTTPAddr: "127.0.0.1:0", NATSAddr: "127.0.0.1:0"}); err != nil {
		return err
	}
	if err := errors.Join(b.measure(ctx), b.node.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	b.table.Note("%s; one search after the other over HTTP; medians of %d erasures, each with its own searches alone just before", b.texts.From, opt.runs)
	return write(stdout, b.table)
}

func (b *bench) measure(ctx context.Context) error {
	c, done, err := load.NewClient(b.node.HTTPAddr())
	if err != nil {
		return err
	}
	defer done()
	b.client = c
	step := none
	b.step.Store(&step)
	if err := b.fill(ctx); err != nil {
		return err
	}
	for _, kind := range []erasing{b.deletedNamespace(), b.erasedSubject()} {
		if err := b.erasures(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}
