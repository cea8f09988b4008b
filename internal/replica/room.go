package replica

import (
	"context"
	"errors"
	"sync"
)

// ErrFull: what was agreed on is not applied yet, since the disk has no room for it.
// The replica goes on by itself when there is room.
var ErrFull = errors.New("the disk has no room for what was agreed on")

// room says whether applying waits for room on the disk.
type room struct {
	mu      sync.Mutex
	full    error // why applying waits, or nil; wraps ErrFull
	changed chan struct{}
}

func newRoom() *room { return &room{changed: make(chan struct{})} }

func (r *room) set(full error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = full
	close(r.changed)
	r.changed = make(chan struct{})
}

// now returns why applying waits, or nil, and a channel that is closed when that
// changes.
func (r *room) now() (full error, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full, r.changed
}

// wait waits until applying does not wait.
func (r *room) wait(ctx context.Context) error {
	for {
		full, changed := r.now()
		if full == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
