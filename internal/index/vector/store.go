package vector

import (
	"math"
	"sort"
	"sync/atomic"
)

// store holds quantised vectors, IDs and tombstones by slot. Slots are given in
// ID order. append and kill need the owner's lock; views need none.
type store struct {
	dim, stride int
	rows        *slab[uint8]
	scales      *slab[float32]
	ids         *slab[uint32]
	dead        *slab[uint64] // one bit a slot
	n           atomic.Uint32 // slots in use, tombstones included
	killed      atomic.Uint32 // tombstones
}

func newStore(dim int) *store {
	return &store{
		dim:    dim,
		stride: padded(dim),
		rows:   newSlab[uint8](padded(dim)),
		scales: newSlab[float32](1),
		ids:    newSlab[uint32](1),
		dead:   newSlab[uint64](1),
	}
}

func (s *store) reserve(n int) {
	s.rows.grow(n, 0)
	s.scales.grow(n, 0)
	s.ids.grow(n, 0)
	s.dead.grow((n+63)/64, 0)
}

// append gives the next slot to id. fill writes the row and returns its scale;
// without one the row is zero.
func (s *store) append(id ID, fill func(row []uint8) float32) uint32 {
	slot := s.n.Load()
	s.reserve(int(slot) + 1)
	rows, scales, ids := s.rows.view(), s.scales.view(), s.ids.view()
	if fill != nil {
		*scales.at(slot) = fill(rows.row(slot))
	} else {
		quantise(rows.row(slot), nil)
	}
	*ids.at(slot) = id
	s.n.Store(slot + 1)
	return slot
}

// copyFrom appends a slot of another store, without its tombstone.
func (s *store) copyFrom(view *storeView, slot uint32) uint32 {
	return s.append(view.id(slot), func(row []uint8) float32 {
		copy(row, view.rows.row(slot))
		return view.scale(slot)
	})
}

// kill puts a tombstone on slot and reports whether there was none.
func (s *store) kill(slot uint32) bool {
	dead := s.dead.view()
	bit := uint64(1) << (slot & 63)
	if atomic.OrUint64(dead.at(slot>>6), bit)&bit != 0 {
		return false
	}
	s.killed.Add(1)
	return true
}

func (s *store) bytes() int64 {
	return s.rows.bytes() + s.scales.bytes() + s.ids.bytes() + s.dead.bytes()
}

// bytesPerVector is what one vector needs: row, scale, ID, tombstone.
func (s *store) bytesPerVector() float64 { return float64(s.stride) + 4 + 4 + 1.0/8 }

// storeView is a store as it stood at one moment: n is read first, so that the
// tables read after it hold at least n slots.
type storeView struct {
	n      uint32
	killed uint32
	rows   view[uint8]
	scales view[float32]
	ids    view[uint32]
	dead   view[uint64]
}

func (s *store) view() storeView {
	n := s.n.Load()
	return storeView{n: n, killed: s.killed.Load(), rows: s.rows.view(), scales: s.scales.view(), ids: s.ids.view(), dead: s.dead.view()}
}

func (v *storeView) id(slot uint32) ID { return *v.ids.at(slot) }

func (v *storeView) scale(slot uint32) float32 { return *v.scales.at(slot) }

func (v *storeView) isDead(slot uint32) bool {
	return v.killed != 0 && atomic.LoadUint64(v.dead.at(slot>>6))>>(slot&63)&1 != 0
}

// seek returns the first slot at or after from whose ID is not below id, or n.
// It looks near from first, since callers ask for ascending IDs.
func (v *storeView) seek(id ID, from uint32) uint32 {
	if from < v.n { // as far on as the ID is, where none between was dropped
		if first := v.id(from); first <= id && id-first < ID(v.n-from) {
			if at := from + uint32(id-first); v.id(at) == id {
				return at
			}
		}
	}
	step := uint32(1)
	lo, hi := from, from
	for hi < v.n && v.id(hi) < id {
		lo = hi + 1
		hi += min(step, v.n-hi)
		step *= 2
	}
	return lo + uint32(sort.Search(int(hi-lo), func(i int) bool { return v.id(lo+uint32(i)) >= id }))
}

// find returns the slot of id.
func (v *storeView) find(id ID) (uint32, bool) {
	slot := v.seek(id, 0)
	return slot, slot < v.n && v.id(slot) == id
}

// checkVector returns an error unless vec has dim finite floats and a finite
// squared length, which keeps every dot product finite (Cauchy-Schwarz).
func checkVector(vec []float32, dim int) error {
	if len(vec) != dim {
		return ErrDimension
	}
	if !(dotFloats(vec, vec) <= math.MaxFloat32) {
		return ErrNotFinite
	}
	return nil
}
