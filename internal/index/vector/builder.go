package vector

import (
	"context"
	"fmt"
	"time"
)

const (
	// insertBatch is the most insertions between two looks at the context and
	// at who else wants the graph.
	insertBatch = batchMost
	// Tombstones are compacted away beyond compactShare tenths of the slots
	// and not for fewer than compactMin.
	compactShare = 3
	compactMin   = 256
	// catchUp is the number of new vectors that a compaction copies while
	// writers wait.
	catchUp = 256
)

// kickLocked starts the builder where there is work and none runs.
func (s *Set) kickLocked() {
	if s.busy || s.closed || !s.workDue() {
		return
	}
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(context.Background())
	}
	s.busy = true
	s.idle = make(chan struct{})
	s.builder.Add(1)
	go s.build()
}

// build is the builder. It ends when nothing is left to do.
func (s *Set) build() {
	defer s.builder.Done()
	for {
		gen := s.gen.Load()
		switch {
		case s.ctx.Err() != nil:
		case compactionDue(gen):
			s.compact(gen)
		case s.guardDue(gen):
			s.askGuard(gen)
		case s.insertDue(gen):
			s.insertSome()
		}
		s.rest()
		s.mu.Lock()
		if s.ctx.Err() != nil || !s.workDue() {
			s.busy = false
			close(s.idle)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// rest leaves the processor to others for as long as Options.Pace says.
func (s *Set) rest() {
	if s.opt.Pace == nil {
		return
	}
	d := s.opt.Pace()
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// workDue reports whether the builder has something to do.
func (s *Set) workDue() bool {
	gen := s.gen.Load()
	return compactionDue(gen) || s.guardDue(gen) || s.insertDue(gen)
}

func compactionDue(gen *generation) bool {
	killed, n := int(gen.store.killed.Load()), int(gen.store.n.Load())
	return killed >= compactMin && killed*10 > n*compactShare
}

// insertDue reports whether the graph lacks vectors that it should have.
func (s *Set) insertDue(gen *generation) bool {
	if s.opt.Engine == EngineExact || gen.asked.Load() == broken {
		return false
	}
	n := gen.store.n.Load()
	live := int(n) - int(gen.store.killed.Load())
	return live >= s.opt.ExactBelow && gen.inserted() < n
}

// insertSome moves a few vectors of the tail into the graph.
func (s *Set) insertSome() {
	s.buildMu.Lock()
	defer s.buildMu.Unlock()
	gen := s.gen.Load() // Load may have replaced it
	if gen.graph == nil {
		s.mu.Lock() // writers have taken the store of a generation under it
		gen = s.withGraph(gen)
		s.gen.Store(gen)
		s.mu.Unlock()
	}
	if !gen.graph.insert(insertBatch) {
		s.breakGraph(gen)
	}
}

// compact builds a generation without the tombstones of old beside it and
// swaps. Searches go on with old, and the tail of old grows meanwhile.
func (s *Set) compact(old *generation) {
	fresh, err := s.newGeneration()
	if err != nil {
		// The same options made the first generation.
		panic(fmt.Sprintf("vector: compact: %v", err))
	}
	c := compaction{old: old.store, fresh: fresh.store}
	for {
		c.copyRows(catchUp)
		for s.insertDue(fresh) {
			if s.ctx.Err() != nil {
				return
			}
			fresh = s.withGraph(fresh)
			if !fresh.graph.insert(insertBatch) {
				s.breakGraph(fresh)
			} else if s.guardDue(fresh) {
				s.askGuard(fresh)
			}
		}
		if s.guardDue(fresh) {
			s.askGuard(fresh)
		}
		if s.ctx.Err() != nil {
			return
		}
		if old.store.n.Load()-c.next <= catchUp {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gen.Load() != old {
		return // Load came first
	}
	c.copyRows(0)
	c.copyTombstones()
	s.gen.Store(fresh)
}

// compaction copies the live rows of a store that still grows.
type compaction struct {
	old, fresh *store
	next       uint32   // first slot of old not yet looked at
	from       []uint32 // slot in old for each slot in fresh
}

// copyRows copies until at most leave rows are left. At the call with 0 the
// caller keeps writers away.
func (c *compaction) copyRows(leave uint32) {
	for c.old.n.Load()-c.next > leave {
		view := c.old.view()
		for ; c.next < view.n; c.next++ {
			if !view.isDead(c.next) {
				c.fresh.copyFrom(&view, c.next)
				c.from = append(c.from, c.next)
			}
		}
	}
}

// copyTombstones marks what was deleted after it was copied.
func (c *compaction) copyTombstones() {
	view := c.old.view()
	for slot, from := range c.from {
		if view.isDead(from) {
			c.fresh.kill(uint32(slot))
		}
	}
}

// Wait returns once the builder has nothing left to do: every vector is in the
// graph, the guard has looked, tombstones are few. Errors: ErrClosed, the
// context's.
func (s *Set) Wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		busy, idle, closed := s.busy, s.idle, s.closed
		s.mu.Unlock()
		if closed {
			return fmt.Errorf("wait for the graph: %w", ErrClosed)
		}
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("wait for the graph: %w", ctx.Err())
		}
	}
}
