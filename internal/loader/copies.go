package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// copied is what an export of ours became here.
type copied struct {
	record  string
	version int // of the record that it was exported from
}

// origin is a record of a namespace that an export is from.
type origin struct{ home, record string }

// copy settles an item of an export from elsewhere that was imported here before: what was
// revised there since, or edited in its file, is revised here, and of what is the same, or older,
// nothing is left to do. That an export is from there is what it says, so that it revises only
// where this node shows that it is, or where that is asked for.
func (k *known) copy(ctx context.Context, item importer.Item) (bool, error) {
	if err := k.load.send.prepare(ctx, item.Namespace); err != nil {
		return false, err
	}
	all, err := k.copiesIn(ctx, item.Namespace)
	if err != nil {
		return false, err
	}
	was, there := all[origin{item.Home, item.RecordID}]
	if !there {
		return k.returned(ctx, item)
	}
	k.load.send.moved[item.RecordID] = was.record
	edited := item.Update && !item.Untouched && item.Version == was.version // its file is of the version that it was
	if item.Version <= was.version && !edited {
		k.load.settle(item).Duplicates++
		return true, nil
	}
	rec, err := k.get(ctx, item, was.record, 0)
	if memory.CodeOf(err) == memory.CodeNotFound || memory.CodeOf(err) == memory.CodeGone { // since it was listed
		return false, nil
	}
	if err != nil {
		return false, err
	}
	item.Capture.DerivedFrom = sourcesOf(item, rec, all)
	k.load.settle(item)
	if _, changed := revisionOf(rec, item); changed && !k.load.opt.Revise {
		shown, err := k.shown(ctx, item)
		if err != nil {
			return false, err
		}
		if !shown {
			k.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: fmt.Sprintf("it says that it is version %d of %s in %s, of which %s is a copy, but nothing here shows that it is; "+
				"look at it, and if it is right: %s", item.Version, item.RecordID, item.Home, was.record, k.load.taking(item))})
			return true, nil
		}
	}
	return true, k.reviseTo(ctx, item, rec)
}

// returned settles an item that is a copy of a record of this very namespace and comes back unchanged: it says what the
// record says, or what the version did that was copied. One that was changed there is another memory.
func (k *known) returned(ctx context.Context, item importer.Item) (bool, error) {
	p, _ := importer.ProvenanceOf(item.Exported.Metadata)
	record, version := p.CopyOf(item.Namespace)
	if record == "" {
		return false, nil
	}
	if same, err := k.says(ctx, item, record); same || err != nil {
		if err == nil {
			k.load.send.moved[item.RecordID] = record
			k.load.settle(item).Duplicates++
		}
		return same, err
	}
	for _, v := range []int{0, version} {
		rec, err := k.get(ctx, item, record, v)
		switch memory.CodeOf(err) {
		case memory.CodeNotFound, memory.CodeGone:
			return k.returnedForgotten(ctx, item, record)
		case memory.CodeForbidden, memory.CodeInvalid:
			return false, nil
		}
		if err != nil {
			return false, err
		}
		same, err := copyOf(rec, *item.Exported)
		if err != nil {
			return false, err
		}
		if same {
			k.load.send.moved[item.RecordID] = record
			k.load.settle(item).Duplicates++
			return true, nil
		}
	}
	return false, nil
}

// contents are digests of what the records of a namespace say.
type contents struct {
	seed   maphash.Seed
	says   map[string]uint64 // nil before there are many to look up
	looked int
}

// says reports whether a copy says what a record of its namespace says. Where there are many, the namespace is read once; of
// few, and of those that differ, it does not know.
func (k *known) says(ctx context.Context, item importer.Item, record string) (bool, error) {
	t := k.contents[item.Namespace]
	if t == nil {
		t = &contents{seed: maphash.MakeSeed()}
		k.contents[item.Namespace] = t
	}
	if t.looked++; k.few(t.looked, item.Namespace) {
		return false, nil
	}
	if t.says == nil {
		whole, says := memory.MaxTextBytes, map[string]uint64{}
		if err := listed(ctx, k.load.node, item.Namespace, k.load.opt.Agent, memory.Filter{}, memory.Fit{MaxText: &whole}, func(rec memory.Record) {
			if sum, ok := t.digest(importer.ExportOf(rec)); ok {
				says[rec.RecordID] = sum
			}
		}); err != nil {
			return false, err
		}
		t.says = says
	}
	is, there := t.says[record]
	sum, ok := t.digest(*item.Exported)
	return there && ok && is == sum, nil
}

// digest is of what copyOf compares, and no two that it tells apart have the same.
func (t *contents) digest(l memory.ExportLine) (sum uint64, ok bool) {
	l.Normalise()
	l.Metadata = withoutProvenance(l.Metadata)
	l.RecordID, l.Version, l.ID, l.URI, l.Position, l.CreatedAt, l.Origin, l.Source, l.DerivedFrom = "", 0, "", "", "", time.Time{}, "", "", nil
	if l.OccurredAt != nil {
		at := l.OccurredAt.UTC()
		l.OccurredAt = &at
	}
	b, err := json.Marshal(l)
	return maphash.Bytes(t.seed, b), err == nil
}

