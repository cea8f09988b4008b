package vector

import (
	"context"
	"log/slog"
	"math"
	"slices"
)

const (
	// guardK is how many of the nearest the guard judges by, at most: those that an answer
	// shows. Searches ask for more, to rank them with other evidence.
	guardK = 10
	// guardSlack forgives differences in the last bits of a score.
	guardSlack = 1e-6
	// guardFirst is the size at which a graph still being built is first
	// looked at.
	guardFirst = 4096
	// guardMargin is the share of the recall that may be missing which a candidate list is
	// not chosen by: it is the first of several that pass, so a small sample flatters it. It is
	// that of GuardSample queries, and half of it is that of four times as many.
	guardMargin = 0.35
	// guardDoubt is how far the recall of GuardSample queries can be from that of all: a graph
	// that misses the mark by less is asked guardMore times as many. (Of nearly equal texts the
	// recall of 64 varies by 0.008 in its standard deviation, and more where one is asked twice.)
	guardDoubt = 0.04
	guardMore  = 4
	// broken stands in generation.asked for a graph that takes no more.
	broken = ^uint32(0)
)

// widener is a graph that can look further at a price.
type widener interface {
	graph
	// searchWide is search with a candidate list of ef, or k if that is more.
	searchWide(view *storeView, sc *scratch, k, ef int, f Filter, upto uint32) bool
	// setEf replaces the candidate list of search.
	setEf(ef int)
	// longestList is the longest one that is worth it among n slots.
	longestList(n uint32) int
}

// guardDue reports whether the recall guard should look at gen's graph: when
// it has caught up, then after it has grown by an eighth and caught up again,
// and at every doubling; and when so many more queries were asked than when it
// last looked (see looks).
func (s *Set) guardDue(gen *generation) bool {
	if gen.graph == nil {
		return false
	}
	inserted, asked := gen.graph.inserted(), gen.asked.Load()
	if inserted == 0 || asked == broken {
		return false
	}
	caughtUp := inserted == gen.store.n.Load()
	if asked == 0 {
		return caughtUp || inserted >= guardFirst
	}
	if looks(s.recent.asked.Load()) > looks(gen.queries.Load()) {
		return true
	}
	return uint64(inserted) >= 2*uint64(asked) || caughtUp && inserted >= asked+max(1, asked/8)
}

// askGuard measures the graph's recall and lets it answer or not.
func (s *Set) askGuard(gen *generation) {
	inserted, queries := gen.graph.inserted(), s.recent.asked.Load()
	state, recall := guardOK, 0.0
	if s.opt.GuardRecall >= 0 {
		var ok bool
		if recall, ok = s.measureRecall(s.ctx, gen, inserted); !ok {
			return // closing
		}
		if recall < s.opt.GuardRecall {
			state = guardTripped
		}
	}
	gen.recall.Store(math.Float64bits(recall))
	gen.asked.Store(inserted)
	gen.queries.Store(queries)
	s.opt.Logger.Debug("recall guard looked", slog.Float64("recall", recall), slog.Float64("threshold", s.opt.GuardRecall),
		slog.Int("vectors", int(inserted)), slog.Uint64("queries", queries))
	if before := gen.guarded.Swap(state); state == guardTripped && before != guardTripped {
		s.opt.Logger.Warn("recall guard tripped, searches scan exactly",
			slog.String("engine", string(s.opt.Engine)), slog.Float64("recall", recall),
			slog.Float64("threshold", s.opt.GuardRecall), slog.Int("vectors", int(inserted)))
	}
}

// breakGraph retires a graph that panicked.
func (s *Set) breakGraph(gen *generation) {
	gen.guarded.Store(guardTripped)
	gen.asked.Store(broken)
	s.opt.Logger.Warn("vector engine panicked, searches scan exactly",
		slog.String("engine", string(s.opt.Engine)), slog.Int("vectors", int(gen.graph.inserted())))
}

