package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

const (
	// realTexts is how many real texts are looked for; a model of them writes
	// the rest.
	realTexts = 100_000
	// million is the size that the marks are for.
	million = 1_000_000
	// atOnce is the number of searches under way where not one after the other.
	atOnce = 4
	// questionWords is how long a question is, beside queries of 2 to 6 words.
	questionWords = 12
)

// asked is what searches took.
type asked struct {
	p50, p99 float64 // ms
	rate     float64 // a second
	empty    int
	degraded int // served without vectors or without text
}

func (a asked) String() string {
	s := fmt.Sprintf("%s / %s ms, %s/s", report.Number(a.p50), report.Number(a.p99), report.Number(a.rate))
	if a.empty > 0 {
		s += fmt.Sprintf(", %d found nothing", a.empty)
	}
	if a.degraded > 0 {
		s += fmt.Sprintf(", %d not hybrid", a.degraded)
	}
	return s
}

// grown is what a node of one size gave.
type grown struct {
	n                                   int
	load                                float64 // records a second
	fresh, idle, idleAll, busy, allBusy asked
	questions, phrased                  asked // of questionWords, one at a time, idle; phrased have operators
	quiet                               time.Duration
	still                               bool // not quiet when the patience was over
	memory, afterStart                  proc.Memory
	disk                                int64
	parts                               string
	stop, ready, first                  time.Duration
	restarted, settled                  asked
}

// growth fills nodes of several sizes through REST and shows what grows.
func (b *bench) growth(ctx context.Context) error {
	b.texts = b.texts.Grow(slices.Max(b.opt.sizes))
	var all []*grown
	for _, n := range b.opt.sizes {
		g, err := b.grow(ctx, min(n, len(b.texts.Texts)))
		if err != nil {
			return fmt.Errorf("%d records: %w", n, err)
		}
		all = append(all, g)
	}
	b.more = append(b.more, growthMarks(all[len(all)-1]), growthTable(all))
	return nil
}

// grow measures one node from empty to restarted, and removes it.
func (b *bench) grow(ctx context.Context, n int) (g *grown, err error) {
	g = &grown{n: n}
	dir := b.newDir()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	node, err := proc.Start(ctx, b.bin, dir)
	if err != nil {
		return nil, err
	}
	err = b.growFilled(ctx, g, node)
	began := time.Now()
	if err = errors.Join(err, node.Stop()); err != nil {
		return nil, err
	}
	g.stop = time.Since(began)
	if g.disk, g.parts, err = diskUse(dir); err != nil {
		return nil, err
	}
	return g, b.growRestarted(ctx, g, dir)
}

// growFilled fills the node and searches it.
func (b *bench) growFilled(ctx context.Context, g *grown, node *proc.Node) error {
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	b.say("%d records: load", g.n)
	began, told := time.Now(), g.n/10
	err = load.Talks(ctx, c, atOnce, g.n, load.BatchSize, func(i int) string {
		if g.n >= realTexts && i > 0 && i%told == 0 {
			b.say("%d records: %d sent after %.0f s", g.n, i, time.Since(began).Seconds())
		}
		return b.texts.Texts[i]
	})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	g.load = stats.PerSecond(g.n, time.Since(began))
	queries := b.texts.Queries(b.opt.searches)
	if len(queries) == 0 {
		return errors.New("the texts hold no words to search for")
	}
	if g.fresh, err = ask(ctx, c, queries[:min(100, len(queries))], 1); err != nil {
		return err
	}
	b.say("%d records: wait for the graph", g.n)
	g.quiet, err = node.Quiet(ctx, 0.03, b.opt.settle)
	if err != nil && !errors.Is(err, proc.ErrNoUsage) {
		return err
	}
	g.still = g.quiet >= b.opt.settle
	b.say("%d records: search", g.n)
	if g.idle, err = ask(ctx, c, queries, 1); err != nil {
		return err
	}
	if g.questions, err = ask(ctx, c, b.texts.Questions(b.opt.searches, questionWords, true), 1); err != nil {
		return err
	}
	if g.phrased, err = ask(ctx, c, b.texts.Questions(b.opt.searches, questionWords, false), 1); err != nil {
		return err
	}
	if g.idleAll, err = ask(ctx, c, queries, atOnce); err != nil {
		return err
	}
	if err := b.askBusy(ctx, c, queries, 1, &g.busy); err != nil {
		return err
	}
	if err := b.askBusy(ctx, c, queries, atOnce, &g.allBusy); err != nil {
		return err
	}
	g.memory, err = node.Memory()
	if errors.Is(err, proc.ErrNoUsage) {
		return nil
	}
	return err
}

