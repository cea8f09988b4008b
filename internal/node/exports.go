package node

import (
	"context"
	"sync"

	"mneme/memory"
)

// exports are the exports under way. Each holds a view of the state for as long as
// its reader takes, and with it what was erased since it began.
type exports struct {
	mu    sync.Mutex
	begun uint64
	open  map[uint64]context.CancelCauseFunc
}

// errEndedByErasure is why an export was ended.
var errEndedByErasure = memory.Errorf(memory.CodeUnavailable, "the export was ended: what was erased since it began has to leave the node's files").
	WithHint("export again; what was erased is not in it")

// begin counts an export as under way until over is called. It comes before the
// view is opened.
func (e *exports) begin(ctx context.Context) (_ context.Context, over func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		e.open = map[uint64]context.CancelCauseFunc{}
	}
	e.begun++
	id := e.begun
	e.open[id] = cancel
	return ctx, func() {
		cancel(nil)
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.open, id)
	}
}

// present returns a function that ends the exports that are under way now.
func (e *exports) present() (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.begun
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, cancel := range e.open {
			if id <= last {
				cancel(errEndedByErasure)
			}
		}
	}
}
