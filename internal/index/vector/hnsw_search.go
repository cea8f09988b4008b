package vector

import (
	"sync/atomic"
	"unsafe"
)

// walker follows links with one query.
type walker struct {
	kern  *kernel
	sc    *scratch
	q     []uint8
	scale float32 // of q
	store *storeView
	graph graphView
	dots  int // dot products computed
}

// walkFrom returns a walker whose query is a row of the store.
func (g *hnsw) walkFrom(slot uint32, sc *scratch, view *storeView, links graphView) walker {
	return walker{kern: g.kern, sc: sc, q: view.rows.row(slot), scale: view.scale(slot), store: view, graph: links}
}

// gather leaves in sc.dots the integer dot products with the rows of slots.
func (w *walker) gather(slots []uint32) {
	w.kern.gather(w.q, &w.store.rows, slots, w.sc.dots)
	w.dots += len(slots)
}

// scored turns the i-th of the dots just gathered, that of slot, into a score.
// It is the same from either side.
func (w *walker) scored(i int, slot uint32) float32 {
	return float32(w.sc.dots[i]) * (w.scale * w.store.scale(slot))
}

// score returns the score of one slot.
func (w *walker) score(slot uint32) float32 {
	w.sc.ids[0] = slot
	w.gather(w.sc.ids[:1])
	return w.scored(0, slot)
}

// fresh gathers the links of a row that this walk has not seen and returns
// their slots. Slots younger than the store view are passed over: the view has
// no vector for them.
func (w *walker) fresh(row []uint32) []uint32 {
	sc := w.sc
	ids, marks, epoch := sc.ids[:len(row)], sc.marks[:w.store.n], sc.epoch
	n := 0
	for i := range row {
		link := atomic.LoadUint32(&row[i])
		if link == none {
			break
		}
		slot := link &^ treeLink
		if slot >= uint32(len(marks)) {
			continue
		}
		// Without a branch, which would be foreseen wrongly half the time.
		seen := uint32(marks[slot] ^ epoch)
		marks[slot] = epoch
		ids[n] = slot
		n += int((seen + 255) >> 8)
	}
	ids = ids[:n]
	w.gather(ids)
	return ids
}

// descend walks greedily from the entry point on layer from to the best node
// on layer to (Algorithm 2 with ef 1).
func (w *walker) descend(best key, from, to int) key {
	for layer := from; layer > to; layer-- {
		for improved := true; improved; {
			improved = false
			row := w.graph.links(keySlot(best), layer)
			n := 0
			for i := range row {
				slot := atomic.LoadUint32(&row[i])
				if slot == none {
					break
				}
				if slot < w.store.n {
					w.sc.ids[n] = slot
					n++
				}
			}
			w.gather(w.sc.ids[:n])
			for i, slot := range w.sc.ids[:n] {
				if k := makeKey(w.scored(i, slot), slot); k < best {
					best, improved = k, true
				}
			}
		}
	}
	return best
}

// near collects in sc.pool the ef nearest nodes of a layer (Algorithm 2). One
// sorted list serves as candidates and as results: what falls out of the
// results need not be followed either.
func (w *walker) near(start key, layer, ef int) []key {
	sc := w.sc
	sc.nextEpoch(w.store.n)
	sc.marks[keySlot(start)] = sc.epoch
	pool := &sc.pool
	pool.reset(ef)
	pool.add(start &^ followed)
	for next := 0; next < len(pool.keys); {
		k := pool.keys[next]
		if k&followed != 0 {
			next++
			continue
		}
		pool.keys[next] = k | followed
		next++
		if next < len(pool.keys) && layer == 0 {
			// Likely the next one whose links are followed.
			prefetch(unsafe.Pointer(w.graph.ground.at(keySlot(pool.keys[next]))))
		}
		for i, slot := range w.fresh(w.graph.links(keySlot(k), layer)) {
			if k := makeKey(w.scored(i, slot), slot); pool.admits(k) {
				next = min(next, pool.add(k))
			}
		}
	}
	return pool.keys
}

