package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/memory"
)

const (
	questionWords = 12
	warmUps       = 20 // calls before those that are timed
	settle        = 5 * time.Minute
)

// search measures memory_search over standard input and output, and the same searches by REST
// beside it.
func (b *bench) search(ctx context.Context) error {
	for _, n := range []int{b.opt.few, b.opt.records} {
		if err := b.fill(ctx, n); err != nil {
			return err
		}
		if err := b.searchAt(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// fill gives the namespace the first n texts, and waits until the node has nothing left to do.
func (b *bench) fill(ctx context.Context, n int) error {
	n = min(n, len(b.texts.Texts))
	info, err := b.api.Namespace(ctx, load.Namespace)
	if err != nil {
		return err
	}
	have := int(info.Records)
	if n <= have {
		return nil
	}
	if err := load.Captures(ctx, b.api, 4, n-have, load.BatchSize, func(i int) memory.Capture {
		i += have
		return memory.Capture{Agent: load.Agent, Text: b.texts.Texts[i], Conversation: fmt.Sprintf("talk-%d", i/load.TalkSize)}
	}); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if _, err := b.node.Quiet(ctx, 0.03, settle); err != nil && !errors.Is(err, proc.ErrNoUsage) {
		return err
	}
	b.say("%d records are there", n)
	return nil
}

func (b *bench) searchAt(ctx context.Context, n int) (err error) {
	questions := b.texts.Questions(b.opt.searches+warmUps, questionWords, true)
	s, err := connect(ctx, b.command(ctx, "mcp", "--start", "never", "-n", load.Namespace))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var overMCP, overREST []float64
	empty := 0
	for i, q := range questions {
		var got struct{ Results []struct{ ID string } }
		tool, err := s.call(ctx, "memory_search", map[string]any{"query": q}, &got)
		if err != nil {
			return err
		}
		none, began := 0, time.Now()
		answer, err := b.api.Search(ctx, load.Namespace, memory.SearchRequest{Query: q, Fit: memory.Fit{MaxText: &none}})
		took := time.Since(began)
		if err != nil {
			return err
		}
		if len(answer.Results) != len(got.Results) {
			return fmt.Errorf("%q: %d results by the tool, %d by REST", q, len(got.Results), len(answer.Results))
		}
		if i < warmUps {
			continue
		}
		if len(got.Results) == 0 {
			empty++
		}
		overMCP, overREST = append(overMCP, report.Millis(tool)), append(overREST, report.Millis(took))
	}
	detail := fmt.Sprintf("p95 %s ms, %d calls, %d found nothing", report.Number(stats.Percentile(overMCP, 95)), len(overMCP), empty)
	what, p50 := fmt.Sprintf("memory_search over stdio, %d records, p50", n), stats.Percentile(overMCP, 50)
	if n == b.opt.records {
		b.table.AtMost(what, 3, p50, "ms", detail)
	} else {
		b.table.Info(what, p50, "ms", detail)
	}
	b.table.Info("… the same questions by REST, in turns", stats.Percentile(overREST, 50), "ms", fmt.Sprintf("p95 %s ms", report.Number(stats.Percentile(overREST, 95))))
	return nil
}
