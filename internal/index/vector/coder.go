//go:build !windows

package vector

import (
	"math/rand"
	"sync"
	"sync/atomic"

	coderhnsw "github.com/coder/hnsw"
)

// overfetch is how many times k the coder engine asks for, since its result
// set is no larger than what it is asked for.
const overfetch = 4

// coderGraph is github.com/coder/hnsw. It never adds a key twice nor deletes
// one, both of which panic in v0.6.1, and scores what it finds anew. A panic
// retires it.
type coderGraph struct {
	params Params
	kern   *kernel
	store  *store
	mu     sync.RWMutex
	lib    *coderhnsw.Graph[uint32]
	n      atomic.Uint32
}

func newCoder(p Params, kern *kernel, st *store) (graph, error) {
	lib := coderhnsw.NewGraph[uint32]()
	lib.M = p.M
	lib.Ml = 1 / float64(p.M)
	lib.EfSearch = max(p.EfSearch, p.EfConstruction)
	lib.Rng = rand.New(rand.NewSource(1))
	lib.Distance = func(a, b []float32) float32 { return 1 - dotFloats(a, b) }
	return &coderGraph{params: p, kern: kern, store: st, lib: lib}, nil
}

func (g *coderGraph) inserted() uint32 { return g.n.Load() }

// bytes leaves out the library's maps, of which it keeps no count.
func (g *coderGraph) bytes() int64 { return 0 }

func (g *coderGraph) insert(limit int) (ok bool) {
	slot := g.n.Load()
	view := g.store.view()
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { ok = recover() == nil }()
	for ; limit > 0 && slot < view.n; limit, slot = limit-1, slot+1 {
		vec := make([]float32, g.store.dim)
		dequantise(vec, view.rows.row(slot), view.scale(slot))
		g.lib.Add(coderhnsw.MakeNode(slot, vec))
		g.n.Store(slot + 1)
	}
	return true
}

func (g *coderGraph) search(view *storeView, sc *scratch, k int, f Filter, upto uint32) bool {
	nodes, ok := g.ask(g.floats(sc), max(overfetch*k, g.params.EfSearch))
	if !ok {
		return false
	}
	a := allowed{view: view, filter: f, below: upto}
	for len(nodes) > 0 {
		batch := nodes[:min(batchLen, len(nodes))]
		nodes = nodes[len(batch):]
		n := 0
		for _, node := range batch {
			if a.ok(node.Key) {
				sc.ids[n] = node.Key
				n++
			}
		}
		g.kern.gather(sc.query, &view.rows, sc.ids[:n], sc.dots)
		for i, slot := range sc.ids[:n] {
			if k := makeKey(float32(sc.dots[i])*(sc.scale*view.scale(slot)), slot); sc.best.admits(k) {
				sc.best.add(k)
			}
		}
	}
	return true
}

// floats gives the query as the library wants it.
func (g *coderGraph) floats(sc *scratch) []float32 {
	q := make([]float32, g.store.dim)
	dequantise(q, sc.query, sc.scale)
	return q
}

func (g *coderGraph) ask(q []float32, k int) (nodes []coderhnsw.Node[uint32], ok bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	defer func() { ok = recover() == nil }()
	return g.lib.Search(q, k), true
}
