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

// fault is something that happens to one node of three under writes.
type fault struct {
	name    string
	leads   bool    // it happens to the node that leads
	median  float64 // seconds that writes may wait, in the middle of all faults
	worst   float64 // and at most; 0 = no target
	do      func(*member) error
	recover func(context.Context, *member) error
}

func restart(ctx context.Context, m *member) error { return m.start(ctx) }

var kinds = []fault{
	{name: "kill -9 of the node that leads", leads: true, median: 3, worst: 6, do: (*member).kill, recover: restart},
	{name: "kill -9 of a node that follows", median: 1, do: (*member).kill, recover: restart},
	{name: "SIGTERM of the node that leads", leads: true, median: 0.3, do: stop, recover: restart},
	{name: "SIGSTOP of the node that leads", leads: true, median: 4, do: func(m *member) error { return m.node.Pause() },
		recover: func(_ context.Context, m *member) error { return m.node.Resume() }},
}

// stop asks a member to end, and waits until it has.
func stop(m *member) error {
	err := m.node.Stop()
	m.node = nil
	return err
}

// faults measures how long writes wait for each kind of fault.
func (b *bench) faults(ctx context.Context) error {
	return b.withTeam(ctx, func(ctx context.Context, t *team) error {
		for _, f := range kinds {
			if !b.opt.kinds.MatchString(f.name) {
				continue
			}
			if err := b.fault(ctx, t, f); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	})
}

func (b *bench) fault(ctx context.Context, t *team, f fault) error {
	var waited []float64
	for range b.opt.faults {
		d, err := b.oneFault(ctx, t, f)
		if err != nil {
			return err
		}
		waited = append(waited, d.Seconds())
		b.say("  %s: %s s", f.name, report.Number(d.Seconds()))
	}
	detail := fmt.Sprintf("median of %d; best %s s, worst %s s", len(waited), report.Number(stats.Percentile(waited, 0)), report.Number(stats.Percentile(waited, 100)))
	b.table.AtMost("writes wait after "+f.name, f.median, stats.Median(waited), "s", detail)
	if f.worst > 0 {
		b.table.AtMost("… at most", f.worst, stats.Percentile(waited, 100), "s", "")
	}
	return nil
}

// oneFault lets one node fail while a client of each other node writes, and returns the
// longest time that one of them had no acknowledgement for, from the fault on. What was
// acknowledged is looked for afterwards.
func (b *bench) oneFault(run context.Context, t *team, f fault) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(run, patience)
	defer cancel()
	lead, err := t.leader(ctx)
	if err != nil {
		return 0, err
	}
	victim := lead
	if !f.leads {
		victim = t.others(lead)[0]
	}
	var writers []*writer
	var wg sync.WaitGroup
	stopped := make(chan struct{})
	for _, m := range t.others(victim) {
		w := &writer{b: b, to: m}
		writers = append(writers, w)
		wg.Go(func() { w.write(ctx, stopped) })
	}
	if err := forEach(writers, func(w *writer) error { return w.reach(ctx, 20) }); err != nil {
		close(stopped)
		return 0, err
	}
	began := time.Now()
	failed := make(chan error, 1)
	go func() { failed <- f.do(victim) }()
	err = forEach(writers, func(w *writer) error { return w.after(ctx, began) })
	longest := time.Duration(0)
	for _, w := range writers {
		longest = max(longest, w.gap(began))
	}
	close(stopped)
	wg.Wait()
	if err != nil {
		return 0, err
	}
	if err := <-failed; err != nil {
		return 0, err
	}
	if err := f.recover(run, victim); err != nil {
		return 0, err
	}
	if err := t.settled(ctx); err != nil {
		return 0, err
	}
	for _, w := range writers {
		for _, id := range w.ids {
			if _, err := victim.client.Get(ctx, load.Namespace, id, client.GetOptions{}); err != nil {
				return 0, fmt.Errorf("an acknowledged capture at %s: %w", victim.id, err)
			}
		}
	}
	return longest, nil
}

func forEach(writers []*writer, do func(*writer) error) error {
	for _, w := range writers {
		if err := do(w); err != nil {
			return err
		}
	}
	return nil
}

// pause is between two captures of a writer.
const pause = 5 * time.Millisecond

// writer sends one capture after the other to one node, each until it is acknowledged.
type writer struct {
	b  *bench
	to *member

	mu   sync.Mutex
	acks []time.Time
	ids  []string // of the records
	last error
}

func (w *writer) write(ctx context.Context, stopped <-chan struct{}) {
	for i := 0; ; i++ {
		item := memory.Capture{Agent: load.Agent, ID: fmt.Sprintf("%s-%d-%d", w.to.id, time.Now().UnixNano(), i), Text: w.b.texts.Sized(i, load.TextSize)}
		for {
			select {
			case <-stopped:
				return
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			resp, err := w.to.client.Capture(ctx, load.Namespace, item, client.CaptureOptions{})
			w.mu.Lock()
			w.last = err
			if err == nil {
				w.acks, w.ids = append(w.acks, time.Now()), append(w.ids, resp.Results[0].RecordID)
			}
			w.mu.Unlock()
			if err == nil {
				break
			}
		}
	}
}

// reach waits until n captures are acknowledged.
func (w *writer) reach(ctx context.Context, n int) error {
	return until(ctx, "captures at "+w.to.id, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.acks) < n {
			return fmt.Errorf("%d captures were acknowledged: %w", len(w.acks), w.last)
		}
		return nil
	})
}

// steady is how many acknowledgements in a row, none long after the one before, say that
// writes go on, and how long after the fault they are waited for at least: a node that is
// asked to end, or that does not answer any more, is missed only after a while.
const (
	steady     = 50
	watchedFor = 2 * time.Second
)

// after waits until writes have gone on for a while after a moment.
func (w *writer) after(ctx context.Context, t time.Time) error {
	return until(ctx, "writes to go on at "+w.to.id, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		n := len(w.acks)
		if time.Since(t) < watchedFor || n < steady || w.acks[n-steady].Before(t) || w.acks[n-1].Sub(w.acks[n-steady]) > 10*steady*pause {
			return fmt.Errorf("not yet: %w", w.last)
		}
		return nil
	})
}

// gap is the longest time without an acknowledgement from a moment on.
func (w *writer) gap(t time.Time) (longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := t
	for _, at := range w.acks {
		if at.Before(t) {
			continue
		}
		longest, before = max(longest, at.Sub(before)), at
	}
	return longest
}
