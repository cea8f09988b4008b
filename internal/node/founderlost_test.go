package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/raftfsm"
	"mneme/internal/replica"
)

// A founder that loses its lead in the middle of its start gets ready all the same, and so do
// the others, whichever of them leads meanwhile.
func TestFounderThatLosesItsLeadGetsReady(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	var handed atomic.Int32
	tr := trioOf(t, func(_ int, cfg *Config) {
		cfg.Parts.Group = func(o raftfsm.Options) (replica.Group, error) {
			g, err := raftfsm.Open(o)
			if err == nil {
				work.Go(func() {
					for ctx.Err() == nil {
						if (raftfsm.Candidacy{Group: g}).Leads() && handed.Load() < 3 && g.TransferLeadership(ctx) == nil {
							handed.Add(1)
						}
						select {
						case <-time.After(5 * time.Millisecond):
						case <-ctx.Done():
						}
					}
				})
			}
			return g, err
		}
	})
	tr.openAll()
	tr.writes(0, "x", "something")
	tr.same()
	if handed.Load() < 3 {
		t.Errorf("the lead was handed over %d times", handed.Load())
	}
}
