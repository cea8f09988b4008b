package node

import (
	"context"
	"sync/atomic"

	"mneme/internal/projections"
	"mneme/internal/query"
	"mneme/memory"
)

// feed carries applied events from the applying goroutine to the publisher of
// live feeds. It never makes the former wait: what a slow publisher cannot take
// is dropped and counted; whoever needs every event reads the events endpoint.
type feed struct {
	query   *query.Service
	wanted  func(subject string) bool // nil: nobody knows, so all are
	queue   chan *projections.Applied
	dropped atomic.Uint64
}

func newFeed(q *query.Service, wanted func(subject string) bool) *feed {
	return &feed{query: q, wanted: wanted, queue: make(chan *projections.Applied, 1024)}
}

func (f *feed) push(a *projections.Applied) {
	select {
	case f.queue <- a:
	default:
		f.dropped.Add(uint64(len(a.Events)))
	}
}

// Feed yields applied events with the subject to announce them on, until ctx
// ends or yield fails.
func (f *feed) Feed(ctx context.Context, yield func(subject string, ev memory.Event) error) error {
	for {
		select {
		case a := <-f.queue:
			if err := f.query.FeedEvents(a, f.wanted, yield); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