// measureRecall compares the graph's answers with those of a scan over the same slots.
// Data of high intrinsic dimension needs a longer candidate list, not another engine: where
// the graph can, it gets the shortest one that finds enough. False: interrupted.
func (s *Set) measureRecall(ctx context.Context, gen *generation, inserted uint32) (float64, bool) {
	t := trial{set: s, gen: gen, inserted: inserted, lists: []int{0}}
	if wide, can := gen.graph.(widener); can {
		t.lists = candidateLists(s.opt.Params.EfSearch, wide.longestList(inserted))
	}
	if !t.extend(ctx, s.opt.GuardSample) {
		return 0, false
	}
	recall, ok := t.recall(ctx, 0)
	if !ok || recall >= t.enough() {
		return t.choose(0, recall, ok)
	}
	longest := len(t.lists) - 1
	if longest > 0 {
		recall, ok = t.recall(ctx, longest)
	}
	if !ok || recall < s.opt.GuardRecall-guardDoubt {
		return t.choose(longest, recall, ok)
	}
	// What was asked is worth more of it to find a list by, for each search pays for a longer one.
	if recall < s.opt.GuardRecall || s.recent.kept() > s.opt.GuardSample {
		if !t.extend(ctx, guardMore*s.opt.GuardSample) {
			return 0, false
		}
		recall, ok = t.recall(ctx, longest)
		if !ok || recall < s.opt.GuardRecall {
			return t.choose(longest, recall, ok)
		}
	}
	for low, high := 0, longest; ; {
		if high-low <= 1 {
			return t.choose(high, recall, true)
		}
		middle := (low + high) / 2
		found, ok := t.recall(ctx, middle)
		switch {
		case !ok:
			return 0, false
		case found >= t.enough():
			high, recall = middle, found
		default:
			low = middle
		}
	}
}

// candidateLists are the lengths to choose from, in steps of a quarter.
func candidateLists(shortest, longest int) (lists []int) {
	for ef := shortest; ef < longest; ef += max(1, ef/4) {
		lists = append(lists, ef)
	}
	return append(lists, longest)
}

// trial asks a graph the queries of a sample.
type trial struct {
	set      *Set
	gen      *generation
	inserted uint32
	lists    []int // lengths of candidate lists to try, ascending; of a graph that has none, one
	sample   []judged
}

// extend makes the sample one of so many queries, as far as there are. False: interrupted.
func (t *trial) extend(ctx context.Context, to int) bool {
	more, ok := t.set.judge(ctx, t.gen, t.inserted, len(t.sample), to)
	t.sample = append(t.sample, more...)
	return ok
}

// enough is the recall that a list is chosen by: the smaller the sample, the further above
// the one that is promised.
func (t *trial) enough() float64 {
	margin := guardMargin * math.Sqrt(float64(t.set.opt.GuardSample)/float64(max(1, len(t.sample))))
	return t.set.opt.GuardRecall + min(1, margin)*(1-t.set.opt.GuardRecall)
}

// recall is that of the i-th list. False: interrupted.
func (t *trial) recall(ctx context.Context, i int) (float64, bool) {
	return t.set.recallOf(ctx, t.gen, t.sample, func(view *storeView, sc *scratch, k int) bool {
		if wide, can := t.gen.graph.(widener); can {
			return wide.searchWide(view, sc, k, t.lists[i], nil, t.inserted)
		}
		return t.gen.graph.search(view, sc, k, nil, t.inserted)
	})
}

// choose has searches use the i-th list, unless the trial was interrupted, and passes on what
// came of it.
func (t *trial) choose(i int, recall float64, ok bool) (float64, bool) {
	if wide, can := t.gen.graph.(widener); can && ok {
		wide.setEf(t.lists[i])
	}
	return recall, ok
}