// returnedForgotten settles an item that is a copy of a record of this namespace that was forgotten here, and says what a
// version of it did, as far as those are known.
func (k *known) returnedForgotten(ctx context.Context, item importer.Item, record string) (bool, error) {
	f, err := k.past(ctx, item.Namespace)
	if err != nil || f.records[record] == nil {
		return false, err
	}
	h, err := k.load.node.History(ctx, item.Namespace, record, client.ReadOptions{As: k.load.opt.Agent})
	if err != nil && memory.CodeOf(err) != memory.CodeNotFound {
		return false, err
	}
	same := len(h.Versions) == 0
	for i := 0; i < len(h.Versions) && !same; i++ {
		if same, err = copyOf(h.Versions[i], *item.Exported); err != nil {
			return false, err
		}
	}
	if !same {
		return false, nil
	}
	return k.stillForgotten(ctx, f, item, record)
}

// copyOf reports whether a line of an export says what a record says, but for where it lies and came from, what
// it is derived from, and who revised it.
func copyOf(rec memory.Record, says memory.ExportLine) (bool, error) {
	is := importer.ExportOf(rec)
	if !sameJSON(withoutProvenance(is.Metadata), withoutProvenance(says.Metadata)) {
		return false, nil
	}
	if says.Version > 1 && says.Scope != memory.ScopeAgent { // of whoever revised it, which may have been an import
		says.Agent = is.Agent
	}
	if a, _ := importer.ProvenanceOf(is.Metadata); a.Says+a.Hash != "" {
		if b, _ := importer.ProvenanceOf(says.Metadata); a.Says == b.Says && a.Hash == b.Hash { // both were brought up to date from one source
			says.OccurredAt = is.OccurredAt
		}
	}
	says.RecordID, says.Version, says.ID, says.URI, says.CreatedAt = is.RecordID, is.Version, is.ID, is.URI, is.CreatedAt
	says.Origin, says.Source, says.DerivedFrom, says.Metadata = is.Origin, is.Source, is.DerivedFrom, is.Metadata
	says.Normalise()
	a, err := importer.FormatExported(is)
	if err != nil {
		return false, err
	}
	b, err := importer.FormatExported(says)
	return err == nil && bytes.Equal(a, b), err
}

// withoutProvenance is metadata without what imports write into it.
func withoutProvenance(metadata json.RawMessage) json.RawMessage {
	fields := map[string]json.RawMessage{}
	if len(metadata) > 0 && json.Unmarshal(metadata, &fields) != nil {
		return metadata
	}
	delete(fields, importer.Imported)
	b, err := json.Marshal(fields)
	if err != nil {
		return metadata
	}
	return b
}

// shown reports whether what an export says of a record of another namespace is shown by this node: the
// namespace is here, and the acting agent reads there what the export says, or, of a file, what was
// exported as it, by the folder's manifest. A file may have been edited since.
func (k *known) shown(ctx context.Context, item importer.Item) (bool, error) {
	if memory.CheckName("namespace", item.Home) != nil || item.Version < 1 {
		return false, nil
	}
	rec, err := k.load.node.Get(ctx, item.Home, item.RecordID, client.GetOptions{ReadOptions: client.ReadOptions{As: k.load.opt.Agent}, Version: item.Version})
	switch memory.CodeOf(err) {
	case memory.CodeNotFound, memory.CodeGone, memory.CodeForbidden, memory.CodeInvalid:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is, says := importer.ExportOf(rec), *item.Exported
	wrote, err := importer.FormatExported(is)
	if err != nil || item.Wrote == importer.SumOf(wrote) {
		return err == nil, err
	}
	if !sameJSON(is.Metadata, says.Metadata) {
		return false, nil
	}
	is.Metadata = says.Metadata // which may be written otherwise
	if wrote, err = importer.FormatExported(is); err != nil {
		return false, err
	}
	read, err := importer.FormatExported(says)
	return err == nil && bytes.Equal(read, wrote), err
}

// sourcesOf are the records here that a copy is derived from; where one is not here, what it was.
func sourcesOf(item importer.Item, rec memory.Record, all map[origin]copied) []string {
	var here []string
	for _, id := range item.Capture.DerivedFrom {
		source, there := all[origin{item.Home, id}]
		if !there {
			return rec.DerivedFrom
		}
		here = append(here, source.record)
	}
	return here
}

// copiesIn are what exports became in a namespace, as the acting agent sees it.
func (k *known) copiesIn(ctx context.Context, ns string) (map[origin]copied, error) {
	if all := k.copies[ns]; all != nil {
		return all, nil
	}
	all := map[origin]copied{}
	err := Imported(ctx, k.load.node, ns, k.load.opt.Agent, memory.Filter{}, func(rec memory.Record, p importer.Provenance) {
		of := origin{p.Exported(), p.Record}
		if p.Record != "" && p.Version >= all[of].version {
			all[of] = copied{rec.RecordID, p.Version}
		}
	})
	if err != nil {
		return nil, err
	}
	k.copies[ns] = all
	return all, nil
}
