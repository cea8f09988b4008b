package route

import (
	"context"
	"sync"
)

// rounds lets callers that come together share one question, which is asked after each of
// them has come: an answer to an earlier one says nothing of what was written since. One
// round runs at a time, and those who come meanwhile are the next one.
type rounds struct {
	ask func() (string, error)

	mu      sync.Mutex
	now     *round // that runs, or has run; nil before the first one
	waiting *round // that nobody has begun; nil if nobody waits
}

type round struct {
	done   chan struct{}
	answer string
	err    error
}

// join returns the answer to a question that was asked after the call. Errors: ctx's, and
// those of ask.
func (s *rounds) join(ctx context.Context) (string, error) {
	s.mu.Lock()
	r := s.waiting
	if r == nil {
		r = &round{done: make(chan struct{})}
		s.waiting = r
		go s.run(r, s.now)
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.answer, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (s *rounds) run(r, before *round) {
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	s.now, s.waiting = r, nil
	s.mu.Unlock()
	r.answer, r.err = s.ask()
	close(r.done)
}
