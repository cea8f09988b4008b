package vector

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Nodes are inserted in batches. Every node of a batch looks for its neighbours
// in the graph as it was before the batch, and among the nodes of the batch
// before it. Then the links are written: first the forward ones, then the backward
// ones. They are gathered by the node that they start from, so that one goroutine
// writes a row, and once. Workers share both steps. How they do does not change the
// graph, which depends on vectors, IDs, Params and the beginnings of batches only.
//
// Reachability. Pruning can cut the last link to a node, most of all among
// equal vectors. So each node but the first chooses a parent, and neither of
// the two links between them is ever pruned: the ground layer contains a tree.
// A node's parent is the first link of its row; links of the tree carry
// treeLink. To leave room for pruning by distance, a node has at most M/2
// children; a node that finds no parent among its candidates takes the slot
// before it, which cannot have children yet.

const (
	// batchMost is the largest number of nodes inserted together, and batchShare
	// the part of the graph that they may be: nodes of a batch cannot find each
	// other's neighbourhoods.
	batchMost  = 64
	batchShare = 32
	// mostWorkers is the default: it leaves processors to searches.
	mostWorkers = 4
)

// inTree marks a key, where it stands for a link, as one of the tree. Keys of
// walks use the same bit for followed.
const inTree key = 1

// maxChildren is the number of children a node may have.
func (g *hnsw) maxChildren() int { return max(1, g.params.M/2) }

// builder is the memory of insertions.
type builder struct {
	workers int        // 0: as many as there are processors, up to mostWorkers
	scratch []*scratch // one a worker
	plans   []plan
	back    []backLink
	groups  []int // where in back the links of another row begin
}

// plan is where a new node is to stand.
type plan struct {
	slot   uint32
	level  int
	picked [][]key // by layer: the links of its own
	spare  []key   // further candidates on the ground, for want of a parent
}

// backLink is a link to a new node, in the row of from.
type backLink struct {
	from  uint32
	layer int
	to    key
}

// insert adds a batch of the next slots, at most limit of them.
func (g *hnsw) insert(limit int) bool {
	lo := g.n.Load()
	view := g.store.view()
	n := min(limit, batchMost, max(1, int(lo)/batchShare), int(view.n-lo))
	if n <= 0 {
		return true
	}
	g.prepare(&view, lo, n)
	links := g.view()
	plans := g.build.plans[:n]
	g.parallel(n, func(sc *scratch, i int) { g.plan(sc, &view, links, plans, i) })
	if lo == 0 {
		g.setEntry(0, plans[0].level)
	}
	g.writeForward(&view, links, plans)
	groups := g.build.groups
	g.parallel(len(groups)-1, func(sc *scratch, i int) {
		g.linkBack(sc, &view, links, g.build.back[groups[i]:groups[i+1]])
	})
	entry, top := g.entry()
	for i := range plans {
		if plans[i].level > top {
			entry, top = plans[i].slot, plans[i].level
		}
	}
	g.setEntry(entry, top)
	g.n.Store(lo + uint32(n))
	return true
}

// prepare makes room for a batch.
func (g *hnsw) prepare(view *storeView, lo uint32, n int) {
	b := &g.build
	workers := b.workers
	if workers == 0 {
		workers = min(runtime.GOMAXPROCS(0), mostWorkers)
	}
	b.scratch = b.scratch[:min(len(b.scratch), workers)]
	for len(b.scratch) < workers {
		b.scratch = append(b.scratch, newScratch(g.store.stride))
	}
	for len(b.plans) < n {
		b.plans = append(b.plans, plan{})
	}
	for i := range n {
		p := &b.plans[i]
		p.slot = lo + uint32(i)
		p.level = levelOf(view.id(p.slot), g.params.M)
		g.addRows(p.slot, p.level)
		for len(p.picked) <= p.level {
			p.picked = append(p.picked, nil)
		}
		for layer := range p.picked {
			p.picked[layer] = p.picked[layer][:0]
		}
		p.spare = p.spare[:0]
	}
}

// parallel calls work for 0..n-1 from the builder's workers and waits.
func (g *hnsw) parallel(n int, work func(sc *scratch, i int)) {
	b := &g.build
	var next atomic.Int64
	run := func(sc *scratch) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			work(sc, i)
		}
	}
	var wg sync.WaitGroup
	for _, sc := range b.scratch[1:min(len(b.scratch), max(n, 1))] {
		wg.Go(func() { run(sc) })
	}
	run(b.scratch[0])
	wg.Wait()
}

// plan finds the neighbours of the i-th node of a batch (Algorithm 1).
func (g *hnsw) plan(sc *scratch, view *storeView, links graphView, plans []plan, i int) {
	p := &plans[i]
	w := g.walkFrom(p.slot, sc, view, links)
	// The batch is small enough to look at all of it.
	sc.slots = sc.slots[:0]
	for j := range i {
		sc.slots = append(sc.slots, plans[j].slot)
	}
	w.gather(sc.slots)
	sc.pruned = sc.pruned[:0]
	for j, slot := range sc.slots {
		sc.pruned = append(sc.pruned, makeKey(w.scored(j, slot), slot))
	}
	entry, top := g.entry()
	var best key
	if top >= 0 {
		best = w.descend(makeKey(w.score(entry), entry), top, p.level)
	}
	for layer := p.level; layer >= 0; layer-- {
		pool := &sc.pool
		pool.reset(g.params.EfConstruction)
		if layer <= top {
			best = w.near(best, layer, g.params.EfConstruction)[0]
		}
		for j, k := range sc.pruned {
			if plans[j].level >= layer && pool.admits(k) {
				pool.add(k)
			}
		}
		for j := range pool.keys {
			pool.keys[j] &^= followed
		}
		p.picked[layer] = append(p.picked[layer], w.choose(pool.keys, g.params.M)...)
		if layer == 0 {
			p.spare = append(p.spare, pool.keys[:min(len(pool.keys), 4*g.params.M)]...)
		}
	}
}

