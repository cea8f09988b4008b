package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// oneByOne is how many captures are sent one after the other, to see how long one takes.
const oneByOne = 500

// ownLength is the length of texts that are taken as they are, in -lengths.
const ownLength = "own"

// parseLengths reads lengths; 0 stands for ownLength.
func parseLengths(list string) (out []int, err error) {
	for _, word := range strings.Split(list, ",") {
		n := []int{0}
		if strings.TrimSpace(word) != ownLength {
			if n, err = program.Numbers(word); err != nil {
				return nil, err
			}
		}
		out = append(out, n...)
	}
	return out, nil
}

// sized is what a node with so many records of so many bytes gave.
type sized struct {
	n, length    int // length: 0 is texts as they are
	bytes        int // of all texts
	load         float64
	p50, p99     float64 // ms, of one capture while nothing else is under way
	alone, four  asked
	memory       proc.Memory
	backup       int64
	backupTook   time.Duration
	ready, first time.Duration
	afterStart   proc.Memory
	disk         parted
}

// parted is the bytes of a data directory by what they are for.
type parted struct{ log, state, raft, vectors, rest int64 }

func (p parted) total() int64 { return p.log + p.state + p.raft + p.vectors + p.rest }

// size fills a node for each number of records and each length of their texts, and shows what
// one has to give it: what docs/operate/size.md holds.
func (b *bench) size(ctx context.Context) error {
	b.texts = b.texts.Grow(slices.Max(b.opt.sizes))
	var all []*sized
	for _, length := range b.opt.lengths {
		for _, n := range b.opt.sizes {
			s := &sized{n: min(n, len(b.texts.Texts)), length: length}
			if err := b.sizeOne(ctx, s); err != nil {
				return fmt.Errorf("%d records of %d bytes: %w", n, length, err)
			}
			all = append(all, s)
		}
	}
	b.more = append(b.more, sizeTable(all))
	return nil
}

func (b *bench) sizeOne(ctx context.Context, s *sized) (err error) {
	dir := b.newDir()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = b.withNode(ctx, dir, func(node *proc.Node) error { return b.sizeFilled(ctx, s, node) })
	if err != nil {
		return err
	}
	if s.disk, err = partedDisk(dir); err != nil {
		return err
	}
	began := time.Now()
	return b.withNode(ctx, dir, func(node *proc.Node) error {
		s.ready = node.Ready
		c, done, err := load.NewClient(node.HTTP)
		if err != nil {
			return err
		}
		defer done()
		if _, _, err = load.Search(ctx, c, b.texts.Queries(1)[0], memory.ModeHybrid); err != nil {
			return err
		}
		s.first = time.Since(began)
		if _, err := node.Quiet(ctx, 0.03, b.opt.settle); err != nil && !errors.Is(err, proc.ErrNoUsage) {
			return err
		}
		return memoryOf(node, &s.afterStart)
	})
}

// sizeFilled fills the node, searches it and has it write a backup of its log.
func (b *bench) sizeFilled(ctx context.Context, s *sized, node *proc.Node) error {
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	text := func(i int) string { return b.texts.Texts[i] }
	if s.length > 0 {
		text = func(i int) string { return b.texts.Sized(i, s.length) }
	}
	for i := range s.n {
		s.bytes += len(text(i))
	}
	b.say("%d records, %d bytes each: load", s.n, s.bytes/s.n)
	began := time.Now()
	if err := load.Talks(ctx, c, atOnce, s.n, load.BatchSize, text); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	s.load = stats.PerSecond(s.n, time.Since(began))
	if _, err := node.Quiet(ctx, 0.03, b.opt.settle); err != nil && !errors.Is(err, proc.ErrNoUsage) {
		return err
	}
	queries := b.texts.Queries(b.opt.searches)
	if len(queries) == 0 {
		return errors.New("the texts hold no words to search for")
	}
	if s.alone, err = ask(ctx, c, queries, 1); err != nil {
		return err
	}
	if s.four, err = ask(ctx, c, queries, atOnce); err != nil {
		return err
	}
	if err := memoryOf(node, &s.memory); err != nil {
		return err
	}
	began = time.Now()
	if s.backup, err = backupLog(ctx, c); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	s.backupTook = time.Since(began)
	var took []time.Duration // last, so that what was measured before has just the records that it names
	for i := range min(oneByOne, b.opt.searches) {
		began := time.Now()
		if err := load.Batch(ctx, c, []memory.Capture{{Agent: load.Agent, Text: text(i)}}); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	s.p50, s.p99 = report.Millis(stats.Percentile(took, 50)), report.Millis(stats.Percentile(took, 99))
	return nil
}

// backupLog is the size of a first backup's log. Its keys are a file of some hundred bytes.
func backupLog(ctx context.Context, c *client.Client) (int64, error) {
	op, err := c.Operator(ctx)
	if err != nil {
		return 0, err
	}
	r, err := op.Backups().Log(ctx, io.Discard, "", nil)
	return r.Bytes, err
}

// memoryOf reads the node's memory, where the system tells it.
func memoryOf(node *proc.Node, to *proc.Memory) (err error) {
	*to, err = node.Memory()
	if errors.Is(err, proc.ErrNoUsage) {
		return nil
	}
	return err
}

// partedDisk adds up the files of a data directory.
func partedDisk(dir string) (p parted, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		*p.of(filepath.ToSlash(rel)) += info.Size()
		return nil
	})
	return p, err
}