// judged is a query of the guard's sample, and what a scan found for it.
type judged struct {
	row   []uint8
	scale float32
	k     int     // that the graph is asked for
	right int     // as many of the nearest are to be found
	worst float32 // the score of the last of them
}

// judge scans for the queries from one number to another: those that were asked lately, and, as
// far as these do not make GuardSample, directions half-way between two stored vectors. (A stored
// vector itself is found more easily than what people ask. On 20,000 comments of Go code, asked
// for by parts of others, recall@10 of a list of 40 is 0.972, half-way 0.949, and of stored ones
// 0.999.) False: interrupted.
func (s *Set) judge(ctx context.Context, gen *generation, inserted uint32, from, to int) (sample []judged, ok bool) {
	sc := takeScratch(padded(s.dim))
	defer sc.giveBack()
	sc.view = gen.store.view()
	view := &sc.view
	kept := s.recent.kept()
	for i := from; i < to; i++ {
		k := s.recent.take(sc, i)
		if k == 0 {
			if kept >= s.opt.GuardSample {
				break // there is enough that was asked
			}
			if k = guardK; !setBetween(view, sc, inserted, i-from, to-from) {
				break
			}
		}
		sc.best.reset(min(k, guardK))
		if err := sc.startScan(ctx, &s.kern, view).slots(0, inserted, nil); err != nil {
			return nil, false
		}
		n := len(sc.best.keys)
		if n == 0 {
			break // none lives
		}
		sample = append(sample, judged{row: slices.Clone(sc.query), scale: sc.scale, k: k, right: n, worst: keyScore(sc.best.keys[n-1]) - guardSlack})
	}
	return sample, true
}

// recallOf is the share of what a scan found that search finds. A hit counts if its score is
// in the scan's top, so that equal vectors do not count against the graph. False: interrupted.
func (s *Set) recallOf(ctx context.Context, gen *generation, sample []judged, search func(view *storeView, sc *scratch, k int) bool) (float64, bool) {
	sc := takeScratch(padded(s.dim))
	defer sc.giveBack()
	sc.view = gen.store.view()
	found, wanted := 0, 0
	for i := range sample {
		q := &sample[i]
		if ctx.Err() != nil {
			return 0, false
		}
		wanted += q.right
		copy(sc.query, q.row)
		sc.scale, sc.hasFine = q.scale, false
		sc.best.reset(q.k)
		if !search(&sc.view, sc, q.k) {
			continue // found nothing
		}
		n := 0
		for n < min(q.right, len(sc.best.keys)) && keyScore(sc.best.keys[n]) >= q.worst {
			n++
		}
		found += n
	}
	if wanted == 0 {
		return 1, true
	}
	return float64(found) / float64(wanted), true
}

// setBetween makes the direction half-way between the i-th of a sample and another one the query.
func setBetween(view *storeView, sc *scratch, upto uint32, i, of int) bool {
	one, ok := sampleLive(view, upto, i, of)
	if !ok {
		return false
	}
	other, _ := sampleLive(view, upto, (i+of/3)%of, of)
	stride := len(sc.query)
	if cap(sc.rows) < 2*stride {
		sc.rows = make([]float32, 2*stride)
	}
	sum, more := sc.rows[:stride], sc.rows[stride:2*stride]
	dequantise(sum, view.rows.row(one), view.scale(one))
	dequantise(more, view.rows.row(other), view.scale(other))
	for j := range sum {
		sum[j] += more[j]
	}
	sc.scale, sc.hasFine = quantise(sc.query, sum), false
	return true
}

// sampleLive returns a live slot below upto in the i-th part, when upto is cut in
// "of" equal ones, or the first live one after it.
func sampleLive(view *storeView, upto uint32, i, of int) (uint32, bool) {
	at := uint32(uint64(upto) * uint64(2*i+1) / uint64(2*of))
	for step := uint32(0); step < upto; step++ {
		slot := (at + step) % upto
		if !view.isDead(slot) {
			return slot, true
		}
	}
	return 0, false
}
