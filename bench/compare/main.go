// Command compare measures two revisions of memnode against each other: the one
// that -base names, changed by -patch if that is given, and the working tree.
//
// Both are built, and every pair runs both, each on an empty folder of its own, one
// right after the other and in turns the first, so that what else the machine does
// falls on both. What counts is the median of the pairs' ratios and a bootstrap
// interval of it. The program fails where the working tree is slower, or larger,
// than the base by more than -tolerance with a certainty of 97.5 %.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"mneme/bench/internal/corpus"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
)

// timeLimit ends a run that hangs.
const timeLimit = 6 * time.Hour

type options struct {
	base      string
	patch     string
	pairs     int
	records   int
	requests  int
	searches  int
	tolerance float64
	seed      uint64
	dir       string
	output    program.Output
}

func main() { program.Main("compare", timeLimit, run) }

func parse(args []string, stderr io.Writer) (options, error) {
	var opt options
	fs := opt.output.Flags("compare", stderr)
	opt.output.JSON(fs)
	fs.StringVar(&opt.base, "base", "", "revision of git to compare the working tree with")
	fs.StringVar(&opt.patch, "patch", "", "patch that changes the base before it is built")
	fs.IntVar(&opt.pairs, "pairs", 10, "pairs of runs")
	fs.IntVar(&opt.records, "records", 20_000, "captures by REST in each run")
	fs.IntVar(&opt.requests, "requests", 5_000, "captures by NATS in each run")
	fs.IntVar(&opt.searches, "searches", 1_000, "searches of each mode, and reads by id, in each run")
	fs.Float64Var(&opt.tolerance, "tolerance", 0.05, "by how much the working tree may be worse")
	fs.Uint64Var(&opt.seed, "seed", 1, "seed of texts, queries and of the interval")
	fs.StringVar(&opt.dir, "dir", "", "where temporary folders go (default: the system's)")
	if err := program.Parse(fs, args); err != nil {
		return opt, err
	}
	if opt.base == "" {
		return opt, errors.New("-base REVISION is needed")
	}
	if opt.pairs < 2 || opt.records < 1 || opt.requests < 1 || opt.searches < 1 || opt.tolerance < 0 {
		return opt, errors.New("at least two pairs, and one of everything else, are needed")
	}
	return opt, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opt, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(opt.dir, "mneme-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	say := func(format string, a ...any) { fmt.Fprintf(stderr, format+"\n", a...) }
	texts, err := corpus.Load(ctx, corpus.Options{Count: opt.records, Seed: opt.seed})
	if err != nil {
		return err
	}
	say("texts: %s; building %s and the working tree", texts.From, opt.base)
	base, tree, err := buildBoth(ctx, opt.base, opt.patch, dir)
	if err != nil {
		return err
	}
	write := opt.output.Watch()
	pairs := make([]pair, opt.pairs)
	for i := range pairs {
		if err := pairs[i].measure(ctx, load{opt: opt, texts: texts, dir: filepath.Join(dir, fmt.Sprintf("pair-%d", i))}, base, tree, i%2 == 1); err != nil {
			return fmt.Errorf("pair %d: %w", i+1, err)
		}
		say("pair %d of %d", i+1, opt.pairs)
	}
	table, worse := compare(pairs, opt)
	table.Note("texts: %s; seed %d", texts.From, opt.seed)
	if err := write(stdout, table); err != nil {
		return err
	}
	if len(worse) > 0 {
		return fmt.Errorf("worse than %s by more than %.0f %%: %q", opt.base, 100*opt.tolerance, worse)
	}
	return nil
}

// pair holds what one run of each side measured.
type pair struct{ base, tree measured }

func (p *pair) measure(ctx context.Context, l load, base, tree programs, treeFirst bool) error {
	sides := []struct {
		programs programs
		into     *measured
		name     string
	}{{base, &p.base, "base"}, {tree, &p.tree, "tree"}}
	if treeFirst {
		sides[0], sides[1] = sides[1], sides[0]
	}
	for _, side := range sides {
		got, err := l.on(ctx, side.programs, side.name)
		if err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		*side.into = got
	}
	return nil
}

// compare makes the table, and names what is worse beyond the tolerance.
func compare(pairs []pair, opt options) (*report.Table, []string) {
	t := &report.Table{Title: fmt.Sprintf("The working tree beside %s, %d pairs of %d records", opt.base, len(pairs), opt.records),
		Header: []string{"what", "base", "tree", "tree ÷ base", "95 % interval", ""}}
	var worse []string
	for i, m := range metrics {
		var before, after, ratios []float64
		for _, p := range pairs {
			b, a := p.base[i], p.tree[i]
			if b <= 0 || a <= 0 {
				continue // the system does not tell
			}
			before, after, ratios = append(before, b), append(after, a), append(ratios, a/b)
		}
		if len(ratios) == 0 {
			continue
		}
		low, high := stats.Interval(ratios, opt.seed)
		verdict := ""
		if bad := low > 1+opt.tolerance; !m.higher && bad || m.higher && high < 1/(1+opt.tolerance) {
			verdict, worse = "**worse**", append(worse, m.what)
		}
		t.Rows = append(t.Rows, []string{m.what, report.Number(stats.Median(before)) + " " + m.unit, report.Number(stats.Median(after)) + " " + m.unit,
			fmt.Sprintf("%.3f", stats.Median(ratios)), fmt.Sprintf("%.3f to %.3f", low, high), verdict})
	}
	return t, worse
}
