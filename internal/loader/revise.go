package loader

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

// conflict settles an item whose id or uri is taken.
func (k *known) conflict(ctx context.Context, item importer.Item, recordID string) error {
	rec, err := k.get(ctx, item, recordID, 0)
	counts := k.load.counts(item.Namespace)
	switch {
	case memory.CodeOf(err) == memory.CodeNotFound, memory.CodeOf(err) == memory.CodeGone:
		counts.Found-- // it was counted when it was sent
		if there, err := k.anothers(ctx, item, recordID); there || err != nil {
			return err
		}
		counts.Found++
		f, err := k.past(ctx, item.Namespace)
		if err != nil {
			return err
		}
		if was := f.records[recordID]; was != nil {
			return k.load.send.again(ctx, counts, item, f, was)
		}
		counts.Forgotten++ // since this import began
		return nil
	case err != nil:
		return err
	}
	switch {
	case !importedSo(rec, item):
		k.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "its id or uri is taken by " + recordID + ", which was not imported from there"})
		return nil
	case rec.Scope == memory.ScopeTeam && item.Capture.Scope == memory.ScopeAgent:
		counts.Duplicates++
		k.load.left(item, forTheTeam)
		return nil
	case saysSame(rec.Metadata, item):
		counts.Duplicates++
		return nil
	case item.Update && item.RecordID == "": // an export revises what it was before alone
		if err := k.elsewhereThan(rec, item); err != nil {
			return err
		}
		return k.reviseTo(ctx, item, rec)
	case rec.Text == item.Capture.Text:
		counts.Duplicates++
		return nil
	}
	k.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "it was imported before with another text, as " + recordID +
		"; if this one is right, forget that one, and import this again with --again"})
	return nil
}

// saysSame reports whether a record was imported as what an item is, so that the item has not changed in its
// source since, whatever was revised here.
func saysSame(metadata json.RawMessage, item importer.Item) bool {
	is, _ := importer.ProvenanceOf(metadata)
	return item.Provenance != nil && item.Provenance.Says != "" && is.Says == item.Provenance.Says && !is.Taken
}

// maxRead is how many records a namespace may have to be read for the rows of a table, however few those are.
const maxRead = 20_000

// byID is what a namespace has of what is known by its id, as it was when it was read.
type byID struct {
	says   map[string]string // what records were imported as; nil before it is read
	copies map[string]string // records that exports brought, by key
	looked int               // how many were looked up instead
	many   bool              // more was forgotten there than is looked up one by one
}

func (k *known) byID(ctx context.Context, ns string) (*byID, error) {
	all := k.saidIn(ns)
	if all.says != nil {
		return all, nil
	}
	says, copies := map[string]string{}, map[string]string{}
	if err := Imported(ctx, k.load.node, ns, k.load.opt.Agent, memory.Filter{}, func(rec memory.Record, p importer.Provenance) {
		if p.Key != "" && p.Record != "" && !p.Taken {
			copies[p.Key] = rec.RecordID
		}
		if is := saysOf(p); is != "" {
			says[rec.RecordID] = is
		}
	}); err != nil {
		return nil, err
	}
	many, err := k.forgotMany(ctx, ns)
	if err != nil {
		return nil, err
	}
	all.says, all.copies, all.many = says, copies, many
	return all, nil
}

// saidIn is byID as far as it was read.
func (k *known) saidIn(ns string) *byID {
	if k.said[ns] == nil {
		k.said[ns] = &byID{}
	}
	return k.said[ns]
}

// saysOf is what a record was imported as.
func saysOf(p importer.Provenance) string {
	if p.Taken {
		return "taken"
	}
	return p.Says
}

// saidOtherwise reports whether the record that came as an item was imported as something else since: the item
// went back to what it was first.
func (k *known) saidOtherwise(ctx context.Context, item importer.Item, recordID string) (bool, error) {
	if item.Provenance == nil || item.Provenance.Says == "" {
		return false, nil
	}
	if all := k.saidIn(item.Namespace); all.says == nil && k.few(all.looked+1, item.Namespace) {
		all.looked++
		rec, err := k.get(ctx, item, recordID, 0)
		switch memory.CodeOf(err) {
		case memory.CodeNotFound, memory.CodeGone: // since it was sent, or it is another agent's own
			return false, nil
		}
		is := saysOf(importer.OriginOf(rec.Metadata))
		return rec.Origin == memory.OriginImport && is != "" && is != item.Provenance.Says, err
	}
	all, err := k.byID(ctx, item.Namespace)
	if err != nil {
		return false, err
	}
	is := all.says[recordID]
	return is != "" && is != item.Provenance.Says, nil
}

