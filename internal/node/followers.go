package node

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/query/views"
)

// followers are what the node keeps in memory beside the state, and whoever else has
// to hear of what is applied.
type followers struct {
	views    *views.Views
	feed     *feed
	backfill *ingest.Backfill
	erased   func() // a namespace was deleted
	listed   func() // the directory has changed; nil where nobody asks
	log      *slog.Logger

	voids atomic.Uint64 // frames found void since the start
}

// Load implements replica.Views. A state that took the place of another one may hold
// what was erased here.
func (f *followers) Load(ctx context.Context) error {
	f.erased()
	if f.listed != nil {
		f.listed()
	}
	return f.views.Load(ctx)
}

// OnApply implements replica.Views.
func (f *followers) OnApply(a *projections.Applied) {
	f.views.OnApply(a)
	f.countVoid(a)
	f.feed.push(a)
	f.backfill.Wake()
	f.tellListed(a)
	if len(a.Dropped) > 0 || a.Erased {
		f.erased()
	}
}

// tellListed says that namespaces were placed or deleted.
func (f *followers) tellListed(a *projections.Applied) {
	if f.listed == nil {
		return
	}
	if slices.ContainsFunc(a.Events, func(e projections.AppliedEvent) bool {
		return e.Row.Type == events.TypeNamespacePlaced || e.Row.Type == events.TypeNamespaceDeleted
	}) {
		f.listed()
	}
}

// countVoid counts frames that do not continue the log, and says so: somebody
// other than the shard's writer wrote into it.
func (f *followers) countVoid(a *projections.Applied) {
	if len(a.Voids) == 0 {
		return
	}
	f.voids.Add(uint64(len(a.Voids)))
	f.log.Error("the log holds messages that are no frames of its writer; they change nothing", "sequences", a.Voids, "hint", voidHint)
}

const voidHint = "another program, or a node that no longer leads, writes to the log's subject; memctl audit shows the rows, and an external NATS needs the accounts of memctl nats-config"
