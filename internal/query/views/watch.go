package views

import (
	"sync"

	"mneme/internal/projections"
)

// watch is the position that the memory stands at, vectors included, so it may be
// a moment behind the state. Its channel is closed when that changes.
type watch struct {
	mu     sync.Mutex
	at     projections.Cursor
	ch     chan struct{}
	closed bool
}

// now returns where the memory stands, a channel that closes when that
// changes, and whether it was closed.
func (w *watch) now() (projections.Cursor, <-chan struct{}, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.at, w.ch, w.closed
}

func (w *watch) set(at projections.Cursor) {
	w.mu.Lock()
	w.at = at
	w.wakeLocked()
	w.mu.Unlock()
}

// close wakes everybody for the last time.
func (w *watch) close() {
	w.mu.Lock()
	w.closed = true
	w.wakeLocked()
	w.mu.Unlock()
}

func (w *watch) wakeLocked() {
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}
