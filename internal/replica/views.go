package replica

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"mneme/internal/projections"
)

// viewKeeper brings the views after the state. While they follow it, they get
// what is applied as it is applied. After Raft has replaced the state they have to
// be loaded, which takes as long as reading all vectors, and is not done by the
// goroutine that applies: what is applied meanwhile is kept for them.
type viewKeeper struct {
	log *slog.Logger

	loading  sync.Mutex // one load at a time
	mu       sync.Mutex
	views    Views // nil until the replica starts
	behind   bool  // the state was replaced, and the views were not loaded since
	backlog  []*projections.Applied
	replaced uint64        // how often the state was
	wake     chan struct{} // capacity 1: there is something to load
}

func newViewKeeper(log *slog.Logger) *viewKeeper {
	return &viewKeeper{log: log, wake: make(chan struct{}, 1)}
}

// applied is called by the applying goroutine.
func (k *viewKeeper) applied(a *projections.Applied) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.views == nil: // they begin with a load
	case k.behind:
		k.backlog = append(k.backlog, a)
	default:
		k.views.OnApply(a)
	}
}

// stateReplaced is called by whoever replaced the state, before anything is
// applied to the new one.
func (k *viewKeeper) stateReplaced() {
	k.mu.Lock()
	k.behind, k.backlog = true, nil
	k.replaced++
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// start loads the views for the first time.
func (k *viewKeeper) start(ctx context.Context, v Views) error {
	k.mu.Lock()
	k.views, k.behind = v, true
	k.mu.Unlock()
	return k.load(ctx)
}

// load loads views that are behind, until they follow.
func (k *viewKeeper) load(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	for {
		k.mu.Lock()
		if k.views == nil || !k.behind {
			k.mu.Unlock()
			return nil
		}
		at := k.replaced
		k.mu.Unlock()
		if err := k.views.Load(ctx); err != nil {
			return err
		}
		k.follow(at)
	}
}

// follow gives the views what was applied while they were loaded, unless the
// state was replaced once more.
func (k *viewKeeper) follow(at uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.replaced != at {
		return
	}
	for _, a := range k.backlog {
		k.views.OnApply(a)
	}
	k.behind, k.backlog = false, nil
}

// reload loads the views though they follow: the state was replaced by one that
// stands at the same position.
func (k *viewKeeper) reload(ctx context.Context) error {
	k.loading.Lock()
	defer k.loading.Unlock()
	k.mu.Lock()
	v := k.views
	k.mu.Unlock()
	if v == nil {
		return nil
	}
	return v.Load(ctx)
}

// loadRetry is the pause after a load that failed.
const loadRetry = 5 * time.Second

// run loads whenever the state was replaced, until ctx ends.
func (k *viewKeeper) run(ctx context.Context) {
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return
		}
		for {
			err := k.load(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			k.log.Error("vectors could not be loaded after the state was replaced", "err", err, "retry", loadRetry)
			select {
			case <-time.After(loadRetry):
			case <-ctx.Done():
				return
			}
		}
	}
}
