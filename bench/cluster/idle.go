package main

import (
	"context"
	"fmt"
	"time"

	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
)

const megabyte = 1e6

// idle measures what the nodes of a cluster cost that holds nothing.
func (b *bench) idle(ctx context.Context) error {
	return b.withTeam(ctx, func(ctx context.Context, t *team) error {
		lead, err := t.leader(ctx)
		if err != nil {
			return err
		}
		if err := program.Sleep(ctx, 3*time.Second); err != nil { // starting is over
			return err
		}
		before := map[*member]time.Duration{}
		for _, m := range t.members {
			if before[m], err = m.node.CPU(); err != nil {
				return err
			}
		}
		began := time.Now()
		if err := program.Sleep(ctx, b.opt.idle); err != nil {
			return err
		}
		span := time.Since(began)
		var leads, follows, resident float64 // the worst of those that follow, and of all
		for _, m := range t.members {
			now, err := m.node.CPU()
			if err != nil {
				return err
			}
			used := 100 * (now - before[m]).Seconds() / span.Seconds()
			if m == lead {
				leads = used
			} else {
				follows = max(follows, used)
			}
			mem, err := m.node.Memory()
			if err != nil {
				return err
			}
			resident = max(resident, float64(mem.Resident)/megabyte)
		}
		b.table.AtMost("idle node: resident memory", 90, resident, "MB", "of the largest")
		b.table.AtMost("idle node: processor", 2, max(leads, follows), "% of a core",
			fmt.Sprintf("over %.0f s; the one that leads %s %%, those that follow at most %s %%", span.Seconds(), report.Number(leads), report.Number(follows)))
		return nil
	})
}
