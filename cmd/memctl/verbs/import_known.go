package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// importKnown knows what was imported before, so that what has changed is revised
// and what has not is left.
type importKnown struct {
	run *importRun

	groups int                               // entered so far
	all    map[string]map[string]knownRecord // of the namespace, by group and uri; nil before there is a folder, or are many groups
	allOf  string
	looked map[string]bool // namespaces that a dry run asked for, and whether it may look there

	namespace, group string
	before           map[string]knownRecord // of the group, by uri
	seen             map[string]bool        // uris of the group that are still there
	entered          map[string]bool        // groups of allOf

	sources map[importSource]bool // what this import read
	uris    map[string]bool       // of what is still there, where --prune asks
}

// importGroups is how many files that are named are looked up one by one. Behind it, and
// for a folder, whose removed files only that shows, the whole namespace is read once,
// which takes a request for each 200 of its memories.
const importGroups = 20

// knownRecord is what a record says of the part of a file that it was imported from.
type knownRecord struct {
	id     string
	hash   string
	source importSource
}

// importSource is one source of an import: a folder, or with path one file of it.
type importSource struct{ namespace, from, source, path string }

// note remembers what the import reads.
func (k *importKnown) note(item importer.Item) {
	if item.Group == "" {
		return
	}
	p, ok := importer.ProvenanceOf(item.Capture.Metadata)
	if !ok {
		return
	}
	src := importSource{item.Namespace, p.From, p.Source, ""}
	if k.run.single {
		src.path = p.Path
	}
	k.sources[src] = true
	if k.run.flags.prune {
		if k.uris == nil {
			k.uris = map[string]bool{}
		}
		k.uris[item.Namespace+" "+item.Capture.URI] = true
	}
}

// settled reports whether nothing is left to do for an item: what it was imported as
// is there and has not changed, or was revised.
func (k *importKnown) settled(ctx context.Context, item importer.Item) (bool, error) {
	if k.run.flags.dryRun && !k.mayLook(ctx, item.Namespace) {
		return false, nil
	}
	if item.Home == item.Namespace && item.RecordID != "" && (item.Update || item.NoID) {
		return k.home(ctx, item)
	}
	if item.Group == "" {
		return false, nil
	}
	if item.Group != k.group || item.Namespace != k.namespace {
		k.leave()
		if err := k.enter(ctx, item); err != nil {
			return false, err
		}
	}
	rec, ok := k.before[item.Capture.URI]
	if !ok {
		return false, nil
	}
	k.seen[item.Capture.URI] = true
	counts := k.run.summary.namespace(item.Namespace)
	counts.Found++
	k.run.send.done++
	k.run.send.report()
	if rec.hash == item.Hash {
		counts.Duplicates++
		return true, nil
	}
	return true, k.revise(ctx, item, rec.id)
}

// enter learns what was imported of a file before.
func (k *importKnown) enter(ctx context.Context, item importer.Item) error {
	if err := k.run.send.prepare(ctx, item.Namespace); err != nil {
		return err
	}
	k.namespace, k.group = item.Namespace, item.Group
	k.entered[item.Group] = true
	k.before, k.seen = map[string]knownRecord{}, map[string]bool{}
	if k.run.send.empty[item.Namespace] {
		return nil
	}
	if k.groups++; k.all == nil && (k.groups > importGroups || !k.run.single) {
		all := map[string]map[string]knownRecord{}
		if err := k.list(ctx, item, memory.Filter{}, func(rec memory.Record, known knownRecord) {
			if all[rec.Conversation] == nil {
				all[rec.Conversation] = map[string]knownRecord{}
			}
			all[rec.Conversation][memory.URIPath(rec.URI)] = known
		}); err != nil {
			return err
		}
		k.all, k.allOf = all, item.Namespace
	}
	if k.all != nil && k.allOf == item.Namespace {
		if before := k.all[item.Group]; before != nil {
			k.before = before
		}
		return nil
	}
	return k.list(ctx, item, memory.Filter{Conversation: item.Group}, func(rec memory.Record, known knownRecord) {
		if rec.Conversation != item.Group {
			return
		}
		k.before[memory.URIPath(rec.URI)] = known
	})
}

// list yields the records that were imported from files, as the acting agent sees them.
func (k *importKnown) list(ctx context.Context, item importer.Item, filter memory.Filter, yield func(memory.Record, knownRecord)) error {
	author, err := k.run.a.author()
	if err != nil {
		return err
	}
	none := 0
	opts := client.ListOptions{ReadOptions: client.ReadOptions{As: author}, ListRequest: memory.ListRequest{Limit: memory.MaxLimit, Filter: filter,
		Fit: memory.Fit{MaxText: &none, Fields: []string{"record_id", "uri", "conversation", "origin", "metadata"}}}}
	for {
		var page memory.RecordList
		err := k.run.send.patiently(ctx, func() (err error) {
			page, err = k.run.c.List(ctx, item.Namespace, opts)
			return err
		})
		if err != nil {
			return err
		}
		for _, rec := range page.Records {
			if p, ok := importer.ProvenanceOf(rec.Metadata); ok && p.Hash != "" && rec.Origin == memory.OriginImport {
				yield(rec, knownRecord{rec.RecordID, p.Hash, importSource{item.Namespace, p.From, p.Source, ""}})
			}
		}
		if page.Cursor == "" || page.Cursor == opts.Cursor {
			return nil
		}
		opts.Cursor = page.Cursor
	}
}

