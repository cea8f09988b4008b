package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"mneme/bench/internal/load"
	"mneme/bench/internal/proc"
	"mneme/bench/internal/report"
	"mneme/bench/internal/stats"
	"mneme/client"
	"mneme/memory"
)

// erasing is one way to erase.
type erasing struct {
	name    string
	prepare func(ctx context.Context, run int) error
	begin   func(ctx context.Context, run int) error
}

func (b *bench) erasedSubject() erasing {
	return erasing{
		name:    fmt.Sprintf("one of %d subjects", b.opt.subjects),
		prepare: func(context.Context, int) error { return nil },
		begin: func(ctx context.Context, run int) error {
			return b.node.Erase(ctx, load.Namespace, subject(run))
		},
	}
}

func (b *bench) deletedNamespace() erasing {
	name := func(run int) string { return fmt.Sprintf("doomed-%d", run) }
	return erasing{
		name: fmt.Sprintf("a namespace of %d memories", b.opt.records/b.opt.subjects),
		prepare: func(ctx context.Context, run int) error {
			if _, err := b.client.CreateNamespace(ctx, memory.CreateNamespace{Name: name(run)}); err != nil {
				return err
			}
			return b.capture(ctx, name(run), b.opt.records/b.opt.subjects)
		},
		begin: func(ctx context.Context, run int) error {
			return b.client.DeleteNamespace(ctx, name(run))
		},
	}
}

func subject(i int) string { return fmt.Sprintf("subject-%d", i) }

// fill captures all memories and waits until the node has come to rest.
func (b *bench) fill(ctx context.Context) error {
	began := time.Now()
	if err := b.capture(ctx, load.Namespace, b.opt.records); err != nil {
		return err
	}
	b.say("loaded %d memories in %.0f s", b.opt.records, time.Since(began).Seconds())
	return b.rest(ctx)
}

func (b *bench) capture(ctx context.Context, namespace string, n int) error {
	return load.Parallel(ctx, 4, (n+load.BatchSize-1)/load.BatchSize, func(ctx context.Context, at int) error {
		var items []memory.Capture
		for i := at * load.BatchSize; i < min(n, (at+1)*load.BatchSize); i++ {
			items = append(items, memory.Capture{Agent: load.Agent, Text: b.texts.Texts[i%len(b.texts.Texts)], Subject: subject(i % b.opt.subjects)})
		}
		_, err := b.client.CaptureBatch(ctx, namespace, items, client.CaptureOptions{Wait: memory.WaitApplied})
		return err
	})
}

// rest waits until the vectors are in the graph, so that only erasing works.
func (b *bench) rest(ctx context.Context) error {
	began := time.Now()
	defer func() { b.say("at rest after %.0f s", time.Since(began).Seconds()) }()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		before, err := proc.OwnCPU()
		if err != nil {
			return err
		}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if after, err := proc.OwnCPU(); err != nil || after-before < 200*time.Millisecond {
			return err
		}
	}
	return nil
}

// watch notes the step of the erasure that is under way.
func (b *bench) watch(ctx context.Context) {
	for ctx.Err() == nil {
		step := none
		if status, err := b.client.Status(ctx); err == nil && status.Shards[0].Erasing != nil {
			step = status.Shards[0].Erasing.Step
		}
		b.step.Store(&step)
		time.Sleep(20 * time.Millisecond)
	}
}

// none is the step while no plan is under way.
const none = "(event)"

// sample is one search, and the step of the erasure under which it began.
type sample struct {
	began time.Time
	took  time.Duration
	step  string
}

// search asks queries until done is closed.
func (b *bench) search(ctx context.Context, done <-chan struct{}) (out []sample, err error) {
	for {
		select {
		case <-done:
			return out, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		default:
		}
		s := sample{began: time.Now(), step: *b.step.Load()}
		b.asked++
		if s.took, _, err = load.Search(ctx, b.client, b.queries[b.asked%len(b.queries)], memory.ModeHybrid); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
}

func p99(samples []sample) float64 {
	took := make([]time.Duration, len(samples))
	for i, s := range samples {
		took[i] = s.took
	}
	return report.Millis(stats.Percentile(took, 99))
}

// erasures measures some of one kind.
func (b *bench) erasures(ctx context.Context, kind erasing) error {
	var seconds, alone, meanwhile, ratios []float64
	steps := map[string][]sample{}
	for run := range b.opt.runs {
		if err := kind.prepare(ctx, run); err != nil {
			return err
		}
		if err := b.rest(ctx); err != nil {
			return err
		}
		timer := make(chan struct{})
		time.AfterFunc(b.opt.quiet, func() { close(timer) })
		before, err := b.search(ctx, timer)
		if err != nil {
			return err
		}
		during, took, err := b.during(ctx, func() error { return kind.begin(ctx, run) })
		if err != nil {
			return err
		}
		for _, s := range during {
			steps[s.step] = append(steps[s.step], s)
		}
		seconds = append(seconds, took.Seconds())
		alone, meanwhile = append(alone, p99(before)), append(meanwhile, p99(during))
		ratios = append(ratios, p99(during)/p99(before))
		b.say("%s: %.1f s; p99 of %d searches %.1f ms, of %d before %.1f ms", kind.name, took.Seconds(), len(during), p99(during), len(before), p99(before))
	}
	b.table.AtMost(kind.name+" has left the files after", mostSeconds, stats.Median(seconds), "s", "")
	b.table.AtMost(kind.name+": p99 of searches meanwhile, against alone", mostSlower, stats.Median(ratios), "×",
		fmt.Sprintf("%s ms, alone %s ms", report.Number(stats.Median(meanwhile)), report.Number(stats.Median(alone))))
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		b.table.Info(kind.name+": p99 in step "+step, p99(steps[step]), "ms", fmt.Sprintf("%d searches", len(steps[step])))
	}
	return nil
}

// during searches while begin erases and until nothing is owed.
func (b *bench) during(ctx context.Context, begin func() error) ([]sample, time.Duration, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go b.watch(ctx)
	began, done := time.Now(), make(chan struct{})
	var took time.Duration
	var failed error
	go func() {
		defer close(done)
		failed = begin()
		took = time.Since(began)
		// The plan begins by itself, some moments after the event.
		for idle := time.Now(); failed == nil && time.Since(idle) < time.Second; time.Sleep(5 * time.Millisecond) {
			if *b.step.Load() != none {
				idle, took = time.Now(), time.Since(began)
			}
		}
	}()
	samples, err := b.search(ctx, done)
	if err == nil {
		err = failed
	}
	samples = slices.DeleteFunc(samples, func(s sample) bool { return s.began.Sub(began) > took })
	return samples, took, err
}
