package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// readers is how many linearizable reads are under way at once.
const readers = 32

// reads measures reads of a cluster with many records, at a node that follows and at the
// one that leads, and searches beside a single node with the same records.
func (b *bench) reads(ctx context.Context) error {
	single, err := b.alone(ctx)
	if err != nil {
		return err
	}
	return b.withTeam(ctx, func(ctx context.Context, t *team) error {
		if err := b.fill(ctx, t); err != nil {
			return err
		}
		lead, err := t.leader(ctx)
		if err != nil {
			return err
		}
		follows := t.others(lead)[0]
		if err := b.atPosition(ctx, follows); err != nil {
			return err
		}
		for _, at := range []struct {
			who string
			m   *member
		}{{"that leads", lead}, {"that follows", follows}} {
			rate, err := b.linearizable(ctx, at.m)
			if err != nil {
				return err
			}
			b.table.AtLeast("linearizable reads at the node "+at.who, 2000, rate, "/s", fmt.Sprintf("%d at once", readers))
		}
		took, err := b.searches(ctx, follows.client)
		if err != nil {
			return err
		}
		b.table.AtMost("hybrid search at a node that follows ÷ at a single node, p50", 1.1, took/single, "",
			fmt.Sprintf("%s ms beside %s ms", report.Number(took), report.Number(single)))
		return nil
	})
}

// alone is the p50 of searches, in ms, at a single node with the same records.
func (b *bench) alone(ctx context.Context) (p50 float64, err error) {
	dir := b.newDir()
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	node, err := proc.Start(ctx, b.bin, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, node.Stop()) }()
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return 0, err
	}
	defer done()
	if err := load.Batches(ctx, c, inFlight, b.opt.records, load.BatchSize, func(i int) string { return b.texts.Sized(i, load.TextSize) }); err != nil {
		return 0, err
	}
	if _, err := node.Quiet(ctx, 0.1, patience); err != nil {
		return 0, err
	}
	return b.searches(ctx, c)
}

// searches is the p50, in ms, of hybrid searches one after the other.
func (b *bench) searches(ctx context.Context, c *client.Client) (float64, error) {
	var took []time.Duration
	for _, q := range b.texts.Queries(min(b.opt.reads, 1000)) {
		d, _, err := load.Search(ctx, c, q, memory.ModeHybrid)
		if err != nil {
			return 0, err
		}
		took = append(took, d)
	}
	return report.Millis(stats.Percentile(took, 50)), nil
}

// atPosition compares reads at a position that the node has with local ones, in turns.
func (b *bench) atPosition(ctx context.Context, m *member) error {
	id, position, err := capture(ctx, m)
	if err != nil {
		return err
	}
	var local, at []time.Duration
	for range b.opt.reads {
		for _, opt := range []client.ReadOptions{{}, {AtLeast: position}} {
			began := time.Now()
			if _, err := m.client.Get(ctx, load.Namespace, id, client.GetOptions{ReadOptions: opt}); err != nil {
				return err
			}
			if opt.AtLeast == "" {
				local = append(local, time.Since(began))
			} else {
				at = append(at, time.Since(began))
			}
		}
	}
	l, a := report.Millis(stats.Percentile(local, 50)), report.Millis(stats.Percentile(at, 50))
	b.table.AtMost("what a read at a position that is applied takes longer, p50", 1, max(a-l, 0), "ms",
		fmt.Sprintf("%s ms, local %s ms", report.Number(a), report.Number(l)))
	return nil
}

func capture(ctx context.Context, m *member) (id, position string, err error) {
	resp, err := m.client.Capture(ctx, load.Namespace, memory.Capture{Agent: load.Agent, Text: "read again and again"}, client.CaptureOptions{Wait: memory.WaitApplied})
	if err != nil {
		return "", "", err
	}
	return resp.Results[0].RecordID, resp.Results[0].Position, nil
}

// linearizable is how many linearizable reads a second a node answers.
func (b *bench) linearizable(ctx context.Context, m *member) (float64, error) {
	id, _, err := capture(ctx, m)
	if err != nil {
		return 0, err
	}
	opt := client.GetOptions{ReadOptions: client.ReadOptions{Consistency: memory.ConsistencyLinearizable}}
	began := time.Now()
	err = load.Parallel(ctx, readers, b.opt.reads, func(ctx context.Context, _ int) error {
		_, err := m.client.Get(ctx, load.Namespace, id, opt)
		return err
	})
	return stats.PerSecond(b.opt.reads, time.Since(began)), err
}
