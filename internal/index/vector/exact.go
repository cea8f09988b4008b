package vector

import "context"

// exactScan compares a query with rows in batches. It is the whole answer for
// small sets and narrow filters, and the answer for the tail of large ones.
type exactScan struct {
	ctx    context.Context
	err    error
	kern   *kernel
	view   *storeView
	sc     *scratch
	cursor uint32 // where the next allowed ID is looked for
	fill   int
	rows   int
	yield  func(ID) bool // visit, bound once so that a search allocates nothing
}

// scanCheck is the number of rows between two looks at the context.
const scanCheck = 16 * batchLen

func (sc *scratch) startScan(ctx context.Context, kern *kernel, view *storeView) *exactScan {
	s := &sc.scan
	s.ctx, s.err, s.kern, s.view, s.sc = ctx, nil, kern, view, sc
	s.cursor, s.fill, s.rows = 0, 0, 0
	return s
}

// release drops references so that a pooled scratch keeps nothing alive.
func (s *exactScan) release() { s.ctx, s.view, s.kern, s.err = nil, nil, nil, nil }

// offer takes one allowed slot.
func (s *exactScan) offer(slot uint32) {
	s.sc.ids[s.fill] = slot
	s.fill++
	if s.fill == batchLen {
		s.flush()
	}
}

// flush scores the slots offered since the last one.
func (s *exactScan) flush() {
	sc := s.sc
	ids := sc.ids[:s.fill]
	s.kern.gather(sc.query, &s.view.rows, ids, sc.dots)
	for i, slot := range ids {
		if k := makeKey(float32(sc.dots[i])*(sc.scale*s.view.scale(slot)), slot); sc.best.admits(k) {
			sc.best.add(k)
		}
	}
	s.rows += s.fill
	s.fill = 0
	if s.rows >= scanCheck {
		s.rows = 0
		s.err = s.ctx.Err()
	}
}

// slots scans the live slots from..to-1 that f (nil: all) allows.
func (s *exactScan) slots(from, to uint32, f Filter) error {
	for slot := from; slot < to && s.err == nil; slot++ {
		if s.view.isDead(slot) || f != nil && !f.Contains(s.view.id(slot)) {
			continue
		}
		s.offer(slot)
	}
	s.flush()
	return s.err
}

// allowed scans what f allows, by walking f instead of the slots.
func (s *exactScan) allowed(f Filter) error {
	f.Each(s.yield)
	s.flush()
	return s.err
}

func (s *exactScan) visit(id ID) bool {
	s.cursor = s.view.seek(id, s.cursor)
	if s.cursor >= s.view.n {
		return false
	}
	if s.view.id(s.cursor) == id && !s.view.isDead(s.cursor) {
		s.offer(s.cursor)
	}
	return s.err == nil
}