func (p *parted) of(path string) *int64 {
	names := strings.Split(path, "/")
	switch {
	case names[0] == "nats":
		return &p.log
	case names[0] != "shards" || len(names) < 3:
		return &p.rest
	case names[2] == "state":
		return &p.state
	case names[2] == "vectors":
		return &p.vectors
	case names[2] == "snapshots" || strings.HasPrefix(names[2], "raft"):
		return &p.raft
	}
	return &p.rest
}

// sizeTable has a column for each node.
func sizeTable(all []*sized) *report.Table {
	t := &report.Table{Title: "What a node takes", Header: []string{"records × bytes of text"}}
	for _, s := range all {
		t.Header = append(t.Header, fmt.Sprintf("%s × %s", report.Number(float64(s.n)), report.Number(float64(s.bytes/s.n))))
	}
	mb := func(bytes int64) string { return report.Number(float64(bytes) / megabyte) }
	each := func(bytes int64, s *sized) string { return report.Number(float64(bytes) / float64(s.n)) }
	for _, row := range []struct {
		what string
		of   func(s *sized) string
	}{
		{fmt.Sprintf("captures/s, batches of %d, %d in flight", load.BatchSize, atOnce), func(s *sized) string { return report.Number(s.load) }},
		{"one capture after the other, p50 / p99, ms", func(s *sized) string { return report.Number(s.p50) + " / " + report.Number(s.p99) }},
		{"searches/s, one after the other", func(s *sized) string { return report.Number(s.alone.rate) }},
		{"… p50 / p99, ms", func(s *sized) string { return report.Number(s.alone.p50) + " / " + report.Number(s.alone.p99) }},
		{fmt.Sprintf("searches/s, %d in flight", atOnce), func(s *sized) string { return report.Number(s.four.rate) }},
		{"… p50 / p99, ms", func(s *sized) string { return report.Number(s.four.p50) + " / " + report.Number(s.four.p99) }},
		{"resident memory (peak), MB", func(s *sized) string { return mb(s.memory.Resident) + " (" + mb(s.memory.Peak) + ")" }},
		{"… after a start, MB", func(s *sized) string { return mb(s.afterStart.Resident) }},
		{"disk, MB", func(s *sized) string { return mb(s.disk.total()) }},
		{"… log", func(s *sized) string { return mb(s.disk.log) }},
		{"… state, with the index of words", func(s *sized) string { return mb(s.disk.state) }},
		{"… graphs of vectors", func(s *sized) string { return mb(s.disk.vectors) }},
		{"… Raft's log and snapshots", func(s *sized) string { return mb(s.disk.raft) }},
		{"… bytes a record", func(s *sized) string { return each(s.disk.total(), s) }},
		{"first backup, MB", func(s *sized) string {
			return fmt.Sprintf("%s in %s s", mb(s.backup), report.Number(s.backupTook.Seconds()))
		}},
		{"… bytes a record", func(s *sized) string { return each(s.backup, s) }},
		{"ready after a start (first search), s", func(s *sized) string {
			return report.Number(s.ready.Seconds()) + " (" + report.Number(s.first.Seconds()) + ")"
		}},
	} {
		cells := []string{row.what}
		for _, s := range all {
			cells = append(cells, row.of(s))
		}
		t.Rows = append(t.Rows, cells)
	}
	t.Note("searches are hybrid, k = 10, queries of 2 to 6 words, nothing written meanwhile; records stand in conversations of %d; the disk was read after a clean stop", load.TalkSize)
	return t
}
