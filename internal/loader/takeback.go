package loader

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// Imported yields the records of a namespace that were imported and pass a filter, as an agent
// sees them, with their provenance and without their texts.
func Imported(ctx context.Context, n Node, ns, as string, filter memory.Filter, yield func(memory.Record, importer.Provenance)) error {
	none := 0
	fit := memory.Fit{MaxText: &none, Fields: []string{"record_id", "id", "uri", "conversation", "origin", "scope", "agent", "metadata"}}
	return listed(ctx, n, ns, as, filter, fit, func(rec memory.Record) {
		if rec.Origin == memory.OriginImport {
			yield(rec, importer.OriginOf(rec.Metadata))
		}
	})
}

// listed yields the records of a namespace that pass a filter, as far as they are to fit and as an agent sees them.
func listed(ctx context.Context, n Node, ns, as string, filter memory.Filter, fit memory.Fit, yield func(memory.Record)) error {
	opts := client.ListOptions{ReadOptions: client.ReadOptions{As: as}, ListRequest: memory.ListRequest{Limit: memory.MaxLimit, Filter: filter, Fit: fit}}
	for {
		page, err := n.List(ctx, ns, opts)
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			yield(rec)
		}
		if page.Cursor == "" {
			return nil
		}
		if page.Cursor == opts.Cursor {
			return memory.Errorf(memory.CodeInternal, "list %s: the node gave the same cursor twice", ns)
		}
		opts.Cursor = page.Cursor
	}
}

// Forget forgets imported records, those that are forgotten already too. Their last version says
// that an import took them, so that the next one that reads them brings them back.
func Forget(ctx context.Context, n Node, ns, as string, recs []memory.Record, bar Bar) error {
	defer bar.Finish()
	for i, rec := range recs {
		if meta, ok := importer.Taken(rec.Metadata); ok {
			_, err := n.Revise(ctx, ns, rec.RecordID, memory.Revision{Metadata: &meta}, client.WriteOptions{As: as})
			if err != nil && memory.CodeOf(err) != memory.CodeNotFound {
				return fmt.Errorf("note that %s is taken back, after %s: %w", rec.RecordID, memories(i), err)
			}
		}
		if _, err := n.Forget(ctx, ns, rec.RecordID, client.WriteOptions{As: as}); err != nil && memory.CodeOf(err) != memory.CodeNotFound {
			return fmt.Errorf("forget %s after %s: %w", rec.RecordID, memories(i), err)
		}
		bar.Report(memory.Progress{Done: uint64(i + 1), Total: uint64(len(recs)), Unit: unitOf(uint64(len(recs)))})
	}
	return nil
}

// prune forgets the memories of sections, and of files of a folder, that are no
// longer there. It does nothing where something could not be read: that is no sign
// that it is gone.
func (l *load) prune(ctx context.Context) error {
	if n := l.summary.Malformed; n > 0 {
		l.opt.Note("nothing was pruned: %s could not be read", counted(n, "item", "items"))
		return nil
	}
	for _, src := range slices.SortedFunc(maps.Keys(l.known.sources), source.compare) {
		if l.opt.DryRun && !l.known.mayLook(ctx, src.namespace) {
			continue
		}
		var gone []memory.Record
		if err := Imported(ctx, l.node, src.namespace, l.opt.Agent, memory.Filter{}, func(rec memory.Record, p importer.Provenance) {
			if p.From == src.from && p.Source == src.name && p.Hash != "" && (src.path == "" || p.Path == src.path) && !l.known.keeps(src.namespace, rec) {
				gone = append(gone, rec)
			}
		}); err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		if l.opt.DryRun {
			for _, rec := range gone {
				l.summary.Forget = append(l.summary.Forget, rec.URI)
			}
		} else if err := l.opt.Confirm(Question{What: fmt.Sprintf("Forget %s of %s that are no longer there?", memories(len(gone)), src.name), Instead: "without --prune they stay"}); err != nil {
			return err
		} else if err := Forget(ctx, l.node, src.namespace, l.opt.Agent, gone, l.opt.Bar("forget")); err != nil {
			return err
		}
		counts := l.counts(src.namespace)
		counts.Pruned += len(gone)
		counts.Gone = max(0, counts.Gone-len(gone))
	}
	return nil
}
