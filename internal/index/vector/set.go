package vector

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// Set is the vectors of one (partition, space), always searchable in full. All
// methods may be called concurrently; Add, AddBulk and Delete take turns,
// searches wait for nobody.
type Set struct {
	opt  Options
	dim  int
	kern kernel

	gen    atomic.Pointer[generation]
	recent recent // what the guard asks
	// rounded says that some vectors came as floats: Options.Exact is asked.
	rounded atomic.Bool

	mu     sync.Mutex // writers of gen and its store; the fields below
	lastID int64      // -1 before the first
	closed bool
	busy   bool          // the builder runs
	idle   chan struct{} // closed when it ends; nil before it first runs

	// buildMu is held while the current graph changes. Order: buildMu, mu.
	buildMu sync.Mutex
	ctx     context.Context // the builder's, ended by Close; nil before it first runs
	cancel  context.CancelFunc
	builder sync.WaitGroup
}

// generation is a store with its graph. A set moves to a new one to drop
// tombstones or to take a loaded graph; searches under way stay with the old.
type generation struct {
	store *store
	graph graph // nil for the exact engine, and before a set is large enough for one

	// What the recall guard found, and how large the graph then was.
	guarded atomic.Uint32 // guardNone, guardOK, guardTripped
	recall  atomic.Uint64 // float64 bits
	asked   atomic.Uint32
	queries atomic.Uint64 // how many had been asked then
}

// graph is what finds candidates among the first inserted slots of a store.
type graph interface {
	// insert adds some of the next slots, at most limit. One goroutine at a
	// time calls it. False means that the graph broke and will take no more.
	insert(limit int) bool
	// inserted is the number of slots in the graph.
	inserted() uint32
	// search adds to sc.best up to k live slots below upto which f (nil:
	// all) allows, nearest to sc.query. False means: scan instead.
	search(view *storeView, sc *scratch, k int, f Filter, upto uint32) bool
	// bytes is the memory held beyond the store's.
	bytes() int64
}

const (
	guardNone uint32 = iota
	guardOK
	guardTripped
)

// NewSet returns an empty set of vectors of dim floats, 1..65536. Close it.
func NewSet(dim int, opt Options) (*Set, error) {
	if dim < 1 || dim > maxDim {
		return nil, fmt.Errorf("new set: dimension %d not in 1..%d: %w", dim, maxDim, ErrOptions)
	}
	if err := opt.Validate(); err != nil {
		return nil, fmt.Errorf("new set: %w", err)
	}
	s := &Set{opt: opt.withDefaults(), dim: dim, kern: detectKernels()[0], lastID: -1}
	gen, err := s.newGeneration()
	if err != nil {
		return nil, fmt.Errorf("new set: %w", err)
	}
	s.gen.Store(gen)
	return s, nil
}

// newGeneration returns an empty store. EngineMneme gives it a graph once it is
// large enough: there may be a set for each agent, and most of them stay small.
func (s *Set) newGeneration() (*generation, error) {
	gen := &generation{store: newStore(s.dim)}
	if s.opt.Engine == EngineCoder {
		g, err := newCoder(s.opt.Params, &s.kern, gen.store)
		if err != nil {
			return nil, err
		}
		gen.graph = g
	}
	return gen, nil
}

// withGraph returns gen if it has a graph, or else the same store with one.
func (s *Set) withGraph(gen *generation) *generation {
	if gen.graph != nil {
		return gen
	}
	return &generation{store: gen.store, graph: newHNSW(s.opt.Params, s.opt.BuildWorkers, &s.kern, gen.store)}
}

// inserted is the number of slots in the generation's graph.
func (gen *generation) inserted() uint32 {
	if gen.graph == nil {
		return 0
	}
	return gen.graph.inserted()
}

// Add copies a vector into the set, where the next Search finds it. IDs must
// ascend. Errors: ErrDimension, ErrNotFinite, ErrOrder, ErrFull, ErrClosed.
func (s *Set) Add(id ID, unit []float32) error { return s.AddBulk([]ID{id}, unit) }

