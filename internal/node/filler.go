package node

import (
	"context"
	"sync"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

// filler gives records the vectors that they lack, on the shard's leader.
type filler struct {
	source  embedderSource
	compare func(ctx context.Context, ns events.ID, from, to embed.Space) (memory.SpaceComparison, error)

	mu       sync.Mutex
	attacher *ingest.Attacher // nil while this node does not lead
	builder  *ingest.Builder
}

// Work implements replica.Worker.
func (f *filler) Work(ctx context.Context, w *ingest.Writer) {
	a, b := ingest.NewAttacher(w, f.source), ingest.NewBuilder(w, f.source, f.compare)
	f.set(a, b)
	<-ctx.Done()
	f.set(nil, nil)
	a.Close()
	b.Close()
}

func (f *filler) set(a *ingest.Attacher, b *ingest.Builder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attacher, f.builder = a, b
}

// applied wakes the workers that may have something to do.
func (f *filler) applied(a *projections.Applied) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.attacher != nil {
		f.attacher.Wake()
	}
	if f.builder != nil && changesSpaces(a) {
		f.builder.Wake()
	}
}

// status tells how the building of a namespace's space goes; false if this node
// has not begun with it.
func (f *filler) status(ns events.ID) (ingest.BuildStatus, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.builder == nil {
		return ingest.BuildStatus{}, false
	}
	return f.builder.Status(ns)
}
