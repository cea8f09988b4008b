package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// captures measures durable captures and how soon they are found. Each run has
// a node and a log of its own, and the raw log is measured right after it, so
// that both sides of a ratio saw the same disk.
func (b *bench) captures(ctx context.Context) error {
	if d, err := fsyncTime(b.dir); err != nil {
		b.table.Failed("fsync of 4 KiB", "", err)
	} else {
		b.table.Info("fsync of 4 KiB", report.Millis(d), "ms", "p50 of 100; what one durable write costs here")
	}
	for _, workers := range []int{1, 4} {
		what := fmt.Sprintf("REST, batches of %d, %d in flight", load.BatchSize, workers)
		if err := b.restCaptures(ctx, what, workers); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if err := b.natsCaptures(ctx); err != nil {
		return fmt.Errorf("NATS: %w", err)
	}
	return b.withNode(ctx, b.newDir(), func(node *proc.Node) error { return b.freshness(ctx, node) })
}

func (b *bench) restCaptures(ctx context.Context, what string, workers int) error {
	n := b.opt.captures / load.BatchSize * load.BatchSize
	var rates, raws, ratios []float64
	frames := 0
	for range b.opt.runs {
		r, err := b.timedRun(ctx, func(node *proc.Node, c *client.Client) error {
			return load.Batches(ctx, c, workers, n, load.BatchSize, func(i int) string { return b.texts.Sized(i, load.TextSize) })
		})
		if err != nil {
			return err
		}
		frames = r.frames
		rates, raws = append(rates, stats.PerSecond(n, r.took)), append(raws, stats.PerSecond(n, r.raw))
		ratios = append(ratios, r.raw.Seconds()/r.took.Seconds())
	}
	b.table.AtLeast("captures by "+what, 3000, stats.Median(rates), "/s", fmt.Sprintf("median of %d runs of %d", len(rates), n))
	b.table.AtLeast("… beside raw JetStream publishing", 0.5, stats.Median(ratios), "",
		fmt.Sprintf("median; raw %s events/s in %d frames", report.Number(stats.Median(raws)), frames))
	return nil
}

func (b *bench) natsCaptures(ctx context.Context) error {
	n := b.opt.requests
	var rates, raws, ones []float64
	for range b.opt.runs {
		r, err := b.timedRun(ctx, func(node *proc.Node, _ *client.Client) error {
			return load.Requests(ctx, node.NATS, b.texts, 0, n)
		})
		if err != nil {
			return err
		}
		rates, raws = append(rates, stats.PerSecond(n, r.took)), append(raws, stats.PerSecond(n, r.raw))
		ones = append(ones, r.one)
	}
	b.table.AtLeast(fmt.Sprintf("captures by NATS request, %d in flight", load.InFlight), 2000, stats.Median(rates), "/s",
		fmt.Sprintf("median of %d runs of %d; raw JetStream %s events/s", len(rates), n, report.Number(stats.Median(raws))))
	b.table.Info("raw JetStream, one event a message, one in flight", stats.Median(ones), "/s", "the same events without frames")
	return nil
}

// timed is what one run took, and the raw log for the same frames.
type timed struct {
	took, raw time.Duration
	frames    int
	one       float64 // events a second, raw, in frames of one event
}

// timedRun measures what send does to a node of its own and then the raw log.
func (b *bench) timedRun(ctx context.Context, send func(*proc.Node, *client.Client) error) (r timed, err error) {
	dir := b.newDir()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var status memory.Status
	err = b.withNode(ctx, dir, func(node *proc.Node) error {
		c, done, err := load.NewClient(node.HTTP)
		if err != nil {
			return err
		}
		defer done()
		// The first capture opens what is opened only once.
		if err := load.Batch(ctx, c, []memory.Capture{{Agent: load.Agent, Text: "warm"}}); err != nil {
			return err
		}
		if status, err = c.Status(ctx); err != nil {
			return err
		}
		began := time.Now()
		if err := send(node, c); err != nil {
			return err
		}
		r.took = time.Since(began)
		return nil
	})
	if err != nil {
		return r, err
	}
	frames, err := readFrames(ctx, dir, status)
	if err != nil {
		return r, err
	}
	r.frames = len(frames)
	if r.raw, err = rawAppend(ctx, b.newDir(), frames); err != nil {
		return r, err
	}
	ones, err := single(frames, 2000)
	if err != nil {
		return r, err
	}
	took, err := rawAppend(ctx, b.newDir(), ones)
	r.one = stats.PerSecond(len(ones), took)
	return r, err
}

// freshness measures from the moment a capture was due to the answer of a
// search that contains it, at 100 captures a second.
func (b *bench) freshness(ctx context.Context, node *proc.Node) error {
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	var mu sync.Mutex
	var took []time.Duration
	late := 0
	err = load.Paced(ctx, 100, b.opt.paced, 500, func(i int, due time.Time) error {
		searches, err := captureAndFind(ctx, c, i, b.texts.Sized(i, load.TextSize-32))
		d := time.Since(due)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, d)
		if searches > 1 {
			late++
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("capture to searchable: %w", err)
	}
	b.table.AtMost("capture to searchable p99, 100/s by REST", 50, report.Millis(stats.Percentile(took, 99)), "ms",
		fmt.Sprintf("p50 %s ms, %d captures, %d not in the first search", report.Number(report.Millis(stats.Percentile(took, 50))), len(took), late))
	return nil
}

// captureAndFind captures a text with a word of its own and searches for it
// until it is found; it returns after how many searches.
func captureAndFind(ctx context.Context, c *client.Client, i int, text string) (searches int, err error) {
	ctx, cancel := context.WithTimeout(ctx, load.OpLimit)
	defer cancel()
	word := fmt.Sprintf("zq%dxk", i)
	answer, err := c.Capture(ctx, load.Namespace, memory.Capture{Agent: load.Agent, Text: word + " " + text}, client.CaptureOptions{Wait: memory.WaitApplied})
	if err != nil {
		return 0, err
	}
	if len(answer.Results) != 1 {
		return 0, fmt.Errorf("%d results for one capture", len(answer.Results))
	}
	for searches = 1; searches <= 1000; searches++ {
		found, err := c.Search(ctx, load.Namespace, memory.SearchRequest{Query: word})
		if err != nil {
			return searches, err
		}
		for _, hit := range found.Results {
			if hit.ID == answer.Results[0].RecordID {
				return searches, nil
			}
		}
	}
	return searches, fmt.Errorf("capture %d was not found by %d searches", i, searches-1)
}
