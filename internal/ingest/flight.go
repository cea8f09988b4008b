package ingest

import (
	"context"
	"sync"
)

// inFlight holds the drafts between decision and answer. It is safe for
// concurrent use.
type inFlight struct {
	mu    sync.Mutex
	byKey map[string]*draft // by what they must not share
	n     int
	idle  chan struct{} // closed when n reaches 0; nil while idle
}

func newInFlight() *inFlight { return &inFlight{byKey: map[string]*draft{}} }

func (f *inFlight) begin(drafts []*draft) {
	if len(drafts) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		f.idle = make(chan struct{})
	}
	f.n += len(drafts)
	for _, d := range drafts {
		for _, k := range d.keysInFlight() {
			f.byKey[k] = d
		}
	}
}

func (f *inFlight) end(drafts []*draft) {
	if len(drafts) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range drafts {
		for _, k := range d.keysInFlight() {
			if f.byKey[k] == d {
				delete(f.byKey, k)
			}
		}
	}
	if f.n -= len(drafts); f.n == 0 {
		close(f.idle)
		f.idle = nil
	}
}

// independent returns how many drafts from the front share nothing with each
// other or with what is in flight, so that state alone decides on them.
func (f *inFlight) independent(drafts []*draft) int {
	seen := map[string]bool{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, d := range drafts {
		for _, k := range d.keysInFlight() {
			if seen[k] || f.byKey[k] != nil {
				return i
			}
			seen[k] = true
		}
	}
	return len(drafts)
}

func (f *inFlight) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// drain waits until nothing is in flight.
func (f *inFlight) drain(ctx context.Context) error {
	for {
		f.mu.Lock()
		idle := f.idle
		f.mu.Unlock()
		if idle == nil {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
