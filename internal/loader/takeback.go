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

// Imported returns the records of a namespace that were imported and fit, as an agent sees
// them, without their texts.
func Imported(ctx context.Context, n Node, ns, as string, fits func(memory.Record, importer.Provenance) bool) ([]memory.Record, error) {
	none := 0
	opts := client.ListOptions{ReadOptions: client.ReadOptions{As: as}, ListRequest: memory.ListRequest{Limit: memory.MaxLimit,
		Fit: memory.Fit{MaxText: &none, Fields: []string{"record_id", "namespace", "id", "uri", "origin", "scope", "agent", "metadata"}}}}
	var out []memory.Record
	for {
		page, err := n.List(ctx, ns, opts)
		if err != nil {
			return nil, err
		}
		for _, rec := range page.Records {
			if rec.Origin == memory.OriginImport && fits(rec, importer.OriginOf(rec.Metadata)) {
				out = append(out, rec)
			}
		}
		if page.Cursor == "" {
			return out, nil
		}
		if page.Cursor == opts.Cursor {
			return nil, memory.Errorf(memory.CodeInternal, "list %s: the node gave the same cursor twice", ns)
		}
		opts.Cursor = page.Cursor
	}
}

// From fits what was imported from a source and in a format; "" is any.
func From(name, format string) func(memory.Record, importer.Provenance) bool {
	return func(_ memory.Record, p importer.Provenance) bool {
		return (name == "" || p.Source == name) && (format == "" || p.From == format)
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
		gone, err := Imported(ctx, l.node, src.namespace, l.opt.Agent, func(rec memory.Record, p importer.Provenance) bool {
			return p.From == src.from && p.Source == src.name && p.Hash != "" && (src.path == "" || p.Path == src.path) && !l.known.keeps(rec)
		})
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		if l.opt.DryRun {
			for _, rec := range gone {
				l.summary.Forget = append(l.summary.Forget, rec.URI)
			}
		} else if err := l.opt.Confirm(fmt.Sprintf("Forget %s of %s that are no longer there? [y/N]", memories(len(gone)), src.name)); err != nil {
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
