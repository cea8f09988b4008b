package ingest

import (
	"fmt"
	"sync"

	"mneme/internal/eventlog"
	"mneme/memory"
)

// refusals is everything for which writes are refused before they wait. It is
// safe for concurrent use.
type refusals struct {
	times *times
	outer func() *memory.Error // the node's reasons; may be nil

	mu       sync.Mutex
	diverged *eventlog.DivergedError
	stalled  *memory.Error // the round does not open for now
	ended    *memory.Error // the term is over
}

// RefusalOf says why a writer admits nothing at present, or nil.
func RefusalOf(w *Writer) *memory.Error { return w.refusals.now() }

// now says why nothing can be admitted at present, or nil.
func (r *refusals) now() *memory.Error {
	r.mu.Lock()
	diverged, ended, stalled := r.diverged, r.ended, r.stalled
	r.mu.Unlock()
	switch {
	case ended != nil:
		return ended
	case diverged != nil:
		return memory.Errorf(memory.CodeLogDiverged, "writes are stopped: %v", diverged).WithHint("%s", diverged.Hint)
	}
	if r.outer != nil {
		if e := r.outer(); e != nil {
			return e
		}
	}
	if e := r.times.refusal(); e != nil {
		return e
	}
	return stalled
}

func (r *refusals) divergence() *eventlog.DivergedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.diverged
}

func (r *refusals) setDiverged(d *eventlog.DivergedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.diverged = d
}

func (r *refusals) setStalled(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled = nil
	if err != nil {
		r.stalled = memory.Errorf(memory.CodeUnavailable, "writes are stopped for now: %v", err).
			WithHint("nothing acknowledged is lost; writing goes on by itself when the cause is gone").WithCause(err)
	}
}

func (r *refusals) setEnded(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = memory.Errorf(memory.CodeUnavailable, "this node does not write any more: %v", err).
		WithHint("nothing acknowledged is lost; send it again with the same id").WithCause(err)
}

// DeposedError ends a writer's term: the log holds a frame of a higher one. Its
// owner gives up the leadership of the Raft group.
type DeposedError struct {
	Own, Term uint64 // the writer's term and the one it met
	Seq       uint64 // where
}

func (e *DeposedError) Error() string {
	return fmt.Sprintf("another node leads: the log holds a frame of term %d at sequence %d, this writer is of term %d", e.Term, e.Seq, e.Own)
}
