package vector

import "slices"

// Reachability. Pruning can cut the last link to a node, most of all among
// equal vectors. So each node but the first chooses a parent, and neither of
// the two links between them is ever pruned: the ground layer contains a tree.
// A node's parent is the first link of its row. To leave room for pruning by
// distance, a node has at most M/2 children; a node that finds no parent among
// its candidates takes the slot before it, which cannot have children yet.

// maxChildren is the number of children a node may have.
func (g *hnsw) maxChildren() int { return max(1, g.params.M/2) }

// insert adds the next slot (Algorithm 1). The builder calls it for slot 0, 1,
// 2 and so on.
func (g *hnsw) insert() bool {
	slot := g.n.Load()
	view := g.store.view()
	level := levelOf(view.id(slot), g.params.M)
	g.addRows(slot, level)
	entry, top := g.entry()
	if top < 0 {
		g.setEntry(slot, level)
		g.n.Store(1)
		return true
	}
	w := walker{kern: g.kern, sc: g.sc, q: view.vecs.row(slot), store: &view, graph: g.view()}
	best := w.descend(makeKey(w.score(entry), entry), top, level)
	for layer := min(level, top); layer >= 0; layer-- {
		near := w.near(best, layer, g.params.EfConstruction)
		best = near[0]
		g.link(&w, slot, layer, near)
	}
	if level > top {
		g.setEntry(slot, level)
	}
	g.n.Store(slot + 1)
	return true
}

// link connects a new node with the best of the candidates on a layer, both
// ways. Its own links are written first: a reader that comes to it can go on.
func (g *hnsw) link(w *walker, slot uint32, layer int, candidates []key) {
	sc := w.sc
	picked := g.choose(w, candidates, g.params.M, true, none)
	if layer == 0 {
		picked = g.withParent(slot, candidates, picked)
	}
	sc.merged = sc.merged[:0]
	for _, to := range picked {
		sc.merged = append(sc.merged, makeKey(w.scoreOf(candidates, to), slot))
	}
	setLinks(w.graph.links(slot, layer), picked)
	// choose reuses sc.picked, so the links are read back from the row.
	row := w.graph.links(slot, layer)
	for i := range picked {
		g.linkBack(w, row[i], layer, sc.merged[i])
	}
}

// scoreOf finds the score of slot among candidates, or computes it.
func (w *walker) scoreOf(candidates []key, slot uint32) float32 {
	for _, k := range candidates {
		if keySlot(k) == slot {
			return keyScore(k)
		}
	}
	return w.score(slot)
}

// withParent chooses a parent for slot, the nearest with room for a child, and
// returns picked with it in front.
func (g *hnsw) withParent(slot uint32, candidates []key, picked []uint32) []uint32 {
	most := uint8(g.maxChildren())
	parent := slot - 1
	if i := slices.IndexFunc(picked, func(p uint32) bool { return g.children[p] < most }); i >= 0 {
		parent = picked[i]
	} else {
		for _, k := range candidates {
			if g.children[keySlot(k)] < most {
				parent = keySlot(k)
				break
			}
		}
	}
	g.children[parent]++
	if i := slices.Index(picked, parent); i >= 0 {
		copy(picked[1:], picked[:i])
	} else if len(picked) < g.params.M {
		picked = append(picked, 0)
		copy(picked[1:], picked)
	} else {
		copy(picked[1:], picked)
	}
	picked[0] = parent
	return picked
}

// keepOnOverflow says whether a row that is chosen anew is filled up again with
// what the choice left over.
const keepOnOverflow = true

// linkBack adds to the row of from a link to the new node, whose key carries
// the score between them. A full row is chosen anew (Algorithm 4).
func (g *hnsw) linkBack(w *walker, from uint32, layer int, added key) {
	row := w.graph.links(from, layer)
	if n := linkCount(row); n < len(row) {
		setLinks(row[n:n+1], []uint32{keySlot(added)})
		return
	}
	sc := w.sc
	back := walker{kern: w.kern, sc: sc, q: w.store.vecs.row(from), store: w.store, graph: w.graph}
	g.kern.gather(back.q, &w.store.vecs, row, sc.dots)
	keys := append(sc.pruned[:0], added)
	for i, to := range row {
		keys = append(keys, makeKey(sc.dots[i], to))
	}
	sc.pruned = keys
	slices.Sort(keys)
	base := none
	if layer == 0 {
		base = from
	}
	picked := g.choose(&back, keys, len(row), keepOnOverflow, base)
	if layer == 0 {
		i := slices.Index(picked, row[0])
		copy(picked[1:], picked[:i])
		picked[0] = row[0]
	}
	setLinks(row, picked)
}

// choose picks at most limit of the candidates (Algorithm 4): one is kept if
// it is nearer to the base than to all kept before. What is left over fills
// the room that remains, if fill is set ("keepPruned"). Where from is a slot,
// its tree links are kept in any case. The result lies in sc.picked.
func (g *hnsw) choose(w *walker, candidates []key, limit int, fill bool, from uint32) []uint32 {
	sc := w.sc
	picked, left := sc.picked[:0], sc.left[:0]
	room := limit
	if from != none {
		for _, k := range candidates {
			if g.inTree(&w.graph, from, keySlot(k)) {
				room--
			}
		}
	}
	for _, k := range candidates {
		slot := keySlot(k)
		switch {
		case from != none && g.inTree(&w.graph, from, slot):
			picked = append(picked, slot)
		case room > 0 && w.apart(slot, keyScore(k), picked):
			picked = append(picked, slot)
			room--
		default:
			left = append(left, slot)
		}
		if room == 0 && from == none {
			break
		}
	}
	if fill {
		picked = append(picked, left[:min(room, len(left))]...)
	}
	sc.picked, sc.left = picked, left
	return picked
}

// inTree reports whether the ground link between two slots is one between
// parent and child.
func (g *hnsw) inTree(v *graphView, from, to uint32) bool {
	return v.ground.row(from)[0] == to || v.ground.row(to)[0] == from
}

// apart reports whether slot is nearer to the base than to every one of kept.
func (w *walker) apart(slot uint32, toBase float32, kept []uint32) bool {
	const step = 4 // rows the kernel takes at once
	q := w.store.vecs.row(slot)
	for len(kept) > 0 {
		n := min(step, len(kept))
		w.kern.gather(q, &w.store.vecs, kept[:n], w.sc.dots)
		for _, d := range w.sc.dots[:n] {
			if d > toBase {
				return false
			}
		}
		kept = kept[n:]
	}
	return true
}
