package node

import (
	"context"
	"errors"
	"time"

	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/query"
	"mneme/internal/query/views"
	"mneme/internal/spans"
	"mneme/memory"
)

// atLeastWait bounds how long a read waits for a position.
const atLeastWait = 5 * time.Second

// reads answers the transports' reads of one shard.
type reads struct {
	query    *query.Service
	backfill *ingest.Backfill // knows how far a change of an embedder is
	exports  *exports         // of the node
	times    *times
	note     func(ctx context.Context, namespace string, note events.ReadNote) (string, error) // see audited
}

// read authorises, waits for freshness, reads, and closes.
func read[T any](ctx context.Context, n *reads, a memory.Access, f func(r *query.Reader) (T, error)) (T, error) {
	var none T
	opening, span := spans.Start(ctx, spans.Open)
	r, err := n.query.Open(opening, a.Namespace, a.As, views.Freshness{AtLeast: a.AtLeast, Consistency: a.Consistency, Wait: atLeastWait})
	spans.End(span, err)
	if err != nil {
		return none, err
	}
	out, err := f(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return none, err
	}
	return out, nil
}

// Search implements rest.Reader.
func (n *reads) Search(ctx context.Context, a memory.Access, req memory.SearchRequest) (memory.SearchResponse, error) {
	return n.times.search(ctx, req.Mode, func() (memory.SearchResponse, error) {
		return operate(ctx, spans.SearchMemory, a.Namespace, toldOfSearch, func(ctx context.Context) (memory.SearchResponse, error) {
			var notes []readNote
			resp, err := read(ctx, n, a, func(r *query.Reader) (memory.SearchResponse, error) {
				resp, err := r.Search(ctx, req)
				if err == nil {
					err = addNote(&notes, n, r, a, req.Purpose, req.Query, resp.Results)
				}
				return resp, err
			})
			return audited(ctx, resp, err, notes)
		})
	})
}

// Get implements rest.Reader.
func (n *reads) Get(ctx context.Context, a memory.Access, idOrURI string, version int) (memory.Record, error) {
	return read(ctx, n, a, func(r *query.Reader) (memory.Record, error) { return r.Get(ctx, idOrURI, version) })
}

// List implements rest.Reader.
func (n *reads) List(ctx context.Context, a memory.Access, req memory.ListRequest) (memory.RecordList, error) {
	var notes []readNote
	list, err := read(ctx, n, a, func(r *query.Reader) (memory.RecordList, error) {
		list, err := r.List(ctx, req)
		if err != nil {
			return list, err
		}
		hits := make([]memory.Hit, len(list.Records))
		for i := range list.Records {
			rec := &list.Records[i]
			hits[i] = memory.Hit{ID: rec.RecordID, Version: rec.Version, Scope: rec.Scope}
		}
		return list, addNote(&notes, n, r, a, req.Purpose, "", hits)
	})
	return audited(ctx, list, err, notes)
}

// History implements rest.Reader.
func (n *reads) History(ctx context.Context, a memory.Access, id string) (memory.History, error) {
	return read(ctx, n, a, func(r *query.Reader) (memory.History, error) { return r.History(ctx, id) })
}

// Timeline implements rest.Reader.
func (n *reads) Timeline(ctx context.Context, a memory.Access, req memory.TimelineRequest) (memory.Timeline, error) {
	return read(ctx, n, a, func(r *query.Reader) (memory.Timeline, error) { return r.Timeline(ctx, req) })
}

// Audit implements rest.Reader.
func (n *reads) Audit(ctx context.Context, a memory.Access, req memory.AuditRequest) (memory.AuditPage, error) {
	return read(ctx, n, a, func(r *query.Reader) (memory.AuditPage, error) { return r.Audit(ctx, req) })
}

// AuditedReads implements rest.Reader.
func (n *reads) AuditedReads(ctx context.Context, a memory.Access, req memory.AuditedReadsRequest) (memory.AuditedReadPage, error) {
	return read(ctx, n, a, func(r *query.Reader) (memory.AuditedReadPage, error) { return r.AuditedReads(ctx, req) })
}

// Events implements rest.Reader.
func (n *reads) Events(ctx context.Context, a memory.Access, from string, follow bool, yield func(memory.Event) error) error {
	return n.query.Events(ctx, a.Namespace, a.As, from, follow, yield)
}

// Export implements rest.Reader.
func (n *reads) Export(ctx context.Context, a memory.Access, yield func(memory.ExportLine) error) error {
	return n.export(ctx, a, func(ctx context.Context, r *query.Reader) error { return r.Export(ctx, yield) })
}

// export reads for as long as its reader takes, unless an erasure ends it.
func (n *reads) export(ctx context.Context, a memory.Access, f func(ctx context.Context, r *query.Reader) error) error {
	ctx, over := n.exports.begin(ctx)
	defer over()
	_, err := read(ctx, n, a, func(r *query.Reader) (struct{}, error) { return struct{}{}, f(ctx, r) })
	if err != nil && context.Cause(ctx) == errEndedByErasure {
		return errEndedByErasure
	}
	return err
}

// Graph implements rest.Reader.
func (n *reads) Graph(ctx context.Context, a memory.Access, req memory.GraphRequest) (memory.Graph, error) {
	return read(ctx, n, a, func(r *query.Reader) (memory.Graph, error) { return r.Graph(ctx, req) })
}

// StreamGraph implements rest.Reader.
func (n *reads) StreamGraph(ctx context.Context, a memory.Access, after string, yield func(memory.GraphLine) error) error {
	return n.export(ctx, a, func(ctx context.Context, r *query.Reader) error { return r.StreamGraph(ctx, after, yield) })
}

// Namespaces gives one page of the namespaces.
func (n *reads) Namespaces(ctx context.Context, req memory.NamespacesRequest) (memory.NamespaceList, error) {
	return n.query.Namespaces(ctx, req)
}

// Namespace describes one namespace.
func (n *reads) Namespace(ctx context.Context, name string) (memory.Namespace, error) {
	return n.query.Namespace(ctx, name)
}
