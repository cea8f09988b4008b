package main

import (
	"context"
	"fmt"
	"time"

	"mneme/bench/internal/proc"
	"mneme/bench/internal/program"
	"mneme/bench/internal/report"
)

// empty measures what a node costs that holds nothing.
func (b *bench) empty(ctx context.Context) error {
	return b.withNode(ctx, b.newDir(), func(node *proc.Node) error {
		if err := program.Sleep(ctx, 2*time.Second); err != nil { // starting is over
			return err
		}
		before, err := node.CPU()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := program.Sleep(ctx, b.opt.idle); err != nil {
			return err
		}
		after, err := node.CPU()
		if err != nil {
			return err
		}
		span := time.Since(began)
		m, err := node.Memory()
		if err != nil {
			return err
		}
		b.table.AtMost("empty node: resident memory", 150, float64(m.Resident)/megabyte, "MB", fmt.Sprintf("peak %s MB, ready after %s s",
			report.Number(float64(m.Peak)/megabyte), report.Number(node.Ready.Seconds())))
		b.table.AtMost("empty node: processor", 1, 100*(after-before).Seconds()/span.Seconds(), "% of a core", fmt.Sprintf("over %.0f s", span.Seconds()))
		return nil
	})
}
