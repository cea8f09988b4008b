package node

import (
	"context"
	"sync/atomic"

	"mneme/internal/ingest"
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
	leads   atomic.Bool // only the shard's leader announces
	dropped atomic.Uint64
}

func newFeed(q *query.Service, wanted func(subject string) bool) *feed {
	return &feed{query: q, wanted: wanted, queue: make(chan *projections.Applied, 1024)}
}

// Work implements replica.Worker: each event is announced by one node.
func (f *feed) Work(ctx context.Context, _ *ingest.Writer) {
	f.leads.Store(true)
	defer f.leads.Store(false)
	<-ctx.Done()
}

func (f *feed) push(a *projections.Applied) {
	if !f.leads.Load() {
		return
	}
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
