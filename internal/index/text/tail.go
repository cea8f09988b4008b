package text

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// The newest documents of a partition, its tail, have rows in clear and no postings;
// a search looks its terms up in those rows. A document begins a new tail when its
// DocID reaches the next multiple of tailSize, or when the documents of the tail would
// have more than tailBytes in clear with it; the tail before it is then inverted: one
// operand for each term of all its documents together, and for each document a row by
// ids instead of the one in clear. So a term that is in every document gets one operand
// in tailSize documents instead of one in each, a tail of long documents is inverted
// before it holds more than one call should, and which rows there are is a function of
// the documents and not of their batches. A document longer than tailBytes is a tail of
// its own.
const (
	tailBits  = 6
	tailSize  = 1 << tailBits
	tailBytes = 256 << 10
)

// tail is a partition's counters and tail as the batch leaves them so far.
type tail struct {
	stats Stats
	counters
	last  int64      // the greatest DocID added since the Writer knows the tail; -1: none
	docs  []rowOfDoc // added since, and not inverted
	rows  []byte     // their rows, back to back
	whole bool       // no other documents are in the tail
}

type rowOfDoc struct {
	id       uint32
	from, to int // in tail.rows
	removed  bool
	erased   bool
}

// maxTailBytes bounds the rows that a Writer remembers between batches, and
// maxTails the partitions. Memory that a long tail took is kept for the next one up to
// keptBytes and keptPairs, far more than tails of ordinary documents need.
const (
	maxTailBytes = 8 << 20
	maxTails     = 1 << 12
	keptBytes    = 64 << 10
	keptPairs    = 1 << 16
)

// tailOf finds the partition's tail, in the database at first use.
func (w *Writer) tailOf(partition uint32) (*tail, error) {
	if t := w.tails[partition]; t != nil {
		return t, nil
	}
	stats, c, err := readStats(w.r, partition)
	if err != nil {
		return nil, err
	}
	t := &tail{stats: stats, counters: c, last: -1}
	w.tails[partition] = t
	return t, nil
}

// begins reports whether a document of so many bytes in clear begins a tail behind one
// that begins at start and has size bytes.
func begins(start uint32, size uint64, id uint32, bytes int) bool {
	return id>>tailBits != start>>tailBits || size > 0 && size+uint64(bytes) > tailBytes
}

// doc finds a document in memory; nil if it is not there.
func (t *tail) doc(id uint32) *rowOfDoc {
	i, ok := slices.BinarySearchFunc(t.docs, id, func(d rowOfDoc, id uint32) int { return cmp.Compare(d.id, id) })
	if !ok {
		return nil
	}
	return &t.docs[i]
}

// gatherTail takes the documents of the tail below end, and forgets them.
func (w *Writer) gatherTail(partition uint32, t *tail, end uint32) error {
	if !t.whole {
		known := end // where those begin that are in memory
		if len(t.docs) > 0 {
			known = min(known, t.docs[0].id)
		}
		if err := w.gatherCommitted(partition, t.start, known); err != nil {
			return err
		}
	}
	for _, d := range t.docs { // all below end, which is where the newest tail begins
		if d.erased {
			continue
		}
		if err := w.gather(d.id, t.rows[d.from:d.to], d.removed); err != nil {
			return err
		}
	}
	w.held -= len(t.rows)
	t.docs, t.rows, t.start, t.whole = t.docs[:0], t.rows[:0], end, true
	if cap(t.rows) > keptBytes {
		t.rows = nil
	}
	return nil
}

// gatherCommitted takes documents that only the database knows.
func (w *Writer) gatherCommitted(partition, start, end uint32) (err error) {
	it, err := w.r.NewIter(&pebble.IterOptions{
		LowerBound: appendForwardKey(nil, partition, start),
		UpperBound: appendForwardKey(nil, partition, end),
	})
	if err != nil {
		return err
	}
	defer func() {
		if e := it.Close(); err == nil {
			err = e
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		_, id, mark, err := ParseForwardKey(it.Key())
		if err != nil {
			return err
		}
		state, known := w.pending[docKey{partition, id}]
		switch {
		case known && state.erased:
		case mark:
			if docs := w.inv.docs; len(docs) > 0 && docs[len(docs)-1].id == id {
				docs[len(docs)-1].removed = true
			}
		default:
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if err := w.gather(id, v, state.removed); err != nil {
				return err
			}
		}
	}
	return it.Error()
}

// gather takes the row of one document of the tail.
func (w *Writer) gather(id uint32, row []byte, removed bool) error {
	v := &w.inv
	_, d, err := openTailRow(row)
	if err != nil {
		return fmt.Errorf("document %d: %w", id, err)
	}
	for d.next() {
		if term := d.text(); validTerm(term) && d.tf > 0 && d.tf <= MaxTF {
			v.add(w.dict.entryOf(v.vocab, d.field, term), d.tf)
			continue
		}
		return fmt.Errorf("%w: document %d: term %q", ErrCorrupt, id, d.text())
	}
	if d.err != nil {
		return fmt.Errorf("document %d: %w", id, d.err)
	}
	v.endDoc(id, d.lengths, removed)
	return nil
}

// eachTailRow visits the rows of documents from start on, with their removed marks. row
// is valid during the call only.
func eachTailRow(it *pebble.Iterator, partition, start uint32, visit func(id uint32, row []byte, removed bool) error) error {
	prefix := appendPartition(nil, PrefixForward, partition)
	end := storage.PrefixEnd(prefix)
	var id uint32
	var row []byte
	held := false
	for ok := it.SeekGE(appendForwardKey(nil, partition, start)); ok && string(it.Key()) < string(end); ok = it.Next() {
		_, at, mark, err := ParseForwardKey(it.Key())
		if err != nil {
			return err
		}
		if mark {
			if held && at == id {
				held = false
				if err := visit(id, row, true); err != nil {
					return err
				}
			}
			continue
		}
		if held {
			if err := visit(id, row, false); err != nil {
				return err
			}
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		id, row, held = at, append(row[:0], v...), true
	}
	if held {
		if err := visit(id, row, false); err != nil {
			return err
		}
	}
	return it.Error()
}
