package vector

import (
	"context"
	"fmt"
	"math"
)

// narrowDots is what a walk with the default EfSearch costs, in dot products of
// a scan. A walk that finds one slot in n/allowed to be allowed goes on about
// n/allowed times as long, so a scan of the allowed ones is cheaper while allowed
// is below narrowDots*n/allowed. Measured as 1,300 at 20,000 and 1,700 at 60,000
// vectors of 384 dimensions: there a walk takes 25 to 40 µs times n/allowed, a
// scan about 20 ns a row.
const narrowDots = 1500

// wideShare: a search for more than 1/wideShare of the set is a scan.
const wideShare = 16

// hasGraph reports whether gen has a graph that may answer, if the guard trusts it.
func (s *Set) hasGraph(inserted uint32, live int) bool {
	return inserted > 0 && live >= s.opt.ExactBelow
}

// walkPays reports whether a graph search is worth it for k results among
// allowed (-1: unknown) of n slots.
func walkPays(n, k, allowed int) bool {
	if k > n/wideShare {
		return false
	}
	return allowed < 0 || allowed*allowed >= narrowDots*n
}

// Search returns the at most k live vectors nearest to q that f (nil: all)
// allows, best first, ties by smaller ID: never fewer than exist. The caller
// owns the result. q is a unit vector; it is not kept.
// Errors: ErrDimension, ErrNotFinite, the context's.
func (s *Set) Search(ctx context.Context, q []float32, k int, f Filter) ([]Hit, error) {
	if err := checkVector(q, s.dim); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if k <= 0 {
		return nil, nil
	}
	k = min(k, maxSlots)
	sc := takeScratch(padded(s.dim))
	defer sc.giveBack()
	exact := s.asksExact()
	sc.setQuery(q, !exact)
	if err := s.find(ctx, sc, k, wanted(sc, k, exact), f); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if err := s.refine(ctx, sc, k, exact); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	hits := make([]Hit, len(sc.best.keys))
	for i, k := range sc.best.keys {
		hits[i] = Hit{ID: sc.view.id(keySlot(k)), Score: keyScore(k)}
	}
	return hits, nil
}

// Dots writes to dst the scores of ids, which ascend, as a search would give them; NaN
// for what is not there. dst is as long as ids. q is a unit vector; it is not kept.
// Errors: ErrDimension, ErrNotFinite, the context's.
func (s *Set) Dots(ctx context.Context, q []float32, ids []ID, dst []float32) error {
	if err := checkVector(q, s.dim); err != nil {
		return fmt.Errorf("dots: %w", err)
	}
	sc := takeScratch(padded(s.dim))
	defer sc.giveBack()
	exact := s.asksExact()
	sc.setQuery(q, !exact)
	sc.view = s.gen.Load().store.view()
	for from := 0; from < len(ids); from += batchLen {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("dots: %w", err)
		}
		to := min(from+batchLen, len(ids))
		if err := s.dots(ctx, sc, ids[from:to], dst[from:to], exact); err != nil {
			return fmt.Errorf("dots: %w", err)
		}
	}
	return nil
}

// dots is Dots for at most batchLen ids.
func (s *Set) dots(ctx context.Context, sc *scratch, ids []ID, dst []float32, exact bool) error {
	view := &sc.view
	sc.slots, sc.left = sc.slots[:0], sc.left[:0]
	slot := uint32(0)
	for i, id := range ids {
		dst[i] = float32(math.NaN())
		slot = view.seek(id, slot)
		if slot < view.n && view.id(slot) == id && !view.isDead(slot) {
			dst[i] = 0
			sc.slots = append(sc.slots, slot)
		}
	}
	s.kern.gather(sc.query, &view.rows, sc.slots, sc.dots)
	for i, slot := range sc.slots {
		sc.left = append(sc.left, makeKey(float32(sc.dots[i])*(sc.scale*view.scale(slot)), slot))
	}
	if err := s.rescore(ctx, sc, sc.left, exact); err != nil {
		return err
	}
	next := 0
	for i := range dst {
		if dst[i] == 0 {
			dst[i] = keyScore(sc.left[next])
			next++
		}
	}
	return nil
}

// find leaves in sc.best, with slots of sc.view, the candidates for the answer:
// want of them, or at least k where there are as many.
func (s *Set) find(ctx context.Context, sc *scratch, k, want int, f Filter) error {
	gen := s.gen.Load()
	// The graph first: what it takes in later is then covered by the tail.
	upto := gen.inserted()
	sc.view = gen.store.view()
	view := &sc.view
	live := int(view.n - view.killed)
	k = min(k, live)
	want = min(want, live)
	sc.best.reset(want)
	count := -1
	if f != nil {
		count = f.Count()
	}
	if k == 0 || count == 0 {
		return nil
	}
	scan := sc.startScan(ctx, &s.kern, view)
	if s.hasGraph(upto, live) && walkPays(int(view.n), k, count) {
		// Noted behind a tripped guard, too: what is asked may be found where its own
		// directions were not.
		if f == nil && s.recent.note(sc, want) {
			s.mu.Lock()
			s.kickLocked()
			s.mu.Unlock()
		}
		if gen.guarded.Load() == guardOK && gen.graph.search(view, sc, want, f, upto) {
			if err := scan.slots(upto, view.n, f); err != nil {
				return err
			}
			if len(sc.best.keys) >= k {
				return nil
			}
		}
		// The walk met too few, perhaps because no more are allowed.
		sc.best.reset(want)
	}
	if count >= 0 && count < live {
		return scan.allowed(f)
	}
	return scan.slots(0, view.n, f)
}
