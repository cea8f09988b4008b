package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"mneme/bench/internal/report"
	"mneme/memory"
)

// back measures how soon a node with many records is a whole member again, from the start
// of its process on: after a minute away, while the others wrote, and after it was removed
// and wiped.
func (b *bench) back(ctx context.Context) error {
	return b.withTeam(ctx, func(ctx context.Context, t *team) error {
		if err := b.fill(ctx, t); err != nil {
			return err
		}
		ready, took, err := b.away(ctx, t)
		if err != nil {
			return err
		}
		b.table.AtMost("back after a while away", 3, took.Seconds(), "s", fmt.Sprintf("%v with %.0f captures, %d records: with everything; ready after %s s",
			b.opt.away, b.opt.away.Seconds()*100, b.opt.records, report.Number(ready.Seconds())))
		ready, took, err = b.wiped(ctx, t)
		if err != nil {
			return err
		}
		b.table.AtMost("back after a wipe", 15, took.Seconds(), "s", fmt.Sprintf("%d records: a voter with everything, log and state; ready after %s s",
			b.opt.records, report.Number(ready.Seconds())))
		return nil
	})
}

// away stops a node that follows, writes 100 a second meanwhile, and starts it again.
func (b *bench) away(ctx context.Context, t *team) (ready, took time.Duration, err error) {
	lead, err := t.leader(ctx)
	if err != nil {
		return 0, 0, err
	}
	m := t.others(lead)[0]
	if err := stop(m); err != nil {
		return 0, 0, err
	}
	if _, err := b.pace(ctx, &team{b: b, members: t.others(m)}, b.opt.away); err != nil {
		return 0, 0, err
	}
	return b.comesBack(ctx, t, m)
}

// wiped kills a node that follows, removes it from the cluster and starts it without its
// data.
func (b *bench) wiped(ctx context.Context, t *team) (ready, took time.Duration, err error) {
	lead, err := t.leader(ctx)
	if err != nil {
		return 0, 0, err
	}
	m := t.others(lead)[0]
	if err := m.kill(); err != nil {
		return 0, 0, err
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return 0, 0, err
	}
	operator, err := lead.client.Operator(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer operator.Close()
	err = until(ctx, "the removal of "+m.id, func() error {
		_, err := operator.Cluster().Remove(ctx, memory.RemoveNode{Node: m.id})
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return b.comesBack(ctx, t, m)
}

// comesBack starts a node and waits until it has everything.
func (b *bench) comesBack(ctx context.Context, t *team, m *member) (ready, took time.Duration, err error) {
	began := time.Now()
	if err := m.start(ctx); err != nil {
		return 0, 0, err
	}
	if err := t.settled(ctx); err != nil {
		return 0, 0, err
	}
	return m.node.Ready, time.Since(began), nil
}
