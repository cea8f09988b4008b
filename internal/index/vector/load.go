package vector

import (
	"fmt"
	"io"
	"math"
)

// Load takes over a graph that Save wrote, after the vectors have been added.
// IDs in the file which the set lacks, deleted since, become tombstones placed
// amid their neighbours; IDs in the set past the end of the file are inserted
// by the builder. The recall guard looks before the graph answers.
//
// An error is ErrGraphFile, for a file that is damaged, was made with other
// parameters or does not fit the vectors, or ErrClosed; the set is unchanged
// and builds its graph anew.
func (s *Set) Load(r io.Reader) error {
	g, ids, err := s.readGraph(r)
	if err != nil {
		return fmt.Errorf("load graph: %w: %w", ErrGraphFile, err)
	}
	if g == nil {
		return nil
	}
	s.buildMu.Lock()
	defer s.buildMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("load graph: %w", ErrClosed)
	}
	old := s.gen.Load()
	if old.inserted() >= uint32(len(ids)) {
		return nil // the builder was faster
	}
	st, err := adopt(old.store, ids)
	if err != nil {
		return fmt.Errorf("load graph: %w: %w", ErrGraphFile, err)
	}
	g.store = st
	g.n.Store(uint32(len(ids)))
	if st != old.store {
		placeGhosts(g, old.store)
	}
	s.gen.Store(&generation{store: st, graph: g})
	s.kickLocked()
	return nil
}

// readGraph decodes a file. The graph is nil where the file or the engine has
// none; its store holds only IDs.
func (s *Set) readGraph(in io.Reader) (*hnsw, []ID, error) {
	r := &fileReader{in: in}
	b, err := r.bytes(fileHeaderLen)
	if err != nil {
		return nil, nil, err
	}
	h, err := parseHeader(b, s.dim, s.opt.Params)
	if err != nil {
		return nil, nil, err
	}
	g := newHNSW(s.opt.Params, s.opt.BuildWorkers, &s.kern, nil)
	idSlab := newSlab[uint32](1)
	for _, part := range []struct {
		to *slab[uint32]
		n  uint32
	}{{idSlab, h.count}, {g.ground, h.count}, {g.upper, h.upper}} {
		if err := r.rows(part.to, part.n); err != nil {
			return nil, nil, err
		}
	}
	if err := r.end(); err != nil {
		return nil, nil, err
	}
	if h.count == 0 || s.opt.Engine != EngineMneme {
		return nil, nil, nil
	}
	g.upperRows = h.upper
	view := idSlab.view()
	if err := checkGraph(g, &view, h.count, h.entry); err != nil {
		return nil, nil, err
	}
	ids := make([]ID, h.count)
	for i := range ids {
		ids[i] = *view.at(uint32(i))
	}
	g.setEntry(h.entry, levelOf(ids[h.entry], s.opt.Params.M))
	return g, ids, nil
}

// adopt returns a store whose first slots are those of the file: st itself if
// they already are, else a copy of it in which each ID that only the file has
// is a tombstone.
func adopt(st *store, ids []ID) (*store, error) {
	view := st.view()
	last := ids[len(ids)-1]
	shared := view.seek(last, 0)
	if shared < view.n && view.id(shared) == last {
		shared++
	}
	at, ghosts := uint32(0), 0
	for _, id := range ids {
		switch {
		case at < shared && view.id(at) == id:
			at++
		case at < shared && view.id(at) < id:
			return nil, fmt.Errorf("id %d is not in the file", view.id(at))
		default:
			ghosts++
		}
	}
	if ghosts == 0 {
		return st, nil
	}
	if ghosts*10 > len(ids)*compactShare {
		return nil, fmt.Errorf("%d of %d nodes have no vector", ghosts, len(ids))
	}
	fresh := newStore(st.dim)
	fresh.reserve(int(view.n) + ghosts)
	at = 0
	for _, id := range ids {
		if at < shared && view.id(at) == id {
			fresh.copyWhole(&view, at)
			at++
		} else {
			fresh.kill(fresh.append(id, nil))
		}
	}
	for ; at < view.n; at++ {
		fresh.copyWhole(&view, at)
	}
	return fresh, nil
}

// copyWhole appends a slot of another store, with its tombstone.
func (s *store) copyWhole(view *storeView, slot uint32) {
	if to := s.copyFrom(view, slot); view.isDead(slot) {
		s.kill(to)
	}
}

// placeGhosts gives each node that has no vector in old the mean direction of
// its neighbours that have one, so that walks pass it where they used to.
func placeGhosts(g *hnsw, old *store) {
	had, now, links := old.view(), g.store.view(), g.view()
	isGhost := func(slot uint32) bool {
		_, ok := had.find(now.id(slot))
		return !ok
	}
	mean, one := make([]float32, g.store.dim), make([]float32, g.store.dim)
	for slot := range g.inserted() {
		if !isGhost(slot) {
			continue
		}
		clear(mean)
		row := links.ground.row(slot)
		for _, link := range row[:linkCount(row)] {
			to := link &^ treeLink
			if isGhost(to) {
				continue
			}
			dequantise(one, now.rows.row(to), now.scale(to))
			for i, x := range one {
				mean[i] += x
			}
		}
		size := float32(math.Sqrt(float64(dotFloats(mean, mean))))
		if size == 0 {
			continue
		}
		for i := range mean {
			mean[i] /= size
		}
		*now.scales.at(slot) = quantise(now.rows.row(slot), mean)
	}
}