// writeForward gives the new nodes parents and their own links, and gathers the
// links back. A reader that comes to a new node can go on.
func (g *hnsw) writeForward(view *storeView, links graphView, plans []plan) {
	b := &g.build
	b.back = b.back[:0]
	for i := range plans {
		p := &plans[i]
		if p.slot > 0 {
			g.adopt(view, p)
		}
		for layer := range p.level + 1 {
			row := links.links(p.slot, layer)
			setLinks(row, p.picked[layer])
			for _, k := range p.picked[layer] {
				to := k&^(1<<32-1) | key(p.slot)<<1 | k&inTree
				b.back = append(b.back, backLink{from: keySlot(k), layer: layer, to: to})
			}
		}
	}
	slices.SortFunc(b.back, func(x, y backLink) int {
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.layer, y.layer), cmp.Compare(x.to, y.to))
	})
	b.groups = append(b.groups[:0], 0)
	for i := range b.back {
		if i > 0 && (b.back[i].from != b.back[i-1].from || b.back[i].layer != b.back[i-1].layer) {
			b.groups = append(b.groups, i)
		}
	}
	if len(b.back) > 0 {
		b.groups = append(b.groups, len(b.back))
	}
}

// adopt chooses a parent for a new node, the nearest with room for a child, and
// puts it in front of its ground links.
func (g *hnsw) adopt(view *storeView, p *plan) {
	most := uint8(g.maxChildren())
	hasRoom := func(k key) bool { return g.children[keySlot(k)] < most }
	picked := p.picked[0]
	at := slices.IndexFunc(picked, hasRoom)
	var parent key
	if at >= 0 {
		parent = picked[at]
	} else {
		if i := slices.IndexFunc(p.spare, hasRoom); i >= 0 {
			parent = p.spare[i]
		} else {
			w := g.walkFrom(p.slot, g.build.scratch[0], view, graphView{})
			parent = makeKey(w.score(p.slot-1), p.slot-1)
		}
		if len(picked) < g.params.M {
			picked = append(picked, 0)
		}
		at = len(picked) - 1
	}
	copy(picked[1:], picked[:at])
	picked[0] = parent | inTree
	p.picked[0] = picked
	g.children[keySlot(parent)]++
}

// linkBack adds links to the row of one node. A full row is chosen anew
// (Algorithm 4).
func (g *hnsw) linkBack(sc *scratch, view *storeView, links graphView, added []backLink) {
	from, layer := added[0].from, added[0].layer
	row := links.links(from, layer)
	n := linkCount(row)
	if n+len(added) <= len(row) {
		for i := range added {
			atomic.StoreUint32(&row[n+i], linkOf(added[i].to))
		}
		return
	}
	w := g.walkFrom(from, sc, view, links)
	sc.slots = sc.slots[:0]
	for _, to := range row[:n] {
		sc.slots = append(sc.slots, to&^treeLink)
	}
	w.gather(sc.slots)
	keys := sc.pruned[:0]
	for i, slot := range sc.slots {
		keys = append(keys, makeKey(w.scored(i, slot), slot)|key(row[i]>>31))
	}
	for i := range added {
		keys = append(keys, added[i].to)
	}
	sc.pruned = keys
	slices.Sort(keys)
	picked := w.choose(keys, len(row))
	if layer == 0 && from > 0 {
		parent := slices.IndexFunc(picked, func(k key) bool { return linkOf(k) == row[0] })
		k := picked[parent]
		copy(picked[1:], picked[:parent])
		picked[0] = k
	}
	setLinks(row, picked)
}

// linkOf is what stands in a row for a key.
func linkOf(k key) uint32 { return uint32(k)>>1 | uint32(k&inTree)<<31 }

// choose picks at most limit of the candidates (Algorithm 4): one is kept if it
// is nearer to the base than to all kept before. What is left over fills the
// room that remains ("keepPruned"). Links of the tree are kept in any case. The
// result lies in sc.picked.
func (w *walker) choose(candidates []key, limit int) []key {
	sc := w.sc
	picked, left := sc.picked[:0], sc.left[:0]
	kept := sc.ids[:0]
	room := limit
	for _, k := range candidates {
		room -= int(k & inTree)
	}
	for _, k := range candidates {
		if k&inTree == 0 {
			if room == 0 {
				continue
			}
			if !w.apart(k, kept) {
				left = append(left, k)
				continue
			}
			room--
		}
		picked = append(picked, k)
		kept = append(kept, keySlot(k))
	}
	picked = append(picked, left[:min(room, len(left))]...)
	sc.picked, sc.left = picked, left
	return picked
}

// apart reports whether a candidate is nearer to the base than to every one of
// kept.
func (w *walker) apart(k key, kept []uint32) bool {
	const step = 4 // rows the kernel takes at once
	slot, toBase := keySlot(k), keyScore(k)
	q, scale := w.store.rows.row(slot), w.store.scale(slot)
	for len(kept) > 0 {
		n := min(step, len(kept))
		w.kern.gather(q, &w.store.rows, kept[:n], w.sc.dots)
		for i, other := range kept[:n] {
			if float32(w.sc.dots[i])*(scale*w.store.scale(other)) > toBase {
				return false
			}
		}
		kept = kept[n:]
	}
	return true
}
