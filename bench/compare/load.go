package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mneme/bench/internal/corpus"
	send "mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// metric is a number of each run. Where more is better, higher is set.
type metric struct {
	what, unit string
	higher     bool
}

// metrics name the values of measured, in order. Processor time moves less than
// the clock on a machine that does other work; it has a resolution of 10 ms.
var metrics = []metric{
	{"captures by REST, batches of 100, 4 in flight", "/s", true},
	{"… processor time of the node", "ms/1,000", false},
	{"captures by NATS request, 64 in flight", "/s", true},
	{"… processor time of the node", "ms/1,000", false},
	{"text search, p50", "ms", false},
	{"… processor time of the node", "ms/1,000", false},
	{"hybrid search, p50", "ms", false},
	{"… processor time of the node", "ms/1,000", false},
	{"read by id, p50", "ms", false},
	{"… processor time of the node", "ms/1,000", false},
	{"resident memory", "MB", false},
	{"state on disk, after a stop", "MB", false},
	{"ready after a restart", "s", false},
	{"rebuild, with the command's start", "events/s", true},
}

// measured holds a value for each of metrics; 0 where it could not be told.
type measured []float64

// How long a node may work on after its load.
const settle = 5 * time.Minute

// load is what each run does.
type load struct {
	opt   options
	texts *corpus.Corpus
	dir   string

	node *proc.Node
	got  measured
}

// on runs the load on a new node of a side and removes its folder.
func (l load) on(ctx context.Context, p programs, side string) (_ measured, err error) {
	dir := filepath.Join(l.dir, side)
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if l.node, err = proc.Start(ctx, p.memnode, dir); err != nil {
		return nil, err
	}
	if err := errors.Join(l.filled(ctx), l.node.Stop()); err != nil {
		return nil, err
	}
	size, err := bytesBelow(filepath.Join(dir, "shards"))
	if err != nil {
		return nil, err
	}
	if l.node, err = proc.Start(ctx, p.memnode, dir); err != nil {
		return nil, err
	}
	l.got = append(l.got, float64(size)/(1<<20), l.node.Ready.Seconds())
	began := time.Now()
	out, err := exec.CommandContext(ctx, p.memctl, "rebuild", "--addr", l.node.HTTP, "--json").CombinedOutput()
	l.got = append(l.got, stats.PerSecond(l.opt.records+l.opt.requests, time.Since(began)))
	if err != nil {
		err = fmt.Errorf("rebuild: %w\n%s", err, out)
	}
	return l.got, errors.Join(err, l.node.Stop())
}

// filled captures, searches and reads.
func (l *load) filled(ctx context.Context) error {
	c, done, err := send.NewClient(l.node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	ids, err := warm(ctx, c)
	if err != nil {
		return err
	}
	if err := l.rate(l.opt.records, func() error {
		return send.Batches(ctx, c, 4, l.opt.records, send.BatchSize, func(i int) string { return l.texts.Texts[i%len(l.texts.Texts)] })
	}); err != nil {
		return err
	}
	if err := l.rate(l.opt.requests, func() error { return send.Requests(ctx, l.node.NATS, l.texts, 0, l.opt.requests) }); err != nil {
		return err
	}
	if _, err := l.node.Quiet(ctx, 0.03, settle); err != nil && !errors.Is(err, proc.ErrNoUsage) {
		return err
	}
	queries := l.texts.Queries(l.opt.searches)
	for _, mode := range []memory.Mode{memory.ModeText, memory.ModeHybrid} {
		if err := l.latency(len(queries), func(i int) error {
			_, _, err := send.Search(ctx, c, queries[i], mode)
			return err
		}); err != nil {
			return err
		}
	}
	if err := l.latency(l.opt.searches, func(i int) error {
		_, err := c.Get(ctx, send.Namespace, ids[i%len(ids)], client.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	m, err := l.node.Memory()
	l.got = append(l.got, float64(m.Resident)/(1<<20))
	if errors.Is(err, proc.ErrNoUsage) {
		return nil
	}
	return err
}

// warm captures one batch, which opens what is opened only once, and returns the
// ids of its records.
func warm(ctx context.Context, c *client.Client) ([]string, error) {
	items := make([]memory.Capture, send.BatchSize)
	for i := range items {
		items[i] = memory.Capture{Agent: send.Agent, Text: fmt.Sprintf("warm %d", i)}
	}
	answer, err := c.CaptureBatch(ctx, send.Namespace, items, client.CaptureOptions{Wait: memory.WaitApplied})
	var ids []string
	for _, r := range answer.Results {
		ids = append(ids, r.RecordID)
	}
	return ids, err
}

// rate measures n operations: how many a second, and the processor time of 1,000.
func (l *load) rate(n int, do func() error) error {
	used := l.cpu()
	began := time.Now()
	err := do()
	l.got = append(l.got, stats.PerSecond(n, time.Since(began)), report.Millis(l.cpu()-used)*1000/float64(n))
	return err
}

// latency measures n operations one after the other: the median, and the processor
// time of 1,000.
func (l *load) latency(n int, do func(i int) error) error {
	used := l.cpu()
	took := make([]time.Duration, n)
	for i := range n {
		began := time.Now()
		if err := do(i); err != nil {
			return err
		}
		took[i] = time.Since(began)
	}
	l.got = append(l.got, report.Millis(stats.Percentile(took, 50)), report.Millis(l.cpu()-used)*1000/float64(n))
	return nil
}

// cpu is 0 where the system does not tell.
func (l *load) cpu() time.Duration {
	d, _ := l.node.CPU()
	return d
}

func bytesBelow(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
