package raftfsm

import (
	"context"
	"sync"
)

// verifier shares one round of heartbeats among the readers that came before
// the round began. A reader that comes during a round waits for the next one:
// the running round says nothing about the time after its heartbeats left.
type verifier struct {
	verify func() error

	mu   sync.Mutex
	next *verifyRound // collects readers; nil if none wait
	wake chan struct{}
}

type verifyRound struct {
	done chan struct{}
	err  error
}

func newVerifier(verify func() error) *verifier {
	return &verifier{verify: verify, wake: make(chan struct{}, 1)}
}

// run serves rounds until ctx ends.
func (v *verifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			v.take().finish(ErrClosed)
			return
		case <-v.wake:
			if round := v.take(); round != nil {
				round.finish(v.verify())
			}
		}
	}
}

func (v *verifier) take() *verifyRound {
	v.mu.Lock()
	defer v.mu.Unlock()
	round := v.next
	v.next = nil
	return round
}

func (r *verifyRound) finish(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
}

// join waits for a round that begins after the call.
func (v *verifier) join(ctx context.Context) error {
	v.mu.Lock()
	if v.next == nil {
		v.next = &verifyRound{done: make(chan struct{})}
	}
	round := v.next
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
	select {
	case <-round.done:
		return round.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
