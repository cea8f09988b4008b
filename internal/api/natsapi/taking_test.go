package natsapi

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"mneme/memory"
)

// Several surfaces on one NATS take in turn, while one agent publishes without waiting for
// answers: nothing is lost, and nothing is taken twice.
func TestTakingIsHandedOver(t *testing.T) {
	later := func(o *Options) { o.Later, o.LaneDepth = true, 1<<16 }
	b := newBench(t, later)
	opt := b.s.opt
	other, err := Start(opt)
	must(t, err)
	t.Cleanup(func() { must(t, other.Close(context.Background())) })

	const all, turns = 800, 4
	var mu sync.Mutex
	var got []string
	done := make(chan struct{})
	b.f.onCapture(func(_ context.Context, _ string, items []memory.Capture) (memory.CaptureResponse, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, item := range items {
			if got = append(got, item.Text); len(got) == all {
				close(done)
			}
		}
		return created(items), nil
	})
	if b.s.Taking() || other.Taking() {
		t.Error("a surface takes that was not told to")
	}
	release, err := b.s.Take()
	must(t, err)
	release()
	next := make(chan int)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		defer close(next)
		for i := range all {
			if i%(all/turns) == all/turns/2 {
				next <- i
			}
			if err := b.agent.Publish("mem.in.default.walker.capture", fmt.Appendf(nil, "step %d", i)); err != nil {
				t.Error(err)
			}
		}
	})
	from, to := b.s, other
	for range next {
		release, err := to.Take()
		must(t, err)
		must(t, from.Cease(t.Context()))
		release()
		if from.Taking() || !to.Taking() {
			t.Error("the other one takes")
		}
		from, to = to, from
	}
	publishing.Wait()
	must(t, b.agent.Flush())
	receive(t, done)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(got)
	if len(slices.Compact(got)) != all {
		t.Errorf("of %d captures %d came", all, len(slices.Compact(got)))
	}
	must(t, from.Cease(t.Context()))
	must(t, from.Cease(t.Context()))
	if n := b.s.under.Load() + other.under.Load(); n != 0 {
		t.Errorf("%d captures count as under way", n)
	}
}
