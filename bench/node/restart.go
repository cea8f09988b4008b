package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// restarts measures how soon a node with all records is ready again, after a
// SIGTERM and after a kill amid writes.
func (b *bench) restarts(ctx context.Context, dir string) error {
	for _, how := range []string{"SIGTERM", "kill -9 amid writes"} {
		var ready, found []float64
		for range b.opt.runs {
			r, f, err := b.restart(ctx, dir, how == "SIGTERM")
			if err != nil {
				return fmt.Errorf("after %s: %w", how, err)
			}
			ready, found = append(ready, r.Seconds()), append(found, f.Seconds())
		}
		b.table.AtMost("ready after "+how, 3, stats.Median(ready), "s",
			fmt.Sprintf("median of %d; first hybrid search answered after %s s", len(ready), report.Number(stats.Median(found))))
	}
	return nil
}

// restart starts a node, ends it in the given way and starts it again. ready
// and found are measured from the second start of the process.
func (b *bench) restart(ctx context.Context, dir string, gently bool) (ready, found time.Duration, err error) {
	var last string
	node, err := proc.Start(ctx, b.bin, dir)
	if err != nil {
		return 0, 0, err
	}
	if gently {
		err = node.Stop()
	} else {
		last, err = b.writeAndKill(ctx, node)
	}
	if err != nil {
		return 0, 0, errors.Join(err, node.Kill())
	}
	began := time.Now()
	err = b.withNode(ctx, dir, func(node *proc.Node) error {
		ready = node.Ready
		c, done, err := load.NewClient(node.HTTP)
		if err != nil {
			return err
		}
		defer done()
		_, answer, err := load.Search(ctx, c, b.texts.Queries(1)[0], memory.ModeHybrid)
		found = time.Since(began)
		if err != nil {
			return err
		}
		if len(answer.Results) == 0 || answer.Mode != memory.ModeHybrid {
			return fmt.Errorf("the first search found %d records in mode %s", len(answer.Results), answer.Mode)
		}
		if last == "" {
			return nil
		}
		if _, err := c.Get(ctx, load.Namespace, last, client.GetOptions{}); err != nil {
			return fmt.Errorf("a capture acknowledged before the kill: %w", err)
		}
		return nil
	})
	return ready, found, err
}

// writeAndKill kills the node while 100 captures a second are written and
// returns the last record that was acknowledged.
func (b *bench) writeAndKill(ctx context.Context, node *proc.Node) (last string, err error) {
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return "", err
	}
	defer done()
	const before = 50 // captures
	enough := make(chan struct{})
	var mu sync.Mutex
	n := 0
	wrote := make(chan error, 1)
	go func() {
		wrote <- b.write(ctx, c, time.Minute, nil, func(id string) {
			mu.Lock()
			defer mu.Unlock()
			last = id
			if n++; n == before {
				close(enough)
			}
		})
	}()
	select {
	case <-enough:
	case err := <-wrote:
		return "", errors.Join(errors.New("writing ended before the kill"), err, node.Kill())
	}
	err = node.Kill()
	<-wrote // with an error: the node is gone
	if err != nil {
		return "", err
	}
	return last, nil
}

// rebuildByOperator takes the way that the node gives its operator.
func rebuildByOperator(ctx context.Context, c *client.Client) (memory.RebuildReport, error) {
	op, err := c.Operator(ctx)
	if err != nil {
		return memory.RebuildReport{}, err
	}
	return op.Rebuild(ctx, nil)
}

// rebuild measures building the state again from the log.
func (b *bench) rebuild(ctx context.Context, node *proc.Node) error {
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	began := time.Now()
	answer, err := rebuildByOperator(ctx, c)
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	took := time.Since(began)
	events, same := 0, true
	for _, s := range answer.Shards {
		events += int(s.Events)
		same = same && (s.Before == "" || s.Before == s.StateHash)
	}
	detail := fmt.Sprintf("%d events in %.1f s", events, took.Seconds())
	if !same {
		return fmt.Errorf("rebuild of %s gave another state hash", detail)
	}
	b.table.AtLeast("rebuild", 5000, stats.PerSecond(events, took), "events/s", detail+", same state hash")
	b.memory(node, "resident memory after the rebuild")
	return nil
}