// cameAsCopy settles an item that is known by its id, and is here as an export brought it: a copy of what was revised at home
// has no id of a client's, and may be another agent's. Only reading the namespace shows that, so that in a large one it is
// not looked for.
func (k *known) cameAsCopy(ctx context.Context, item importer.Item) (bool, error) {
	if err := k.load.send.prepare(ctx, item.Namespace); err != nil || k.load.send.records[item.Namespace] > maxRead {
		return false, err
	}
	all, err := k.byID(ctx, item.Namespace)
	if err != nil {
		return false, err
	}
	if is := all.copies[item.Provenance.Key]; is != "" {
		k.load.settle(item)
		return true, k.conflict(ctx, item, is)
	}
	if all.many {
		return false, nil
	}
	f, err := k.past(ctx, item.Namespace)
	if err != nil {
		return false, err
	}
	if was := f.copies[item.Provenance.Key]; was == nil || was.taken || k.load.opt.Again {
		return false, nil
	}
	if living, err := k.living(ctx, f, item.Namespace); err != nil || living[idOf(item.Capture.Agent, item.Capture.ID)] {
		return false, err // it was brought back
	}
	k.load.settle(item).Forgotten++
	return true, nil
}

// importedSo reports whether a record was imported from where an item is from: as the memory that it
// is there, or from the same source.
func importedSo(rec memory.Record, item importer.Item) bool {
	if rec.Origin != memory.OriginImport {
		return false
	}
	want, _ := importer.ProvenanceOf(item.Capture.Metadata)
	if is, ok := importer.ProvenanceOf(rec.Metadata); ok {
		return is.From == want.From && (is.Source == want.Source || rec.ID == item.Capture.ID)
	}
	// Provenance of exports was left out before where something else stood in its place, or namespaces had one name.
	return item.RecordID != "" && (want.Was != nil || item.Home == item.Namespace) && rec.ID == item.Capture.ID
}

// revise brings a record up to what its file says now.
func (k *known) revise(ctx context.Context, item importer.Item, recordID string) error {
	rec, err := k.get(ctx, item, recordID, 0)
	if err != nil {
		return err
	}
	return k.reviseTo(ctx, item, rec)
}

// reviseTo revises a record as the acting agent, whoever the file says spoke.
func (k *known) reviseTo(ctx context.Context, item importer.Item, rec memory.Record) error {
	counts := k.load.counts(item.Namespace)
	rev, changed := revisionOf(rec, item)
	if !changed {
		counts.Duplicates++
		return nil
	}
	if k.load.opt.DryRun {
		counts.Updated++
		return nil
	}
	_, err := k.load.node.Revise(ctx, item.Namespace, rec.RecordID, rev, client.WriteOptions{As: k.load.opt.Agent, IfVersion: rec.Version})
	switch code := memory.CodeOf(err); {
	case err == nil:
		counts.Updated++
		k.load.made(rec.RecordID)
		return nil
	case code == memory.CodeConflict, code == memory.CodeInvalid, code == memory.CodeTooLarge, code == memory.CodeNotFound:
		k.load.refused(item, &memory.ItemError{Code: code, Detail: err.Error()})
		return nil
	}
	return err
}

// revisionOf is revisionTo, and what an import changes besides.
func revisionOf(rec memory.Record, item importer.Item) (rev memory.Revision, changed bool) {
	rev, changed = revisionTo(rec, item)
	if item.Group != "" && memory.URIPath(rec.URI) != item.Capture.URI { // it stands below another heading
		rev.URI, changed = &item.Capture.URI, true
	}
	if item.Away && !slices.Equal(rec.DerivedFrom, item.Capture.DerivedFrom) {
		from := append([]string{}, item.Capture.DerivedFrom...)
		rev.DerivedFrom, changed = &from, true
	}
	return rev, changed
}

// revisionTo is what has to change of a record so that it says what an item says. Metadata that
// others keep there stay; of an export of this very record, which shows all of them, they are as
// the file says.
func revisionTo(rec memory.Record, item importer.Item) (rev memory.Revision, changed bool) {
	c := item.Capture
	c.Normalise()
	if item.RecordID != rec.RecordID {
		c.Metadata = importer.Over(rec.Metadata, c.Metadata)
	}
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
	if c.OccurredAt != nil { // also the same one: a version that is given none happens now
		rev.OccurredAt = c.OccurredAt
		changed = changed || !rec.OccurredAt.Equal(*c.OccurredAt)
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
