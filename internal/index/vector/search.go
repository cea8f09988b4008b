package vector

import (
	"context"
	"fmt"
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

// graphAnswers reports whether searches of gen go through its graph.
func (s *Set) graphAnswers(gen *generation, inserted uint32, live int) bool {
	return inserted > 0 && live >= s.opt.ExactBelow && gen.guarded.Load() == guardOK
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
	if s.graphAnswers(gen, upto, live) && walkPays(int(view.n), k, count) {
		if gen.graph.search(view, sc, want, f, upto) {
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
