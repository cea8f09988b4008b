package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// inFlight is how many batches are under way at once.
const inFlight = 4

// captures measures durable captures. Each run has a cluster of its own.
func (b *bench) captures(ctx context.Context) error {
	var rest, requests, p50s, p99s []float64
	for range b.opt.runs {
		err := b.withTeam(ctx, func(ctx context.Context, t *team) error {
			lead, err := t.leader(ctx)
			if err != nil {
				return err
			}
			if err := load.Batch(ctx, lead.client, []memory.Capture{{Agent: load.Agent, Text: "warm"}}); err != nil {
				return err
			}
			began := time.Now()
			if err := b.spread(ctx, t, b.opt.captures); err != nil {
				return err
			}
			rest = append(rest, stats.PerSecond(b.opt.captures, time.Since(began)))
			began = time.Now()
			if err := load.Requests(ctx, lead.node.NATS, b.texts, 0, b.opt.requests); err != nil {
				return err
			}
			requests = append(requests, stats.PerSecond(b.opt.requests, time.Since(began)))
			if err := t.quiet(ctx); err != nil {
				return err
			}
			took, err := b.pace(ctx, t, b.opt.paced)
			if err != nil {
				return err
			}
			p50s, p99s = append(p50s, report.Millis(stats.Percentile(took, 50))), append(p99s, report.Millis(stats.Percentile(took, 99)))
			return nil
		})
		if err != nil {
			return err
		}
	}
	detail := fmt.Sprintf("median of %d runs", b.opt.runs)
	b.table.AtLeast(fmt.Sprintf("captures by REST, batches of %d, %d in flight at all nodes", load.BatchSize, inFlight), 2000, stats.Median(rest), "/s", detail)
	b.table.AtLeast(fmt.Sprintf("captures by NATS request, %d in flight", load.InFlight), 1000, stats.Median(requests), "/s", detail)
	b.table.AtMost("capture p50, 100/s at all nodes", 12, stats.Median(p50s), "ms", fmt.Sprintf("p99 %s ms", report.Number(stats.Median(p99s))))
	return nil
}

// spread captures n texts in batches, each at the next node.
func (b *bench) spread(ctx context.Context, t *team, n int) error {
	return load.Parallel(ctx, inFlight, (n+load.BatchSize-1)/load.BatchSize, func(ctx context.Context, at int) error {
		var items []memory.Capture
		for i := at * load.BatchSize; i < min(n, (at+1)*load.BatchSize); i++ {
			items = append(items, memory.Capture{Agent: load.Agent, Text: b.texts.Sized(i, load.TextSize)})
		}
		return load.Batch(ctx, t.members[at%len(t.members)].client, items)
	})
}

// fill captures the records of a large namespace, and waits until all nodes have indexed them.
func (b *bench) fill(ctx context.Context, t *team) error {
	if err := b.spread(ctx, t, b.opt.records); err != nil {
		return err
	}
	if err := t.settled(ctx); err != nil {
		return err
	}
	return t.quiet(ctx)
}

// pace captures 100 texts a second, each at the next node, and returns how long each took
// from when it was due.
func (b *bench) pace(ctx context.Context, t *team, span time.Duration) (took []time.Duration, err error) {
	var mu sync.Mutex
	err = load.Paced(ctx, 100, span, 500, func(i int, due time.Time) error {
		item := memory.Capture{Agent: load.Agent, Text: b.texts.Sized(i, load.TextSize)}
		_, err := t.members[i%len(t.members)].client.Capture(ctx, load.Namespace, item, client.CaptureOptions{})
		d := time.Since(due)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, d)
		return err
	})
	return took, err
}
