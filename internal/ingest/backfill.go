package ingest

import (
	"context"
	"maps"
	"sync"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// EmbedderSource gives the embedder of a space.
type EmbedderSource interface {
	For(ctx context.Context, s embed.Space) (embed.Embedder, error)
}

// Comparer searches a namespace's two spaces for a sample. It fills in what a
// search finds: Sample, Recall and Agreement.
type Comparer func(ctx context.Context, ns events.ID, from, to embed.Space) (memory.SpaceComparison, error)

// Backfill gives records the vectors that they lack, in all namespaces of a shard:
// those that wait in the current space for a model outside derivation, and all of
// them in a space that is being built. It has a finished space compared with the
// current one, switches to it, and drops what was kept long enough. What is left
// to do follows from the state alone, so that another leader or the next start
// goes on.
//
// Each space has a goroutine of its own, so an embedder that fails or hangs holds
// up only the namespaces that use it.
type Backfill struct {
	source  EmbedderSource
	compare Comparer
	wake    chan struct{} // capacity 1: something was applied

	mu     sync.Mutex
	spaces map[target]*spaceWork // of the present term; one that has nothing to do stays until it ends
	plans  uint64                // that were ever made
}

// target is a space to fill. Filling the next space of a namespace rests and
// compares, which must not hold up those whose current space it is.
type target struct {
	key      projections.SpaceKey
	building bool // it is the next space; else the current one
}

// BuildStatus is how the building of a space goes on this node, since it leads.
type BuildStatus struct {
	Space          embed.Space
	Phase          string // memory.PhaseFilling, …
	Skipped        uint64 // versions that have no vector in it
	Rate           float64
	Err            string // of the last attempt that failed
	ErrAt, RetryAt time.Time
}

// NewBackfill makes the worker; Work runs it.
func NewBackfill(source EmbedderSource, compare Comparer) *Backfill {
	return &Backfill{source: source, compare: compare, wake: make(chan struct{}, 1), spaces: map[target]*spaceWork{}}
}

// Wake says that something was applied. It does not wait.
func (b *Backfill) Wake() { signal(b.wake) }

func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Status tells how the building of a namespace's space goes; false if this node
// has not begun with it.
func (b *Backfill) Status(ns events.ID) (BuildStatus, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t, s := range b.spaces {
		if j := s.jobs[ns]; t.building && j != nil && j.turn > 0 {
			return j.status, true
		}
	}
	return BuildStatus{}, false
}

// Failing is how many namespaces wait for an embedder that failed.
func (b *Backfill) Failing() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.spaces {
		for _, j := range s.jobs {
			if j.status.Phase == memory.PhaseWaiting {
				n++
			}
		}
	}
	return n
}

// Work fills in vectors through the writer of one term, until ctx ends.
func (b *Backfill) Work(ctx context.Context, w *Writer) {
	var running sync.WaitGroup
	defer b.forget()
	defer running.Wait()
	drop := time.NewTimer(0)
	defer drop.Stop()
	for {
		for _, s := range b.plan(w) {
			running.Go(func() { s.run(ctx) })
		}
		select {
		case <-b.wake:
		case <-drop.C:
			drop.Reset(w.dropKept(ctx))
		case <-ctx.Done():
			return
		}
	}
}

func (b *Backfill) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.spaces)
}

// plan gives each space the namespaces that lack vectors in it, and returns the
// spaces that come to have work for the first time.
func (b *Backfill) plan(w *Writer) (begun []*spaceWork) {
	v := w.opt.State.View()
	defer v.Close()
	list := v.Namespaces()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plans++
	lacks := func(ns *projections.NamespaceInfo, t target) {
		s := b.spaces[t]
		if s == nil {
			s = &spaceWork{target: t, backfill: b, writer: w, wake: make(chan struct{}, 1), jobs: map[events.ID]*job{}}
			b.spaces[t], begun = s, append(begun, s)
		}
		j := s.jobs[ns.ID]
		if j == nil || !t.building {
			signal(s.wake)
		}
		if j == nil {
			j = &job{ns: ns.ID, name: ns.Name, at: map[uint32]uint32{}, unembeddable: map[projections.PendingDoc]bool{}}
			s.jobs[ns.ID] = j
		}
		j.plan = b.plans
	}
	for i := range list {
		ns := &list[i]
		if v.NamespaceTotals(ns.ID).Pending > 0 {
			lacks(ns, target{key: ns.Space})
		}
		if !ns.Next.IsZero() {
			lacks(ns, target{key: ns.Next, building: true})
		}
	}
	for _, s := range b.spaces {
		maps.DeleteFunc(s.jobs, func(_ events.ID, j *job) bool { return j.plan != b.plans })
	}
	return begun
}
