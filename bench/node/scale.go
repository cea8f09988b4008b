package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

const (
	megabyte = 1 << 20
	writers  = 64 // captures that may be under way while searching
)

// scale measures a node that holds many records: search under writes, memory,
// restarts, rebuild.
func (b *bench) scale(ctx context.Context) error {
	dir := b.newDir()
	node, err := proc.Start(ctx, b.bin, dir)
	if err != nil {
		return err
	}
	err = b.loaded(ctx, node)
	if err = errors.Join(err, node.Stop()); err != nil {
		return err
	}
	if err := b.restarts(ctx, dir); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return b.withNode(ctx, dir, func(node *proc.Node) error { return b.rebuild(ctx, node) })
}

// loaded fills the node and searches it.
func (b *bench) loaded(ctx context.Context, node *proc.Node) error {
	c, done, err := load.NewClient(node.HTTP)
	if err != nil {
		return err
	}
	defer done()
	n := len(b.texts.Texts)
	began := time.Now()
	if err := load.Talks(ctx, c, 4, n, load.BatchSize, func(i int) string { return b.texts.Texts[i] }); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	b.table.Info("load by REST, 4 batches in flight", stats.PerSecond(n, time.Since(began)), "/s", "")
	b.say("loaded %d records in %.0f s", n, time.Since(began).Seconds())
	queries := b.texts.Queries(b.opt.searches)
	if len(queries) == 0 {
		return errors.New("the texts hold no words to search for")
	}
	if err := b.searchAlone(ctx, c, "hybrid search right after loading", queries[:max(len(queries)/10, 1)]); err != nil {
		return err
	}
	if quiet, err := node.Quiet(ctx, 0.03, b.opt.settle); err == nil {
		b.table.Info("background work after loading (graph)", quiet.Seconds(), "s", "until the node used under 3 % of a core")
		b.say("quiet after %.0f s", quiet.Seconds())
	} else if !errors.Is(err, proc.ErrNoUsage) {
		return err
	}
	b.memory(node, "resident memory, loaded")
	if err := b.searchAlone(ctx, c, "hybrid search, nothing written meanwhile", queries); err != nil {
		return err
	}
	if err := b.searchAlone(ctx, c, fmt.Sprintf("hybrid search, questions of %d words", questionWords), b.texts.Questions(b.opt.searches, questionWords, true)); err != nil {
		return err
	}
	if err := b.searchUnderWrites(ctx, c, queries); err != nil {
		return err
	}
	b.memory(node, "resident memory after searches and writes")
	return nil
}

func (b *bench) memory(node *proc.Node, what string) {
	m, err := node.Memory()
	if err != nil {
		b.table.Failed(what, "≤ 1,536 MB", err)
		return
	}
	b.table.AtMost(what, 1536, float64(m.Resident)/megabyte, "MB", fmt.Sprintf("peak %s MB", report.Number(float64(m.Peak)/megabyte)))
}

// searches asks the queries one after the other.
func searches(ctx context.Context, c *client.Client, queries []string) (took []time.Duration, empty int, err error) {
	for _, q := range queries {
		d, answer, err := load.Search(ctx, c, q, memory.ModeHybrid)
		if err != nil {
			return nil, 0, err
		}
		if answer.Mode != memory.ModeHybrid {
			return nil, 0, fmt.Errorf("a hybrid search was served as %s", answer.Mode)
		}
		if len(answer.Results) == 0 {
			empty++
		}
		took = append(took, d)
	}
	return took, empty, nil
}

func (b *bench) searchAlone(ctx context.Context, c *client.Client, what string, queries []string) error {
	took, empty, err := searches(ctx, c, queries)
	if err != nil {
		return err
	}
	b.table.Info(what+", p50", report.Millis(stats.Percentile(took, 50)), "ms",
		fmt.Sprintf("p99 %s ms, %d searches, %d found nothing", report.Number(report.Millis(stats.Percentile(took, 99))), len(took), empty))
	return nil
}

// searchUnderWrites searches while 100 captures a second are written.
func (b *bench) searchUnderWrites(ctx context.Context, c *client.Client, queries []string) error {
	var took []time.Duration
	var empty int
	n, span, err := b.whileWriting(ctx, c, func() (err error) {
		took, empty, err = searches(ctx, c, queries)
		return err
	})
	if err != nil {
		return err
	}
	detail := fmt.Sprintf("%d searches one after the other in %.1f s, %d found nothing, %.0f captures/s meanwhile", len(took), span.Seconds(), empty, float64(n)/span.Seconds())
	b.table.AtMost("hybrid search p50 while 100/s are written", 2, report.Millis(stats.Percentile(took, 50)), "ms", detail)
	b.table.AtMost("hybrid search p99 while 100/s are written", 10, report.Millis(stats.Percentile(took, 99)), "ms",
		fmt.Sprintf("max %s ms", report.Number(report.Millis(stats.Percentile(took, 100)))))
	return nil
}

// whileWriting runs do while 100 captures a second are written, and returns how
// many were acknowledged in which time.
func (b *bench) whileWriting(ctx context.Context, c *client.Client, do func() error) (acked int64, span time.Duration, err error) {
	stop := make(chan struct{})
	wrote := make(chan error, 1)
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	var n atomic.Int64
	go func() { wrote <- b.write(writing, c, 10*time.Minute, stop, func(string) { n.Add(1) }) }()
	began := time.Now()
	err = do()
	span, acked = time.Since(began), n.Load()
	close(stop)
	return acked, span, errors.Join(err, <-wrote)
}

// errStopped ends a pace that was told to stop.
var errStopped = errors.New("stopped")

// write captures 100 texts a second until stop is closed, or d is over; acked
// gets the id of each record that was acknowledged, concurrently.
func (b *bench) write(ctx context.Context, c *client.Client, d time.Duration, stop <-chan struct{}, acked func(recordID string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case <-stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	err := load.Paced(ctx, 100, d, writers, func(i int, _ time.Time) error {
		// The call itself is not cut short by stop: what was sent is waited for.
		op, done := context.WithTimeout(context.WithoutCancel(ctx), load.OpLimit)
		defer done()
		answer, err := c.Capture(op, load.Namespace, memory.Capture{Agent: load.Agent, Text: b.texts.Sized(i, load.TextSize)}, client.CaptureOptions{})
		if err != nil {
			return fmt.Errorf("capture while searching: %w", err)
		}
		if len(answer.Results) == 1 {
			acked(answer.Results[0].RecordID)
		}
		return nil
	})
	cancel(nil)
	<-finished
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}
