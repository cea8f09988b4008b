package verbs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// importTakeBack forgets what was imported from a source.
func importTakeBack(cmd *cobra.Command, a *app, fl *importFlags) error {
	if fl.source == "" && fl.format == "" {
		return usage(cmd, "--take-back needs --source, --format or both, to say what to forget")
	}
	c, ns, err := a.connect()
	if err != nil {
		return err
	}
	as, err := a.author()
	if err != nil {
		return err
	}
	found, err := importedRecords(cmd.Context(), c, ns, as, func(_ memory.Record, p importer.Provenance) bool {
		return (fl.source == "" || p.Source == fl.source) && (fl.format == "" || p.From == fl.format)
	})
	if err != nil {
		return err
	}
	n := count(len(found), "memory", "memories")
	if fl.dryRun {
		return a.emit(map[string]any{"namespace": ns, "would_forget": len(found)}, recordIDs(found), func() { a.printf("%s: would forget %s\n", ns, n) })
	}
	if len(found) > 0 {
		if err := a.confirm(fl.yes, fmt.Sprintf("Forget %s that were imported into %s? [y/N]", n, ns), ""); err != nil {
			return err
		}
	}
	if err := forgetImported(cmd.Context(), a, c, ns, as, found); err != nil {
		return err
	}
	return a.emit(map[string]any{"namespace": ns, "forgotten": len(found)}, recordIDs(found), func() { a.printf("%s: forgot %s\n", ns, n) })
}

// importedRecords returns the records of a namespace that were imported and fit,
// without their texts.
func importedRecords(ctx context.Context, c *client.Client, ns, as string, fits func(memory.Record, importer.Provenance) bool) ([]memory.Record, error) {
	none := 0
	opts := client.ListOptions{ReadOptions: client.ReadOptions{As: as}, ListRequest: memory.ListRequest{Limit: memory.MaxLimit,
		Fit: memory.Fit{MaxText: &none, Fields: []string{"record_id", "uri", "origin", "scope", "agent", "metadata"}}}}
	var out []memory.Record
	for {
		page, err := c.List(ctx, ns, opts)
		if err != nil {
			return nil, err
		}
		for _, rec := range page.Records {
			p, ok := importer.ProvenanceOf(rec.Metadata)
			if ok && rec.Origin == memory.OriginImport && fits(rec, p) {
				rec.Metadata = nil
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

func forgetImported(ctx context.Context, a *app, c *client.Client, ns, as string, recs []memory.Record) error {
	bar := a.progress("forget")
	defer bar.finish()
	for i, rec := range recs {
		if _, err := c.Forget(ctx, ns, rec.RecordID, client.WriteOptions{As: as}); err != nil && memory.CodeOf(err) != memory.CodeNotFound {
			return fmt.Errorf("forget %s after %s: %w", rec.RecordID, count(i, "memory", "memories"), err)
		}
		bar.report(memory.Progress{Done: uint64(i + 1), Total: uint64(len(recs)), Unit: "memories"})
	}
	return nil
}

func (s importSource) compare(o importSource) int {
	return cmp.Or(cmp.Compare(s.namespace, o.namespace), cmp.Compare(s.from, o.from), cmp.Compare(s.source, o.source), cmp.Compare(s.path, o.path))
}

// prune forgets the memories of sections, and of files of a folder, that are no
// longer there. It does nothing where something could not be read: that is no sign
// that it is gone.
func (r *importRun) prune(ctx context.Context) error {
	if r.summary.Malformed > 0 {
		r.a.note("nothing was pruned: %s could not be read", count(r.summary.Malformed, "item", "items"))
		return nil
	}
	as, err := r.a.author()
	if err != nil {
		return err
	}
	for _, src := range slices.SortedFunc(maps.Keys(r.known.sources), importSource.compare) {
		if r.flags.dryRun && !r.known.mayLook(ctx, src.namespace) {
			continue
		}
		gone, err := importedRecords(ctx, r.c, src.namespace, as, func(rec memory.Record, p importer.Provenance) bool {
			return p.From == src.from && p.Source == src.source && p.Hash != "" && (src.path == "" || p.Path == src.path) &&
				!r.known.uris[src.namespace+" "+memory.URIPath(rec.URI)]
		})
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		if r.flags.dryRun {
			for _, rec := range gone {
				r.summary.Forget = append(r.summary.Forget, rec.URI)
			}
		} else if err := r.a.confirm(r.flags.yes, fmt.Sprintf("Forget %s of %s that are no longer there? [y/N]", count(len(gone), "memory", "memories"), src.source), ""); err != nil {
			return err
		} else if err := forgetImported(ctx, r.a, r.c, src.namespace, as, gone); err != nil {
			return err
		}
		counts := r.summary.namespace(src.namespace)
		counts.Pruned += len(gone)
		counts.Gone = max(0, counts.Gone-len(gone))
	}
	return nil
}
