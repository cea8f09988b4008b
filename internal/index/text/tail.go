package text

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// The newest documents of a partition, its tail, have rows in clear and no postings;
// a search looks its terms up in those rows. When a document reaches the next
// multiple of tailSize, the tail before it is inverted: one operand for each term of
// all its documents together, and for each document a row by ids instead of the one
// in clear. So a term that is in every document gets one operand in tailSize
// documents instead of one in each, and which rows there are is a function of the
// documents and not of their batches.
const (
	tailBits = 6
	tailSize = 1 << tailBits
	maxTail  = 1<<32 - tailSize
)

// tail is a partition's counters and tail as the batch leaves them so far.
type tail struct {
	stats  Stats
	start  uint32     // documents below have postings
	nextID uint32     // of the next new term
	last   int64      // the greatest DocID added in this batch; -1: none
	docs   []rowOfDoc // added in this batch
	rows   []byte     // their rows, back to back
}

type rowOfDoc struct {
	id       uint32
	from, to int // in tail.rows
}

// tailOf finds the partition's tail, in the database at first use in a batch.
func (w *Writer) tailOf(partition uint32) (*tail, error) {
	if t := w.tails[partition]; t != nil {
		return t, nil
	}
	stats, start, nextID, err := readStats(w.r, partition)
	if err != nil {
		return nil, err
	}
	t := &tail{stats: stats, start: start, nextID: nextID, last: -1}
	w.tails[partition] = t
	return t, nil
}

func (t *tail) dropFirst(n int) {
	if n == len(t.docs) {
		t.docs, t.rows = t.docs[:0], t.rows[:0]
		return
	}
	t.docs = append(t.docs[:0], t.docs[n:]...)
}

// gatherCommitted takes the documents that were there before the batch.
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
