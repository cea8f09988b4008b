package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"mneme/internal/events"
	"mneme/memory"
)

func drafts(ns byte, n, size int) []*draft {
	out := make([]*draft, n)
	for i := range out {
		out[i] = newDraft(events.Header{Type: events.TypeCaptured, Namespace: events.ID{ns}})
		out[i].size = size
	}
	return out
}

func TestQueueTakesTurns(t *testing.T) {
	q := newQueue(upTo(20_000), 1<<30)
	flood, one, two := drafts(1, 9000, 100), drafts(2, 1, 100), drafts(3, 3, 100)
	for _, p := range [][]*draft{flood, one, two} {
		if err := q.push(p[0].header.Namespace, p); err != nil {
			t.Fatal(err)
		}
	}
	got := q.tryTake(600, 100)
	want := []*draft{flood[0], one[0], two[0], flood[1], two[1], flood[2]}
	if !slices.Equal(got, want) {
		t.Errorf("turns are wrong: %d drafts", len(got))
	}
	q.decided()
	if got = q.tryTake(1<<20, 5); len(got) != 5 || got[0] != two[2] {
		t.Errorf("the second take gives %d drafts, first of namespace %v", len(got), got[0].header.Namespace)
	}
}

// TestQueueAgainstTwin compares with a dumb twin: order within a namespace,
// sums, and nothing lost.
func TestQueueAgainstTwin(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		q := newQueue(upTo(200), 20_000)
		twin := map[events.ID][]*draft{}
		items, bytes := 0, 0
		for step := range 400 {
			switch k := rng.IntN(10); {
			case k < 5:
				d := drafts(byte(rng.IntN(4)), 1+rng.IntN(8), 10+rng.IntN(300))
				ns := d[0].header.Namespace
				if err := q.push(ns, d); err != nil {
					if e := wantCode(t, err, memory.CodeOverloaded); e.RetryAfter == 0 {
						t.Fatal("no RetryAfter")
					}
					break
				}
				twin[ns] = append(twin[ns], d...)
				items, bytes = items+len(d), bytes+len(d)*d[0].size
			case items > 0:
				out := q.tryTake(rng.IntN(3000), 1+rng.IntN(20))
				q.decided()
				if len(out) == 0 {
					t.Fatalf("seed %d step %d: nothing was taken", seed, step)
				}
				if k == 9 {
					q.giveBack(out)
					break
				}
				for _, d := range out {
					l := twin[d.header.Namespace]
					if l[0] != d {
						t.Fatalf("seed %d step %d: out of order", seed, step)
					}
					twin[d.header.Namespace] = l[1:]
					items, bytes = items-1, bytes-d.size
				}
			}
			if n, b := q.depth(); n != items || b != bytes {
				t.Fatalf("seed %d step %d: depth %d %d, want %d %d", seed, step, n, b, items, bytes)
			}
		}
		if got := q.drop(); len(got) != items {
			t.Fatalf("seed %d: drop gives %d of %d", seed, len(got), items)
		}
	}
}

func TestQueueBounds(t *testing.T) {
	q := newQueue(upTo(10), 1000)
	a, b := events.ID{1}, events.ID{2}
	if err := q.push(a, drafts(1, 12, 1)); err != nil {
		t.Errorf("one request above the bounds has to get into an empty queue: %v", err)
	}
	wantCode(t, q.push(b, drafts(2, 1, 1)), memory.CodeOverloaded)
	if n, _ := q.depth(); n != 12 {
		t.Errorf("a refused push left something: %d", n)
	}
	q.drop()
	for _, p := range []struct {
		ns   events.ID
		n    int
		size int
		ok   bool
	}{{a, 5, 10, true}, {b, 1, 10, true}, {a, 1, 10, false}, {b, 4, 10, true}, {b, 1, 10, false}} {
		if err := q.push(p.ns, drafts(p.ns[0], p.n, p.size)); (err == nil) != p.ok {
			t.Errorf("push of %d for %d: %v", p.n, p.ns[0], err)
		}
	}
	q.drop()
	if err := q.push(a, drafts(1, 1, 900)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, q.push(b, drafts(2, 2, 100)), memory.CodeOverloaded)
	if err := q.add(b, drafts(2, 2, 100), true); err != nil {
		t.Errorf("what must get in: %v", err)
	}
	q.close()
	wantCode(t, q.push(a, drafts(1, 1, 1)), memory.CodeUnavailable)
	if got := q.tryTake(1<<20, 100); len(got) != 3 {
		t.Errorf("a closed queue gives %d of 3", len(got))
	}
	q.decided()
	if got := q.tryTake(1<<20, 100); got != nil {
		t.Errorf("a closed and empty queue gives %d", len(got))
	}
}