// allowed tells which slots a search may return.
type allowed struct {
	view   *storeView
	filter Filter
	below  uint32 // slots from here on are scanned as tail
}

func (a *allowed) ok(slot uint32) bool {
	return slot < a.below && !a.view.isDead(slot) && (a.filter == nil || a.filter.Contains(a.view.id(slot)))
}

// nearAllowed collects in sc.results the ef nearest allowed nodes of the
// ground layer; others are walked through. It gives up and returns false once
// it has computed budget dot products.
func (w *walker) nearAllowed(start key, ef int, a *allowed, budget int) bool {
	sc := w.sc
	sc.nextEpoch(w.store.n)
	sc.marks[keySlot(start)] = sc.epoch
	results := &sc.results
	results.reset(ef)
	if a.ok(keySlot(start)) {
		results.add(start)
	}
	sc.frontier = append(sc.frontier[:0], start)
	for len(sc.frontier) > 0 {
		k := sc.frontier.pop()
		if !results.admits(k) {
			break
		}
		if w.dots > budget {
			return false
		}
		for i, slot := range w.fresh(w.graph.links(keySlot(k), 0)) {
			k := makeKey(w.scored(i, slot), slot)
			if !results.admits(k) {
				continue
			}
			sc.frontier.push(k)
			if a.ok(slot) {
				results.add(k)
			}
		}
	}
	return true
}

// search adds to sc.best the nearest of the first upto slots that f allows,
// as far as the graph finds them. False means that an exact scan is cheaper.
func (g *hnsw) search(view *storeView, sc *scratch, k int, f Filter, upto uint32) bool {
	return g.searchWide(view, sc, k, int(g.ef.Load()), f, upto)
}

// searchWide implements widener.
func (g *hnsw) searchWide(view *storeView, sc *scratch, k, ef int, f Filter, upto uint32) bool {
	slot, level := g.entry()
	if level < 0 || slot >= view.n {
		return false
	}
	w := walker{kern: g.kern, sc: sc, q: sc.query, scale: sc.scale, store: view, graph: g.view()}
	start := w.descend(makeKey(w.score(slot), slot), level, 0)
	ef = max(k, ef)
	if f == nil && g.searchAll(&w, start, ef, upto) {
		return true
	}
	a := allowed{view: view, filter: f, below: upto}
	if !w.nearAllowed(start, ef, &a, budget(view, f)) {
		return false
	}
	for _, k := range sc.results.keys {
		if !sc.best.admits(k) {
			break
		}
		sc.best.add(k)
	}
	return true
}

// searchAll is a search without a filter. Tombstones are few, since compaction
// sees to it: they are walked like others, in a list longer by their share, and
// left out at the end. False, with sc.best as it was: too many of the nearest
// were tombstones.
func (g *hnsw) searchAll(w *walker, start key, ef int, upto uint32) bool {
	sc, view := w.sc, w.store
	longer := ef + int(uint64(ef)*uint64(view.killed)/uint64(view.n))
	for _, k := range w.near(start, 0, longer) {
		if !sc.best.admits(k) {
			break
		}
		if slot := keySlot(k); slot < upto && !view.isDead(slot) {
			sc.best.add(k &^ followed)
		}
	}
	if view.killed == 0 || len(sc.best.keys) == sc.best.limit {
		return true
	}
	sc.best.reset(sc.best.limit)
	return false
}

// walkBudget is the least number of dot products a filtered walk may spend.
const walkBudget = 4096

// budget is the number of dot products after which a walk is given up: what is
// allowed lies far from the query, and a scan of it costs half as much by then.
func budget(view *storeView, f Filter) int {
	if f == nil {
		return max(walkBudget, int(view.n/4))
	}
	allowed := f.Count()
	if allowed < 0 {
		allowed = int(view.n / 4)
	}
	return max(walkBudget, allowed)
}
