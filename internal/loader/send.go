package loader

import (
	"context"
	"maps"
	"slices"
	"time"

	"mneme/internal/importer"
	"mneme/memory"
)

// Batches of an import: a request of at most so many captures or bytes, so many on their way
// at once, each tried again so often while the node is busy.
const (
	maxBatch    = 500
	maxBytes    = 4 << 20
	maxFlights  = 2
	maxAttempts = 6
	pause       = 250 * time.Millisecond
	maxProblems = 100 // listed; the others are only counted

	// maxWaiting bounds the texts of memories that wait for what they are derived
	// from; behind it they go in without.
	maxWaiting = 64 << 20
)

// sender sends items in batches, and what the node was too busy for again. While one
// batch is on its way the next is read, and sent as well if it need not stay behind it.
type sender struct {
	load    *load
	bar     Bar
	batch   []importer.Item   // all of one namespace
	bytes   int               // of the batch's texts
	flights []*flight         // oldest first
	ready   map[string]bool   // namespaces that exist
	empty   map[string]bool   // namespaces that held nothing when the import began
	records map[string]uint64 // that namespaces held then
	done    uint64

	moved   map[string]string // of exports of ours: record there → record here
	waiting []importer.Item   // derived from records that are yet to come
	waits   int               // bytes of their texts
	back    []importer.Item   // that were forgotten, and come back
}

func (s *sender) add(ctx context.Context, item importer.Item) error {
	if s.lineage(&item) {
		return nil
	}
	return s.push(ctx, item)
}

// push adds an item to the batch, which is dispatched where it is full.
func (s *sender) push(ctx context.Context, item importer.Item) error {
	size := bytesOf(&item)
	switch {
	case len(s.batch) == 0:
	case s.batch[0].Namespace != item.Namespace:
		if err := s.dispatch(ctx, len(s.batch)); err != nil {
			return err
		}
	case len(s.batch) == maxBatch || s.bytes+size > maxBytes:
		if err := s.dispatch(ctx, wholeConversations(s.batch)); err != nil {
			return err
		}
	}
	s.batch = append(s.batch, item)
	s.bytes += size
	return nil
}

// lineage names the records here that an exported memory is derived from, and
// reports whether it has to wait for them: exports begin with the newest record.
func (s *sender) lineage(item *importer.Item) bool {
	if len(item.Capture.DerivedFrom) == 0 || item.RecordID == "" {
		return false
	}
	if len(s.missing(item)) > 0 && s.waits < maxWaiting {
		s.waiting = append(s.waiting, *item)
		s.waits += bytesOf(item)
		return true
	}
	*item = s.sourced(*item)
	return false
}

// missing are the records that an exported memory is derived from and that are not known here.
func (s *sender) missing(item *importer.Item) []string {
	return slices.DeleteFunc(slices.Clone(item.Capture.DerivedFrom), func(id string) bool { return s.here(item, id) != "" })
}

// here is the record of the namespace that an exported memory is derived from; "" where it is not known.
func (s *sender) here(item *importer.Item, source string) string {
	if at := s.load.known.ids[item.Namespace]; !item.Away && at != nil && at.ids[source] {
		return source
	}
	return s.moved[source]
}

// sourced is an exported memory that is derived from the records here. Its provenance names
// those of its sources that are not.
func (s *sender) sourced(item importer.Item) importer.Item {
	missing := s.missing(&item)
	var here []string
	for _, id := range item.Capture.DerivedFrom {
		if at := s.here(&item, id); at != "" {
			here = append(here, at)
		}
	}
	if len(missing) > 0 {
		item = importer.Missing(item, missing)
		if _, named := importer.ProvenanceOf(item.Capture.Metadata); !named {
			s.load.left(item, "what a memory was derived from, and is not there")
		}
	}
	item.Capture.DerivedFrom = here
	return item
}

