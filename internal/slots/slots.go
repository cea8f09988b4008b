// Package slots bounds how much of one sort is done at once, by a limit that may be set
// while it is done.
//
// Invariant: nothing new begins while as many as the limit, or more, are under way. A lower
// limit ends nothing: it counts for what comes next.
//
// Not its job: what is refused, and with which words.
package slots

import (
	"context"
	"slices"
	"sync"
)

// Pool hands out slots. It may be used concurrently.
type Pool struct {
	mu      sync.Mutex
	limit   int
	taken   int
	waiting []chan struct{} // in order of arrival; closed when the slot is theirs
}

// New makes a pool of so many slots.
func New(limit int) *Pool { return &Pool{limit: limit} }

// Set has another limit count. What waits begins at once where there is room now.
func (p *Pool) Set(limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = limit
	p.handOutLocked()
}

// Limit is how many slots there are.
func (p *Pool) Limit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// Taken is how many are taken, which may be more than the limit after that was lowered.
func (p *Pool) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// Take takes a slot if one is free and nobody waits for it. It does not wait.
func (p *Pool) Take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked()
}

func (p *Pool) takeLocked() bool {
	if p.taken >= p.limit || len(p.waiting) > 0 {
		return false
	}
	p.taken++
	return true
}

// Wait takes a slot as soon as one is free and all who came before have theirs. After an
// error, which is ctx's, none is taken.
func (p *Pool) Wait(ctx context.Context) error {
	p.mu.Lock()
	if p.takeLocked() {
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else { // it was handed out meanwhile
		p.leaveLocked()
	}
	return ctx.Err()
}

// Leave gives a slot back.
func (p *Pool) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked()
}

func (p *Pool) leaveLocked() {
	if p.taken == 0 {
		panic("slots: more were given back than taken")
	}
	p.taken--
	p.handOutLocked()
}

func (p *Pool) handOutLocked() {
	for p.taken < p.limit && len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.taken++
	}
}