// askBusy asks while 100 captures a second are written.
func (b *bench) askBusy(ctx context.Context, c *client.Client, queries []string, workers int, to *asked) error {
	_, _, err := b.whileWriting(ctx, c, func() (err error) {
		*to, err = ask(ctx, c, queries, workers)
		return err
	})
	return err
}

// growRestarted starts the node again and searches it at once.
func (b *bench) growRestarted(ctx context.Context, g *grown, dir string) error {
	b.say("%d records: restart", g.n)
	queries := b.texts.Queries(b.opt.searches)
	began := time.Now()
	return b.withNode(ctx, dir, func(node *proc.Node) error {
		g.ready = node.Ready
		c, done, err := load.NewClient(node.HTTP)
		if err != nil {
			return err
		}
		defer done()
		_, answer, err := load.Search(ctx, c, queries[0], memory.ModeHybrid)
		g.first = time.Since(began)
		if err != nil {
			return err
		}
		if len(answer.Results) == 0 {
			return errors.New("the first search after the restart found nothing")
		}
		if g.restarted, err = ask(ctx, c, queries[:min(100, len(queries))], 1); err != nil {
			return err
		}
		if _, err := node.Quiet(ctx, 0.03, b.opt.settle); err != nil && !errors.Is(err, proc.ErrNoUsage) {
			return err
		}
		if g.settled, err = ask(ctx, c, queries[:min(1000, len(queries))], 1); err != nil {
			return err
		}
		g.afterStart, err = node.Memory()
		if errors.Is(err, proc.ErrNoUsage) {
			return nil
		}
		return err
	})
}

// ask searches with each query once, so many at a time.
func ask(ctx context.Context, c *client.Client, queries []string, workers int) (asked, error) {
	took := make([]time.Duration, len(queries))
	answers := make([]memory.SearchResponse, len(queries))
	began := time.Now()
	err := load.Parallel(ctx, workers, len(queries), func(ctx context.Context, i int) (err error) {
		took[i], answers[i], err = load.Search(ctx, c, queries[i], memory.ModeHybrid)
		return err
	})
	span := time.Since(began)
	if err != nil {
		return asked{}, err
	}
	a := asked{p50: report.Millis(stats.Percentile(took, 50)), p99: report.Millis(stats.Percentile(took, 99)), rate: stats.PerSecond(len(queries), span)}
	for _, answer := range answers {
		if len(answer.Results) == 0 {
			a.empty++
		}
		if answer.Mode != memory.ModeHybrid {
			a.degraded++
		}
	}
	return a, nil
}

// diskUse is the bytes of the files below dir, and of its larger folders.
func diskUse(dir string) (total int64, parts string, err error) {
	below := map[string]int64{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		below[top] += info.Size()
		total += info.Size()
		return err
	})
	var names []string
	for name, size := range below {
		if size*20 >= total {
			names = append(names, fmt.Sprintf("%s %s", name, report.Number(float64(size)/megabyte)))
		}
	}
	slices.Sort(names)
	return total, strings.Join(names, ", "), err
}