// derived sends what waited, first from the end, since exports begin with the newest,
// and on in turn of both ways as long as that brings anything on.
// What is left is derived from memories that were not exported, or from what is: it goes in,
// and its provenance names what is missing.
func (s *sender) derived(ctx context.Context) error {
	for len(s.waiting) > 0 {
		before := len(s.waiting)
		items := s.waiting
		s.waiting, s.waits = nil, 0
		slices.Reverse(items)
		for _, item := range items {
			waited := len(s.waiting)
			if err := s.add(ctx, item); err != nil {
				return err
			}
			if len(s.waiting) == waited || len(s.batch) == 0 && len(s.flights) == 0 {
				continue
			}
			// What it is derived from may be in the batch, or on its way.
			s.waiting, s.waits = s.waiting[:waited], 0
			if err := s.flush(ctx); err != nil {
				return err
			}
			if err := s.add(ctx, item); err != nil {
				return err
			}
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
		if len(s.waiting) < before {
			continue // the other way round
		}
		if err := s.orphans(ctx); err != nil {
			return err
		}
	}
	return s.flush(ctx)
}

// orphans sends those that wait for nothing that waits itself; where all do, in a circle, the
// oldest one.
func (s *sender) orphans(ctx context.Context) error {
	waiting := map[string]bool{}
	for i := range s.waiting {
		waiting[s.waiting[i].RecordID] = true
	}
	waits := func(item importer.Item) bool {
		return slices.ContainsFunc(s.missing(&item), func(id string) bool { return waiting[id] })
	}
	oldest := "" // of a circle
	if !slices.ContainsFunc(s.waiting, func(item importer.Item) bool { return !waits(item) }) {
		oldest = slices.Min(slices.Collect(maps.Keys(waiting)))
	}
	items := s.waiting
	s.waiting, s.waits = nil, 0
	for _, item := range items {
		if waits(item) && item.RecordID != oldest {
			s.waiting = append(s.waiting, item)
			s.waits += bytesOf(&item)
			continue
		}
		if err := s.push(ctx, s.sourced(item)); err != nil {
			return err
		}
	}
	return s.flush(ctx)
}

func (s *sender) report() { s.bar.Report(memory.Progress{Done: s.done, Unit: unitOf(s.done)}) }

// unitOf is what progress counts.
func unitOf(n uint64) string {
	if n == 1 {
		return "memory"
	}
	return "memories"
}

func (s *sender) result(ctx context.Context, counts *Counts, item importer.Item, res memory.CaptureResult) error {
	if item.RecordID != "" && res.RecordID != "" {
		s.moved[item.RecordID] = res.RecordID
	}
	switch {
	case res.Status == memory.StatusCreated:
		counts.Created++
		s.load.made(res.RecordID)
		return nil
	case res.Status == memory.StatusDuplicate,
		// The record that this line was exported from.
		res.Status == memory.StatusConflict && item.RecordID != "" && res.RecordID == item.RecordID:
		f, err := s.load.known.past(ctx, item.Namespace)
		if err != nil {
			return err
		}
		if was := f.records[res.RecordID]; was != nil {
			return s.again(ctx, counts, item, f, was)
		}
		if otherwise, err := s.load.known.saidOtherwise(ctx, item, res.RecordID); err != nil {
			return err
		} else if otherwise {
			return s.load.known.conflict(ctx, item, res.RecordID)
		}
		counts.Duplicates++
		return nil
	case res.Status == memory.StatusConflict && res.RecordID != "":
		if _, imported := importer.ProvenanceOf(item.Capture.Metadata); imported {
			return s.load.known.conflict(ctx, item, res.RecordID)
		}
	}
	s.load.refused(item, res.Error)
	return nil
}

// prepare makes sure that a namespace exists before the first batch goes there,
// and so finds out at once when no node does. Only locomo makes namespaces.
func (s *sender) prepare(ctx context.Context, ns string) error {
	if s.ready[ns] {
		return nil
	}
	n := s.load.node
	info, err := n.Namespace(ctx, ns)
	s.empty[ns], s.records[ns] = err == nil && info.Records == 0, info.Records
	switch {
	case s.load.format != "locomo" || memory.CodeOf(err) != memory.CodeNotFound:
	case s.load.opt.DryRun:
		err = nil // it would be made
	default:
		_, err = n.CreateNamespace(ctx, memory.CreateNamespace{Name: ns})
		if err == nil {
			s.load.opt.Note("created namespace %s", ns)
		}
		if memory.CodeOf(err) == memory.CodeConflict {
			err = nil // someone else was faster
		}
	}
	s.ready[ns] = err == nil
	return err
}
