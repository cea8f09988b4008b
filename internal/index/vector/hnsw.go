package vector

import (
	"sync/atomic"
)

const (
	// none stands in a link row after the last link.
	none = ^uint32(0)
	// treeLink marks a ground link between parent and child, which is never
	// pruned; see hnsw_insert.go.
	treeLink = 1 << 31
)

// maxLevel bounds the layers; a level above it has probability M^-maxLevel.
const maxLevel = 15

// hnsw is the graph over the first inserted slots of a store, after Malkov &
// Yashunin, "Efficient and robust approximate nearest neighbor search using
// Hierarchical Navigable Small World graphs", 2018.
//
// One goroutine at a time inserts, with helpers; any number search meanwhile
// without a lock: links are read and written atomically, one by one. A reader
// may see a row half old and half new, but every link in it leads to a node that
// exists.
type hnsw struct {
	params Params
	kern   *kernel
	store  *store

	// ground holds 2M links a slot; the first is the slot's parent.
	ground *slab[uint32]
	// towers[slot] is the number of the slot's row for layer 1 in upper, of
	// which the rows for its higher layers follow.
	towers *slab[uint32]
	upper  *slab[uint32] // M links a row
	top    atomic.Uint64 // level+1 <<32 | slot of the entry point; 0: empty
	n      atomic.Uint32 // slots inserted
	ef     atomic.Uint32 // candidate list of a search: EfSearch, or what the guard made of it

	// The builder's own.
	upperRows uint32
	children  []uint8 // how many call a slot their parent
	build     builder
}

func newHNSW(p Params, workers int, kern *kernel, st *store) *hnsw {
	g := &hnsw{
		params: p, kern: kern, store: st,
		ground: newSlab[uint32](2 * p.M),
		towers: newSlab[uint32](1),
		upper:  newSlab[uint32](p.M),
		build:  builder{workers: workers},
	}
	g.ef.Store(uint32(p.EfSearch))
	return g
}

// longestList is the longest candidate list that the guard gives searches among n slots: a walk
// with it costs about half of what a scan does. Beyond it a scan is the better answer to data
// that a graph cannot order.
func (g *hnsw) longestList(n uint32) int {
	return min(max(g.params.EfSearch, int(n)*defaultEfSearch/(2*narrowDots)), maxEf)
}

// setEf implements widener.
func (g *hnsw) setEf(ef int) { g.ef.Store(uint32(ef)) }

// levelOf draws the level of id: geometric with ratio 1/m, a function of id
// and m alone, in integers, so that every machine builds the same graph.
func levelOf(id ID, m int) int {
	level, bound := 0, ^uint64(0)/uint64(m)
	for x := uint64(id); level < maxLevel; level++ {
		// splitmix64 (Steele, Lea & Flood 2014).
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		if z ^= z >> 31; z >= bound {
			break
		}
	}
	return level
}

func (g *hnsw) inserted() uint32 { return g.n.Load() }

// entry returns the entry point and its level, or -1 for an empty graph.
func (g *hnsw) entry() (slot uint32, level int) {
	e := g.top.Load()
	return uint32(e), int(e>>32) - 1
}

func (g *hnsw) setEntry(slot uint32, level int) {
	g.top.Store(uint64(level+1)<<32 | uint64(slot))
}

func (g *hnsw) bytes() int64 {
	return g.ground.bytes() + g.towers.bytes() + g.upper.bytes() + int64(g.n.Load())
}

// linkBytes is what one node needs: its ground row, its place in the towers, its
// count of children, and the rows above, of which there are 1/(M-1) a node.
func (p Params) linkBytes() float64 {
	m := float64(p.M)
	return 8*m + 4 + 1 + 4*m/(m-1)
}

// graphView is what one walk reads.
type graphView struct {
	ground, towers, upper view[uint32]
}

func (g *hnsw) view() graphView {
	return graphView{ground: g.ground.view(), towers: g.towers.view(), upper: g.upper.view()}
}

// links returns the link row of slot on a layer.
func (v *graphView) links(slot uint32, layer int) []uint32 {
	if layer == 0 {
		return v.ground.row(slot)
	}
	return v.upper.row(*v.towers.at(slot) + uint32(layer-1))
}

// addRows makes room for a node and returns its place in upper. Its rows are
// empty.
func (g *hnsw) addRows(slot uint32, level int) {
	g.ground.grow(int(slot)+1, none)
	g.towers.grow(int(slot)+1, 0)
	g.upper.grow(int(g.upperRows)+level, none)
	towers := g.towers.view()
	*towers.at(slot) = g.upperRows
	g.upperRows += uint32(level)
	g.children = append(g.children, 0)
}

// setLinks replaces a row. Only what changes is written, since an atomic
// store is dear.
func setLinks(row []uint32, links []key) {
	for i, k := range links {
		if to := linkOf(k); row[i] != to {
			atomic.StoreUint32(&row[i], to)
		}
	}
	for i := len(links); i < len(row) && row[i] != none; i++ {
		atomic.StoreUint32(&row[i], none)
	}
}

// linkCount is the number of links in a row.
func linkCount(row []uint32) int {
	for i, to := range row {
		if to == none {
			return i
		}
	}
	return len(row)
}
