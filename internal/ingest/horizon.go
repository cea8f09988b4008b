package ingest

import (
	"context"
	"fmt"
	"sync"
)

// horizon is what a linearizable read has to see: everything that its writer
// said is in the log, and everything in front of the writer's leader.began. A
// frame is accepted before Raft hears of it, so Raft's commit index says nothing
// of it. It is safe for concurrent use.
type horizon struct {
	mu       sync.Mutex
	accepted uint64 // the last sequence that the writer said is in the log
	applied  uint64 // the state stands here at least
	open     bool   // the round admits: all that writers before it put into the log is applied
	why      error  // why the round does not open
	moved    chan struct{}
}

func (h *horizon) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// accept is called before anybody is told that the log has the frame.
func (h *horizon) accept(seq uint64) { h.change(func() { h.accepted = max(h.accepted, seq) }) }

func (h *horizon) apply(seq uint64) { h.change(func() { h.applied = max(h.applied, seq) }) }

func (h *horizon) begin(seq uint64) {
	h.change(func() { h.open, h.why, h.applied = true, nil, max(h.applied, seq) })
}

// end closes the round. With why nobody waits for the next one.
func (h *horizon) end(why error) { h.change(func() { h.open, h.why = false, why }) }

// close is the end of the writer: no round of it opens any more. Why an earlier round did
// not open stays what is told.
func (h *horizon) close(why error) {
	h.change(func() {
		h.open = false
		if h.why == nil {
			h.why = why
		}
	})
}

// reach waits until the state holds what was accepted before the call.
func (h *horizon) reach(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	target := h.accepted
	for !h.open || h.applied < target {
		if h.why != nil {
			return fmt.Errorf("the log's end is not certain: %w", h.why)
		}
		if h.moved == nil {
			h.moved = make(chan struct{})
		}
		moved := h.moved
		h.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		h.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
