package loader

import (
	"context"

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
// revised there since is revised here, and of what is the same, or older, nothing is left to do.
func (k *known) copy(ctx context.Context, item importer.Item) (bool, error) {
	if err := k.load.send.prepare(ctx, item.Namespace); err != nil || k.load.send.empty[item.Namespace] {
		return false, err
	}
	all, err := k.copiesIn(ctx, item.Namespace)
	if err != nil {
		return false, err
	}
	was, there := all[origin{item.Home, item.RecordID}]
	if !there || item.Version == was.version && item.Update && !item.Untouched { // an edited file is of the version that it was
		return false, nil
	}
	k.load.send.moved[item.RecordID] = was.record
	if item.Version <= was.version {
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
	return true, k.reviseTo(ctx, item, rec)
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