// AddBulk copies len(ids) vectors, which stand one after the other in flat,
// into the set: all of them, or none on an error.
func (s *Set) AddBulk(ids []ID, flat []float32) error {
	if len(flat) != len(ids)*s.dim {
		return fmt.Errorf("add %d vectors from %d floats of %d each: %w", len(ids), len(flat), s.dim, ErrDimension)
	}
	for i, id := range ids {
		if err := checkVector(flat[i*s.dim:(i+1)*s.dim], s.dim); err != nil {
			return fmt.Errorf("add vector %d: %w", id, err)
		}
	}
	s.rounded.Store(true)
	return s.addRows(ids, func(i int, row []uint8) float32 {
		return quantise(row, flat[i*s.dim:(i+1)*s.dim])
	})
}

// AddBulkInt8 is AddBulk for vectors whose components are bytes: they are kept
// as they are and compared as if each had length 1. A set may hold vectors of
// both kinds.
func (s *Set) AddBulkInt8(ids []ID, flat []int8) error {
	if len(flat) != len(ids)*s.dim {
		return fmt.Errorf("add %d vectors from %d bytes of %d each: %w", len(ids), len(flat), s.dim, ErrDimension)
	}
	return s.addRows(ids, func(i int, row []uint8) float32 {
		return quantiseInt8(row, flat[i*s.dim:(i+1)*s.dim])
	})
}

// addRows adds rows that fill writes, or none.
func (s *Set) addRows(ids []ID, fill func(i int, row []uint8) float32) error {
	for i, id := range ids {
		if i > 0 && id <= ids[i-1] {
			return fmt.Errorf("add vector %d after %d: %w", id, ids[i-1], ErrOrder)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkOrderLocked(ids[0], len(ids)); err != nil {
		return fmt.Errorf("add vector %d: %w", ids[0], err)
	}
	st := s.gen.Load().store
	st.reserve(int(st.n.Load()) + len(ids))
	for i, id := range ids {
		st.append(id, func(row []uint8) float32 { return fill(i, row) })
	}
	s.lastID = int64(ids[len(ids)-1])
	s.kickLocked()
	return nil
}

func (s *Set) checkOrderLocked(first ID, count int) error {
	switch {
	case s.closed:
		return ErrClosed
	case int64(first) <= s.lastID:
		return fmt.Errorf("after %d: %w", s.lastID, ErrOrder)
	case int(s.gen.Load().store.n.Load()) > maxSlots-count:
		return ErrFull
	}
	return nil
}

// Delete takes id out of every later search and reports whether it was there.
// Its memory is freed when tombstones are compacted away.
func (s *Set) Delete(id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.gen.Load().store
	view := st.view()
	slot, ok := view.find(id)
	if !ok || s.closed || !st.kill(slot) {
		return false
	}
	s.kickLocked()
	return true
}

// SetEfSearch replaces Params.EfSearch, and what the recall guard made of it, for
// the graph as it stands; a graph built anew by a compaction begins with Params
// again. Errors: ErrOptions.
func (s *Set) SetEfSearch(ef int) error {
	if ef < 1 || ef > maxEf {
		return fmt.Errorf("ef %d not in 1..%d: %w", ef, maxEf, ErrOptions)
	}
	if g, ok := s.gen.Load().graph.(*hnsw); ok {
		g.ef.Store(uint32(ef))
	}
	return nil
}

// Stats describes the set as it is now.
func (s *Set) Stats() Stats {
	gen := s.gen.Load()
	inserted := gen.inserted()
	view := gen.store.view()
	st := Stats{
		Live:       int(view.n - view.killed),
		Deleted:    int(view.killed),
		InGraph:    int(inserted),
		Configured: s.opt.Engine,
		Engine:     EngineExact,
		Guard:      [...]GuardState{GuardNone, GuardOK, GuardTripped}[gen.guarded.Load()],
		Recall:     math.Float64frombits(gen.recall.Load()),
		Kernel:     s.kern.name,
		Bytes:      gen.store.bytes(),
	}
	st.BytesPerVector = gen.store.bytesPerVector()
	if s.opt.Engine != EngineExact && (inserted > 0 || st.Live >= s.opt.ExactBelow) {
		st.Tail = int(view.n - inserted)
	}
	if gen.graph != nil {
		st.Bytes += gen.graph.bytes()
		if s.hasGraph(inserted, st.Live) && gen.guarded.Load() == guardOK {
			st.Engine = s.opt.Engine
		}
		if s.opt.Engine == EngineMneme && inserted > 0 {
			st.BytesPerVector += s.opt.Params.linkBytes()
		}
	}
	return st
}

// Close stops the builder and waits for it. Later calls do nothing.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Unlock()
	s.builder.Wait()
	return nil
}
