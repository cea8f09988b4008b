package text

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// The newest documents of a partition, its tail, have forward rows and no
// postings; a search looks its terms up in those rows. When a document reaches
// the next multiple of tailSize, the tail before it is inverted: one operand for
// each term of all its documents together. So a term that is in every document
// gets one operand in tailSize documents instead of one in each, and which
// operands there are is a function of the documents and not of their batches.
const (
	tailBits = 6
	tailSize = 1 << tailBits
	maxTail  = 1<<32 - tailSize
)

// tail is a partition's counters and tail as the batch leaves them so far.
type tail struct {
	stats Stats
	start uint32     // documents below have postings
	last  int64      // the greatest DocID added since Reset; -1: none
	docs  []rowOfDoc // added since Reset
	rows  []byte     // their forward rows, back to back
}

type rowOfDoc struct {
	id       uint32
	from, to int // in tail.rows
}

// tailOf finds the partition's tail, in the database at first use after Reset.
func (w *Writer) tailOf(partition uint32) (*tail, error) {
	if t := w.tails[partition]; t != nil {
		return t, nil
	}
	stats, start, err := readStats(w.r, partition)
	if err != nil {
		return nil, err
	}
	t := &tail{stats: stats, start: start, last: -1}
	w.tails[partition] = t
	return t, nil
}

// inverted is one document on its way into the postings.
type inverted struct {
	id      uint32
	lengths [NumFields]uint32
	removed bool
}

// invert writes the postings of the documents in [t.start, end), the last of which
// are docs.
func (w *Writer) invert(b *pebble.Batch, partition uint32, t *tail, end uint32, docs []Doc) error {
	w.post.reset()
	w.inv = w.inv[:0]
	if err := w.gatherCommitted(partition, t.start, end); err != nil {
		return err
	}
	n := 0 // of t.docs
	for ; n < len(t.docs) && t.docs[n].id < end; n++ {
		d := t.docs[n]
		state := w.pending[docKey{partition, d.id}]
		if state.erased {
			continue
		}
		if err := w.gather(d.id, t.rows[d.from:d.to], state.removed); err != nil {
			return err
		}
	}
	t.dropFirst(n)
	t.start = end
	for i := range docs {
		d := &docs[i]
		for _, term := range d.Terms {
			w.post.add(makeDocTerm(term, len(w.inv)))
		}
		w.inv = append(w.inv, inverted{id: d.ID, lengths: d.Lengths})
	}
	return w.writePostings(b, partition)
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
			if n := len(w.inv); n > 0 && w.inv[n-1].id == id {
				w.inv[n-1].removed = true
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

// gather takes one forward row.
func (w *Writer) gather(id uint32, row []byte, removed bool) error {
	f, err := splitForward(row)
	if err == nil {
		w.terms, err = f.appendTerms(w.terms[:0])
	}
	if err != nil {
		return fmt.Errorf("document %d: %w", id, err)
	}
	for _, t := range w.terms {
		w.post.add(makeDocTerm(t, len(w.inv)))
	}
	w.inv = append(w.inv, inverted{id: id, lengths: f.lengths, removed: removed})
	return nil
}

// writePostings merges one row per term, field and block of what was gathered.
// Keys go out ascending, which the memtable inserts fastest.
func (w *Writer) writePostings(b *pebble.Batch, partition uint32) error {
	ts := w.post.sort()
	for i := 0; i < len(ts); {
		first := ts[i]
		block := w.inv[first.doc()].id >> blockBits
		w.run = w.run[:0]
		removed := uint32(0)
		for ; i < len(ts); i++ {
			t := ts[i]
			d := &w.inv[t.doc()]
			if t.hi != first.hi || t.group() != first.group() || d.id>>blockBits != block {
				break
			}
			w.run = append(w.run, makePosting(d.id&(blockSize-1), t.tf, d.lengths[t.field()]))
			if d.removed {
				removed++
			}
		}
		w.key = appendPostingKey(w.key[:0], partition, first.termKey(), first.field(), block)
		w.val = appendRow(w.val[:0], removed, w.run)
		if err := b.Merge(w.key, w.val, nil); err != nil {
			return err
		}
	}
	return nil
}

// eachTailRow visits the forward rows from start on, with their removed marks. row
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