// growthMarks compares the largest node with what is wanted of a million records.
func growthMarks(g *grown) *report.Table {
	t := report.NewTargets(fmt.Sprintf("Hybrid search through REST, %d records", g.n))
	p50, p99 := 2.0, 8.0 // of questions
	if g.n >= million {
		p50, p99 = 5, 20
	}
	t.AtMost(fmt.Sprintf("hybrid p50, questions of %d words, one after the other", questionWords), p50, g.questions.p50, "ms", "")
	t.AtMost(fmt.Sprintf("hybrid p99, questions of %d words, one after the other", questionWords), p99, g.questions.p99, "ms", "")
	t.Info("hybrid p99, such questions with quotes, -words or word*s", g.phrased.p99, "ms", fmt.Sprintf("p50 %s ms", report.Number(g.phrased.p50)))
	t.AtMost("hybrid p50, one after the other", 5, g.idle.p50, "ms", "")
	t.AtMost("hybrid p99, one after the other", 25, g.idle.p99, "ms", "")
	t.AtMost("hybrid p50 while 100/s are written", 5, g.busy.p50, "ms", "")
	t.AtMost("hybrid p99 while 100/s are written", 25, g.busy.p99, "ms", "")
	t.AtMost("resident memory", 3072, float64(g.memory.Resident)/megabyte, "MB", fmt.Sprintf("peak %s MB", report.Number(float64(g.memory.Peak)/megabyte)))
	if g.n < million {
		t.Note("the targets are those of %d records, but for the questions", million)
	}
	return t
}

// growthTable puts the sizes side by side.
func growthTable(all []*grown) *report.Table {
	t := &report.Table{Title: "A node as it grows, through REST", Header: []string{"what"}}
	for _, g := range all {
		t.Header = append(t.Header, fmt.Sprintf("%s records", report.Number(float64(g.n))))
	}
	mb := func(bytes int64) string { return report.Number(float64(bytes)/megabyte) + " MB" }
	seconds := func(d time.Duration) string { return report.Number(d.Seconds()) + " s" }
	for _, row := range []struct {
		what string
		of   func(g *grown) string
	}{
		{fmt.Sprintf("load, batches of %d, %d in flight", load.BatchSize, atOnce), func(g *grown) string { return report.Number(g.load) + " /s" }},
		{"hybrid right after the load", func(g *grown) string { return g.fresh.String() }},
		{"background work after the load", func(g *grown) string {
			if g.still {
				return "more than " + seconds(g.quiet)
			}
			return seconds(g.quiet)
		}},
		{"hybrid, idle, 1 at a time", func(g *grown) string { return g.idle.String() }},
		{fmt.Sprintf("hybrid, idle, questions of %d words, 1 at a time", questionWords), func(g *grown) string { return g.questions.String() }},
		{"hybrid, idle, such questions with quotes, -words or word*s", func(g *grown) string { return g.phrased.String() }},
		{fmt.Sprintf("hybrid, idle, %d at a time", atOnce), func(g *grown) string { return g.idleAll.String() }},
		{"hybrid, 100/s written, 1 at a time", func(g *grown) string { return g.busy.String() }},
		{fmt.Sprintf("hybrid, 100/s written, %d at a time", atOnce), func(g *grown) string { return g.allBusy.String() }},
		{"resident memory (anonymous, peak)", func(g *grown) string {
			return fmt.Sprintf("%s (%s, %s)", mb(g.memory.Resident), mb(g.memory.Anonymous), mb(g.memory.Peak))
		}},
		{"on disk (MB by folder)", func(g *grown) string { return fmt.Sprintf("%s (%s)", mb(g.disk), g.parts) }},
		{"on disk, bytes a record", func(g *grown) string { return report.Number(float64(g.disk) / float64(g.n)) }},
		{"stop", func(g *grown) string { return seconds(g.stop) }},
		{"ready after the restart", func(g *grown) string { return seconds(g.ready) }},
		{"first hybrid search answered after", func(g *grown) string { return seconds(g.first) }},
		{"hybrid right after the restart", func(g *grown) string { return g.restarted.String() }},
		{"hybrid later after the restart", func(g *grown) string { return g.settled.String() }},
		{"resident memory then (anonymous)", func(g *grown) string {
			return fmt.Sprintf("%s (%s)", mb(g.afterStart.Resident), mb(g.afterStart.Anonymous))
		}},
	} {
		cells := []string{row.what}
		for _, g := range all {
			cells = append(cells, row.of(g))
		}
		t.Rows = append(t.Rows, cells)
	}
	t.Note("hybrid: p50 / p99 at the client, searches a second; k = 10; queries of 2 to 6 words of one text; right after: the first 100 searches; records stand in conversations of %d", load.TalkSize)
	return t
}
