package loader

import (
	"context"
	"fmt"
	"path/filepath"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// home looks for the record that an exported memory is, in the namespace that it was exported from. Where that is another
// one that is called so, on another node or before it was deleted, the item is from away.
func (k *known) home(ctx context.Context, of *importer.Item) (bool, error) {
	item := *of
	if err := k.load.send.prepare(ctx, item.Namespace); err != nil {
		return false, err
	}
	if there, err := k.resident(ctx, item, item.RecordID); err != nil {
		return false, err
	} else if !there {
		return k.notHome(ctx, of)
	}
	if !item.Update {
		k.load.settle(item).Duplicates++
		return true, nil
	}
	rec, err := k.get(ctx, item, item.RecordID, 0)
	if code := memory.CodeOf(err); code == memory.CodeNotFound || code == memory.CodeGone { // since it was listed
		k.load.settle(item).Forgotten++
		return true, nil
	}
	if err != nil {
		return false, err
	}
	counts := k.load.settle(item)
	if _, changed := revisionTo(rec, item); !item.Update || !changed || item.Untouched {
		counts.Duplicates++
		return true, nil
	}
	if !k.load.opt.Revise {
		wrote, err := k.exported(ctx, item, rec)
		if err != nil {
			return false, err
		}
		if wrote && item.Version < rec.Version {
			k.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: fmt.Sprintf("it was edited, and %s was revised since it was exported: "+
				"the file is of version %d, the memory at %d; export it into another folder to compare, and if the file is right: %s", item.RecordID, item.Version, rec.Version, k.load.taking(item))})
			return true, nil
		}
		if !wrote {
			k.load.refused(item, &memory.ItemError{Code: memory.CodeConflict, Detail: "it says that it is " + item.RecordID +
				" and differs from it, but no export is known to have written it; look at it, and if it is right: " + k.load.taking(item)})
			return true, nil
		}
	}
	return true, k.reviseTo(ctx, item, rec)
}

// notHome settles an exported memory whose record the acting agent does not see at home: it is another agent's own, or
// was forgotten, or is from away.
func (k *known) notHome(ctx context.Context, of *importer.Item) (bool, error) {
	if there, err := k.anothers(ctx, *of, of.RecordID); there || err != nil {
		return there, err
	}
	f, err := k.past(ctx, of.Namespace)
	if err != nil {
		return false, err
	}
	if f.records[of.RecordID] == nil {
		*of = importer.FromAway(*of)
		return false, nil
	}
	if there, err := k.stillForgotten(ctx, f, *of, of.RecordID); there || err != nil {
		return there, err
	}
	for _, source := range of.Capture.DerivedFrom { // which of them are there is known to what sends it
		if _, err := k.resident(ctx, *of, source); err != nil {
			return false, err
		}
	}
	return false, nil
}

// maxLooked is how many records of a namespace are looked up one by one before it is read as a whole; of one that is
// large, more.
const maxLooked = 200

// few reports whether it costs less to look up so many records of a namespace one by one than to read it, for which a
// record takes a tenth of the time.
func (k *known) few(looked int, ns string) bool {
	return looked <= maxLooked || uint64(looked) <= k.load.send.records[ns]/16
}

// residents are records of a namespace, as the acting agent sees it.
type residents struct {
	ids    map[string]bool // whether they are there
	looked int
	whole  bool // all that are there are known
}

// resident reports whether a record is in the namespace of an item.
func (k *known) resident(ctx context.Context, item importer.Item, recordID string) (bool, error) {
	r := k.ids[item.Namespace]
	if r == nil {
		r = &residents{ids: map[string]bool{}, whole: k.load.send.empty[item.Namespace]}
		k.ids[item.Namespace] = r
	}
	if there, looked := r.ids[recordID]; looked || r.whole {
		return there, nil
	}
	if r.looked++; k.few(r.looked, item.Namespace) {
		_, err := k.get(ctx, item, recordID, 0)
		if code := memory.CodeOf(err); code == memory.CodeNotFound || code == memory.CodeGone {
			err = nil
		} else if err == nil {
			r.ids[recordID] = true
		}
		return r.ids[recordID], err
	}
	none := 0
	err := listed(ctx, k.load.node, item.Namespace, k.load.opt.Agent, memory.Filter{}, memory.Fit{MaxText: &none, Fields: []string{"record_id"}}, func(rec memory.Record) { r.ids[rec.RecordID] = true })
	r.whole = err == nil
	return r.ids[recordID], err
}

// taking is the command that lets the one file of an item revise, whatever became of the memory.
func (l *load) taking(item importer.Item) string {
	file := l.file
	if !l.single {
		file = filepath.Join(file, filepath.FromSlash(item.Where))
	}
	return l.opt.Taking(item.Namespace, file)
}

// exported reports whether an export of the record that a file says it is wrote the
// file: the folder's manifest has the hash of what the record was, which only who read
// it can know. A manifest alone shows nothing, since it comes with the files.
func (k *known) exported(ctx context.Context, item importer.Item, rec memory.Record) (bool, error) {
	if item.Wrote == "" || item.Version < 1 || item.Version > rec.Version {
		return false, nil
	}
	if item.Version < rec.Version {
		var err error
		if rec, err = k.get(ctx, item, rec.RecordID, item.Version); err != nil {
			return false, err
		}
	}
	text, err := importer.FormatExported(importer.ExportOf(rec))
	return err == nil && importer.SumOf(text) == item.Wrote, err
}

// anothers settles an item whose record the acting agent does not see: it may be
// another agent's own, which no import revises.
func (k *known) anothers(ctx context.Context, item importer.Item, recordID string) (bool, error) {
	if item.Capture.Scope != memory.ScopeAgent || item.Capture.Agent == k.load.opt.Agent {
		return false, nil
	}
	rec, err := k.load.node.Get(ctx, item.Namespace, recordID, client.GetOptions{ReadOptions: client.ReadOptions{As: item.Capture.Agent}})
	switch memory.CodeOf(err) {
	case memory.CodeNotFound, memory.CodeGone, memory.CodeForbidden:
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k.load.settle(item).Duplicates++
	if _, changed := revisionTo(rec, item); item.Update && changed {
		k.load.left(item, "changes of another agent's own memories, which only that agent makes (--as)")
	}
	return true, nil
}

// get reads a record as the acting agent; version 0 is the newest.
func (k *known) get(ctx context.Context, item importer.Item, recordID string, version int) (rec memory.Record, err error) {
	rec, err = k.load.node.Get(ctx, item.Namespace, recordID, client.GetOptions{ReadOptions: client.ReadOptions{As: k.load.opt.Agent}, Version: version})
	return rec, err
}