// leave counts what is no longer in the file.
func (k *importKnown) leave() {
	if gone := len(k.before) - len(k.seen); gone > 0 && k.group != "" {
		k.run.summary.namespace(k.namespace).Gone += gone
	}
	k.namespace, k.group, k.before, k.seen = "", "", nil, nil
}

// absent counts what is no longer there of the folders that were read, because its files
// were removed or renamed. What could not be read is no sign of that.
func (k *importKnown) absent() {
	if k.run.summary.Malformed > 0 {
		return
	}
	for group, before := range k.all {
		if k.entered[group] {
			continue // leave counted them
		}
		for _, rec := range before {
			if k.sources[rec.source] {
				k.run.summary.namespace(k.allOf).Gone++
			}
		}
	}
}

// mayLook reports whether a dry run can look up what is in a namespace. It needs no
// node, and says so where it looked in vain.
func (k *importKnown) mayLook(ctx context.Context, ns string) bool {
	may, known := k.looked[ns]
	if known || k.run.c == nil {
		return may
	}
	err := k.run.send.prepare(ctx, ns)
	k.looked[ns] = err == nil
	if err != nil {
		k.run.a.note("%s: what is there already is not known: %s", ns, oneLine(err.Error()))
	}
	return err == nil
}

// home looks for the record that an exported memory is, in the namespace that it was
// exported from.
func (k *importKnown) home(ctx context.Context, item importer.Item) (bool, error) {
	if err := k.run.send.prepare(ctx, item.Namespace); err != nil {
		return false, err
	}
	rec, err := k.get(ctx, item, item.RecordID, 0)
	if memory.CodeOf(err) == memory.CodeNotFound {
		return k.anothers(ctx, item, item.RecordID)
	}
	if err != nil {
		return false, err
	}
	counts := k.run.summary.namespace(item.Namespace)
	counts.Found++
	k.run.send.done++
	k.run.send.report()
	if _, changed := revisionTo(rec, item.Capture); !item.Update || !changed {
		counts.Duplicates++
		return true, nil
	}
	if !k.run.flags.revise {
		known, err := k.exported(ctx, item, rec)
		if err != nil {
			return false, err
		}
		if !known {
			k.run.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "it says that it is " + item.RecordID +
				" and differs from it, but no export is known to have written it; look at it, and if it is right, --revise takes it"})
			return true, nil
		}
	}
	return true, k.reviseTo(ctx, item, rec)
}

// exported reports whether an export of the record that a file says it is wrote the
// file: the folder's manifest has the hash of what the record was, which only who read
// it can know. A manifest alone shows nothing, since it comes with the files.
func (k *importKnown) exported(ctx context.Context, item importer.Item, rec memory.Record) (bool, error) {
	if item.Wrote == "" || item.Version < 1 || item.Version > rec.Version {
		return false, nil
	}
	if item.Version < rec.Version {
		var err error
		if rec, err = k.get(ctx, item, rec.RecordID, item.Version); err != nil {
			return false, err
		}
	}
	text, err := importer.FormatExported(exportLine(rec))
	return err == nil && sumOf(text) == item.Wrote, err
}

