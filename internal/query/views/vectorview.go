package views

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"mneme/internal/events"
	"mneme/internal/index/vector"
	"mneme/internal/projections"
)

// vectorView is the vectors of a state: one set for each (partition, space). Sets come and go under mu; searches hold a set, not the lock.
type vectorView struct {
	mu   sync.RWMutex
	sets map[uint32][]*VectorSet // by partition; lists are replaced, not changed
}

type setKey struct {
	partition uint32
	space     projections.SpaceKey
}

// VectorSet is the vectors of one partition in one space, with what their
// VectorIDs mean. VectorIDs count from 0 without gaps; one that is not there has
// noDoc.
type VectorSet struct {
	key setKey
	ns  events.ID
	dim int
	set *vector.Set

	saved atomic.Int64 // vectors in the graph that its file holds; 0 = there is none

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

func newVectorView() *vectorView { return &vectorView{sets: map[uint32][]*VectorSet{}} }

// of lists a partition's sets; the list belongs to the view.
func (v *vectorView) of(partition uint32) []*VectorSet {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.sets[partition]
}

func (v *vectorView) get(key setKey) *VectorSet {
	for _, set := range v.of(key.partition) {
		if set.key.space == key.space {
			return set
		}
	}
	return nil
}

func (v *vectorView) put(set *VectorSet) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sets[set.key.partition] = append(slices.Clone(v.sets[set.key.partition]), set)
}

// all lists the sets by key.
func (v *vectorView) all() []*VectorSet {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var out []*VectorSet
	for _, partition := range slices.Sorted(maps.Keys(v.sets)) {
		out = append(out, v.sets[partition]...)
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
func (v *vectorView) drop(ns events.ID) []*VectorSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []*VectorSet
	for partition, sets := range v.sets {
		if sets[0].ns == ns {
			out = append(out, sets...)
			delete(v.sets, partition)
		}
	}
	return out
}

// dropSpace takes the sets of a namespace in one space out and returns them.
func (v *vectorView) dropSpace(gone projections.DroppedSpace) []*VectorSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []*VectorSet
	for partition, sets := range v.sets {
		is := func(s *VectorSet) bool { return s.ns == gone.Namespace && s.key.space == gone.Space }
		if i := slices.IndexFunc(sets, is); i >= 0 {
			out = append(out, sets[i])
			if v.sets[partition] = slices.Delete(slices.Clone(sets), i, i+1); len(v.sets[partition]) == 0 {
				delete(v.sets, partition)
			}
		}
	}
	return out
}

// Stats describes the set as it is now.
func (s *VectorSet) Stats() vector.Stats { return s.set.Stats() }

func (s *VectorSet) String() string {
	return fmt.Sprintf("partition %d, space %x: %d vectors", s.key.partition, s.key.space[:2], s.set.Stats().Live)
}

// Wait waits until the graph holds every vector that it is to hold.
func (s *VectorSet) Wait(ctx context.Context) error { return s.set.Wait(ctx) }

// snapshot returns the meaning of the VectorIDs so far; it is not written to.
func (s *VectorSet) snapshot() []chunkRef {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.docs
}

// idsOf appends the VectorIDs of documents.
func (s *VectorSet) idsOf(dst []vector.ID, docs ...uint32) []vector.ID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, doc := range docs {
		if int(doc) >= len(s.first) || s.first[doc] == 0 {
			continue
		}
		for id := s.first[doc] - 1; int(id) < len(s.docs) && s.docs[id].doc == doc; id++ {
			dst = append(dst, id)
		}
	}
	return dst
}

// note records what VectorIDs mean, before they can be found. IDs that are
// known already are left alone; it returns how many of refs are those.
func (s *VectorSet) note(from uint32, refs []chunkRef) int {
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
func (s *VectorSet) remove(doc uint32) {
	for _, id := range s.idsOf(nil, doc) {
		s.set.Delete(id)
	}
}