// resume after close made the number of pauses negative, and nothing was ever
// taken again.
func TestQueueResumeAfterClose(t *testing.T) {
	q := newQueue(upTo(10), 1000)
	q.pause()
	if err := q.push(events.ID{1}, drafts(1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if got := q.tryTake(10, 10); got != nil {
		t.Error("a paused queue gave something")
	}
	q.close()
	q.resume()
	if got := q.tryTake(10, 10); len(got) != 1 {
		t.Error("a closed queue keeps what it has")
	}
	q.decided()
}

// A flood of one namespace holds another one up by what is under way already.
func TestFloodDoesNotHoldUpAnother(t *testing.T) {
	g := newGate()
	w := newWorld(t, g)
	w.opt = func(o *Options) { o.MaxFrameBytes = 5000 }
	w.mustStart()
	w.namespace("flood")
	w.namespace("quiet")
	entered, let := g.shut()
	defer let()
	var wg sync.WaitGroup
	wg.Go(func() {
		items := make([]Item, 400)
		for i := range items {
			items[i].Capture = memory.Capture{Agent: "a", Text: fmt.Sprint("flood ", i)}
		}
		if _, err := w.writer.Capture(context.Background(), "flood", items, memory.WaitApplied); err != nil {
			t.Error(err)
		}
	})
	<-entered
	start := w.last()
	wg.Go(func() {
		r, err := w.try("quiet", memory.Capture{Text: "one"})
		if err != nil {
			t.Error(err)
			return
		}
		// One frame at the door, one waiting for it, one sealed, and then its turn.
		if at := position(t, r.Position).Seq; at > start+4 {
			t.Errorf("it is in frame %d; the flood was at %d", at, start+1)
		}
	})
	await(t, "the quiet one to be there", func() bool {
		n, _ := w.writer.QueueDepth()
		return n+w.writer.flight.count() == 401
	})
	let()
	wg.Wait()
	if n := w.writer.Counters().Frames.Load(); n < 30 {
		t.Errorf("the flood took %d frames only: nothing was shown", n)
	}
}

func TestOverload(t *testing.T) {
	g := newGate()
	w := newWorld(t, g)
	var limit atomic.Int64
	limit.Store(5)
	w.opt = func(o *Options) { o.QueueLimit = func() int { return int(limit.Load()) } }
	w.mustStart()
	w.namespace("team-a")
	resume, err := w.writer.Pause(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		w.batch("team-a", memory.Capture{Text: "a"}, memory.Capture{Text: "b"}, memory.Capture{Text: "c"})
	})
	await(t, "three to be queued", func() bool { n, _ := w.writer.QueueDepth(); return n == 3 })
	items := make([]Item, 3)
	for i := range items {
		items[i].Capture = memory.Capture{Agent: "a", Text: "too much"}
	}
	_, err = w.writer.Capture(context.Background(), "team-a", items, memory.WaitApplied)
	if e := wantCode(t, err, memory.CodeOverloaded); e.RetryAfter == 0 || e.Hint == "" {
		t.Errorf("%+v", e)
	}
	if n, _ := w.writer.QueueDepth(); n != 3 {
		t.Errorf("depth is %d", n)
	}
	limit.Store(6) // which the writer hears of
	wg.Go(func() {
		w.batch("team-a", memory.Capture{Text: "d"}, memory.Capture{Text: "e"}, memory.Capture{Text: "f"})
	})
	await(t, "six to be queued", func() bool { n, _ := w.writer.QueueDepth(); return n == 6 })
	limit.Store(2)
	if _, err = w.writer.Capture(context.Background(), "team-a", items[:1], memory.WaitApplied); memory.CodeOf(err) != memory.CodeOverloaded {
		t.Errorf("six wait, two may: %v", err)
	}
	resume()
	resume()
	wg.Wait()
}

// upTo is a limit that stays.
func upTo(n int) func() int { return func() int { return n } }