// anothers settles an item whose record the acting agent does not see: it may be
// another agent's own, which no import revises.
func (k *importKnown) anothers(ctx context.Context, item importer.Item, recordID string) (bool, error) {
	author, err := k.run.a.author()
	if err != nil || item.Capture.Scope != memory.ScopeAgent || item.Capture.Agent == author {
		return false, err
	}
	var rec memory.Record
	err = k.run.send.patiently(ctx, func() (err error) {
		rec, err = k.run.c.Get(ctx, item.Namespace, recordID, client.GetOptions{ReadOptions: client.ReadOptions{As: item.Capture.Agent}})
		return err
	})
	switch memory.CodeOf(err) {
	case memory.CodeNotFound, memory.CodeGone, memory.CodeForbidden:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	counts := k.run.summary.namespace(item.Namespace)
	counts.Found++
	counts.Duplicates++
	k.run.send.done++
	if _, changed := revisionTo(rec, item.Capture); item.Update && changed {
		k.run.summary.skip(k.run.file, &importer.Skip{Line: item.Line, Where: item.Where, Why: "changes of another agent's own memories, which only that agent makes (--as)"})
	}
	return true, nil
}

// get reads a record as the acting agent; version 0 is the newest.
func (k *importKnown) get(ctx context.Context, item importer.Item, recordID string, version int) (rec memory.Record, err error) {
	author, err := k.run.a.author()
	if err != nil {
		return rec, err
	}
	err = k.run.send.patiently(ctx, func() (err error) {
		rec, err = k.run.c.Get(ctx, item.Namespace, recordID, client.GetOptions{ReadOptions: client.ReadOptions{As: author}, Version: version})
		return err
	})
	return rec, err
}

// conflict settles an item whose id or uri is taken.
func (k *importKnown) conflict(ctx context.Context, item importer.Item, recordID string) error {
	rec, err := k.get(ctx, item, recordID, 0)
	counts := k.run.summary.namespace(item.Namespace)
	switch {
	case memory.CodeOf(err) == memory.CodeNotFound, memory.CodeOf(err) == memory.CodeGone:
		counts.Found-- // it was counted when it was sent
		if there, err := k.anothers(ctx, item, recordID); there || err != nil {
			return err
		}
		counts.Found++
		counts.Duplicates++
		k.run.summary.skip(k.run.file, &importer.Skip{Line: item.Line, Where: item.Where, Why: "imported before, and forgotten here since"})
		return nil
	case err != nil:
		return err
	}
	want, _ := importer.ProvenanceOf(item.Capture.Metadata)
	if is, ok := importer.ProvenanceOf(rec.Metadata); !ok || rec.Origin != memory.OriginImport || is.From != want.From {
		k.run.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "its id or uri is taken by " + recordID + ", which was not imported from there"})
		return nil
	}
	if !item.Update {
		if rec.Text == item.Capture.Text {
			counts.Duplicates++
			return nil
		}
		k.run.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "it was imported before with another text, as " + recordID})
		return nil
	}
	return k.reviseTo(ctx, item, rec)
}

// revise brings a record up to what its file says now.
func (k *importKnown) revise(ctx context.Context, item importer.Item, recordID string) error {
	rec, err := k.get(ctx, item, recordID, 0)
	if err != nil {
		return err
	}
	return k.reviseTo(ctx, item, rec)
}

// reviseTo revises a record as the acting agent, whoever the file says spoke.
func (k *importKnown) reviseTo(ctx context.Context, item importer.Item, rec memory.Record) error {
	author, err := k.run.a.author()
	if err != nil {
		return err
	}
	counts := k.run.summary.namespace(item.Namespace)
	rev, changed := revisionTo(rec, item.Capture)
	if !changed {
		counts.Duplicates++
		return nil
	}
	if k.run.flags.dryRun {
		counts.Updated++
		return nil
	}
	_, err = k.run.c.Revise(ctx, item.Namespace, rec.RecordID, rev, client.WriteOptions{As: author, IfVersion: rec.Version})
	switch code := memory.CodeOf(err); {
	case err == nil:
		counts.Updated++
		if k.run.a.flags.quiet {
			k.run.send.ids = append(k.run.send.ids, rec.RecordID)
		}
		return nil
	case code == memory.CodeConflict, code == memory.CodeInvalid, code == memory.CodeTooLarge, code == memory.CodeNotFound:
		k.run.refused(item, &memory.ItemError{Code: code, Detail: err.Error()})
		return nil
	}
	return err
}

// revisionTo is what has to change of a record so that it says what a capture says.
func revisionTo(rec memory.Record, c memory.Capture) (rev memory.Revision, changed bool) {
	c.Normalise()
	if rec.Text != c.Text {
		rev.Text, changed = &c.Text, true
	}
	if rec.Kind != c.Kind {
		rev.Kind, changed = &c.Kind, true
	}
	if rec.Role != c.Role {
		rev.Role, changed = &c.Role, true
	}
	if !slices.Equal(rec.Tags, c.Tags) {
		tags := append([]string{}, c.Tags...)
		rev.Tags, changed = &tags, true
	}
	if rec.Conversation != c.Conversation {
		rev.Conversation, changed = &c.Conversation, true
	}
	if c.Importance != nil && (rec.Importance == nil || *rec.Importance != *c.Importance) {
		rev.Importance, changed = c.Importance, true
	}
	if c.OccurredAt != nil && !rec.OccurredAt.Equal(*c.OccurredAt) {
		rev.OccurredAt, changed = c.OccurredAt, true
	}
	if !sameJSON(rec.Metadata, c.Metadata) {
		meta := c.Metadata
		if len(meta) == 0 {
			meta = json.RawMessage("{}")
		}
		rev.Metadata, changed = &meta, true
	}
	return rev, changed
}

// sameJSON reports whether two documents say the same; none is an empty object.
func sameJSON(a, b json.RawMessage) bool {
	read := func(raw json.RawMessage) any {
		if len(raw) == 0 {
			return map[string]any{}
		}
		var v any
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return strings.TrimSpace(string(raw))
		}
		return v
	}
	return reflect.DeepEqual(read(a), read(b))
}
