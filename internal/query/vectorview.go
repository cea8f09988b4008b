package query

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
)

// vectorView is the vectors of a state: one set for each (partition,
// space). Sets come and go under mu; searches hold a set, not the lock.
type vectorView struct {
	mu   sync.RWMutex
	sets map[uint32][]*vectorSet // by partition; lists are replaced, not changed
}

type setKey struct {
	part  uint32
	space projections.SpaceKey
}

// vectorSet is one set with what its VectorIDs mean. VectorIDs count from 0
// without gaps; one that is not there has noDoc.
type vectorSet struct {
	key setKey
	ns  events.ID
	dim int
	set *vector.Set

	kept atomic.Int64 // vectors in the graph that its file holds; 0 = there is none

	mu    sync.RWMutex
	docs  []chunkRef // by VectorID; only ever appended to
	first []uint32   // by DocID: 1 + its first VectorID; 0 = it has none
}

// chunkRef is the document and chunk that a vector belongs to.
type chunkRef struct {
	doc   uint32
	chunk uint16
}

const noDoc = math.MaxUint32

func newVectorView() *vectorView { return &vectorView{sets: map[uint32][]*vectorSet{}} }

// of lists a partition's sets; the list belongs to the view.
func (v *vectorView) of(part uint32) []*vectorSet {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.sets[part]
}

func (v *vectorView) get(key setKey) *vectorSet {
	for _, set := range v.of(key.part) {
		if set.key.space == key.space {
			return set
		}
	}
	return nil
}

func (v *vectorView) put(set *vectorSet) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sets[set.key.part] = append(slices.Clone(v.sets[set.key.part]), set)
}

// all lists the sets by key.
func (v *vectorView) all() []*vectorSet {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []*vectorSet
	for _, part := range slices.Sorted(maps.Keys(v.sets)) {
		out = append(out, v.sets[part]...)
	}
	return out
}

// close stops the builders. Searches under way go on.
func (v *vectorView) close() {
	for _, set := range v.all() {
		_ = set.set.Close() // always nil
	}
}

// drop takes the sets of a namespace out and returns them.
func (v *vectorView) drop(ns events.ID) []*vectorSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []*vectorSet
	for part, sets := range v.sets {
		if sets[0].ns == ns {
			out = append(out, sets...)
			delete(v.sets, part)
		}
	}
	return out
}

// dropSpace takes the sets of a namespace in one space out and returns them.
func (v *vectorView) dropSpace(gone projections.DroppedSpace) []*vectorSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []*vectorSet
	for part, sets := range v.sets {
		is := func(s *vectorSet) bool { return s.ns == gone.Namespace && s.key.space == gone.Space }
		if i := slices.IndexFunc(sets, is); i >= 0 {
			out = append(out, sets[i])
			if v.sets[part] = slices.Delete(slices.Clone(sets), i, i+1); len(v.sets[part]) == 0 {
				delete(v.sets, part)
			}
		}
	}
	return out
}

// snapshot returns the meaning of the VectorIDs so far; it is not written to.
func (s *vectorSet) snapshot() []chunkRef {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.docs
}

// idsOf appends the VectorIDs of a document.
func (s *vectorSet) idsOf(dst []vector.ID, doc uint32) []vector.ID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if int(doc) >= len(s.first) || s.first[doc] == 0 {
		return dst
	}
	for id := s.first[doc] - 1; int(id) < len(s.docs) && s.docs[id].doc == doc; id++ {
		dst = append(dst, id)
	}
	return dst
}

// note records what VectorIDs mean, before they can be found. IDs that are
// known already are left alone; it returns how many of refs are those.
func (s *vectorSet) note(from uint32, refs []chunkRef) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := max(0, min(len(s.docs)-int(from), len(refs)))
	for len(s.docs) < int(from) {
		s.docs = append(s.docs, chunkRef{doc: noDoc})
	}
	for _, ref := range refs[known:] {
		if ref.doc != noDoc {
			if n := int(ref.doc) + 1 - len(s.first); n > 0 {
				s.first = append(s.first, make([]uint32, n)...)
			}
			if s.first[ref.doc] == 0 {
				s.first[ref.doc] = uint32(len(s.docs)) + 1
			}
		}
		s.docs = append(s.docs, ref)
	}
	return known
}

// remove takes a document's vectors out.
func (s *vectorSet) remove(doc uint32) {
	for _, id := range s.idsOf(nil, doc) {
		s.set.Delete(id)
	}
}

// newSet makes an empty set for a partition of the view; nil if the partition
// is not there any more or its namespace does not have that space.
func (s *Service) newSet(v *projections.View, key setKey) (*vectorSet, error) {
	p, ok := v.PartitionByID(key.part)
	if !ok {
		return nil, nil
	}
	ns, ok, err := v.NamespaceByID(p.Namespace)
	if err != nil || !ok || ns.Deleted {
		return nil, err
	}
	eff, err := s.opt.Book.Of(v, ns)
	if err != nil {
		return nil, err
	}
	space, ok := eff.SpaceOf(key.space)
	if !ok {
		return nil, nil
	}
	return s.makeSet(key, ns.ID, space.Dimensions)
}

func (s *Service) makeSet(key setKey, ns events.ID, dim int) (*vectorSet, error) {
	out := &vectorSet{key: key, ns: ns, dim: dim}
	opt := s.vectorOpt
	opt.Exact = func(ctx context.Context, ids []vector.ID, dst []float32) error {
		return s.fullPrecision(ctx, out, ids, dst)
	}
	var err error
	if out.set, err = vector.NewSet(dim, opt); err != nil {
		return nil, err
	}
	return out, nil
}

// applyTo brings a view forward. The caller holds applyMu.
func (s *Service) applyTo(v *vectorView, a *projections.Applied) {
	for _, gone := range a.DroppedSpaces {
		for _, set := range v.dropSpace(gone) {
			s.wg.Go(func() { s.leave(set) })
		}
	}
	for from := 0; from < len(a.Vectors); {
		first := &a.Vectors[from]
		key := setKey{first.Partition, first.Space}
		to := from + 1
		for to < len(a.Vectors) && a.Vectors[to].Partition == key.part && a.Vectors[to].Space == key.space &&
			a.Vectors[to].ID == a.Vectors[to-1].ID+1 {
			to++
		}
		rows := make([]projections.VectorRow, 0, to-from)
		for i := from; i < to; i++ {
			rows = append(rows, a.Vectors[i].Row)
		}
		set, err := s.setFor(v, key)
		if err == nil && set != nil {
			err = set.add(first.ID, rows, nil)
		}
		if err != nil {
			// The records are found by text; there is nobody to return to.
			s.opt.Logger.Error("vectors could not be added", "partition", key.part, "first", first.ID, "err", err)
		}
		from = to
	}
	for _, d := range a.Deaths {
		for _, set := range v.of(d.Partition) {
			set.remove(d.Doc)
		}
	}
	for _, ns := range a.Dropped {
		for _, set := range v.drop(ns) {
			s.wg.Go(func() { s.leave(set) })
		}
	}
}

// setFor finds a set or makes it; nil as newSet says.
func (s *Service) setFor(v *vectorView, key setKey) (*vectorSet, error) {
	if set := v.get(key); set != nil {
		return set, nil
	}
	view := s.opt.State.View()
	set, err := s.newSet(view, key)
	if cerr := view.Close(); err == nil {
		err = cerr
	}
	if set != nil {
		v.put(set)
	}
	return set, err
}
