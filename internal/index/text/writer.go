package text

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Writer adds documents to batches and removes them. It belongs to one goroutine.
//
// It remembers what the batch holds, so that a document can be removed in the batch
// that adds it, and the tails that it met, so that nothing of them is read again.
// Nobody else may write the rows of its partitions meanwhile. Call Committed when the batch is in the database, or Reset when it
// was given up; Reset after Committed does nothing.
type Writer struct {
	r       pebble.Reader
	pending map[docKey]pendingDoc
	tails   map[uint32]*tail // by partition
	held    int              // bytes of rows in tails
	dirty   bool             // the batch under way has rows
	dict    dictionary

	// Scratch, reused between calls.
	inv   inversion
	ids   []numbered
	terms []Term
	rows  []byte
	ends  []int // where each document's row in rows ends
	cuts  []int // documents of a call that begin a tail
	run   []posting
	key   []byte
	val   []byte
}

type docKey struct{ partition, id uint32 }

type pendingDoc struct {
	lengths [NumFields]uint32
	removed bool
	erased  bool
}

// NewWriter returns a Writer that finds committed rows in r, the database that
// its batches go to.
func NewWriter(r pebble.Reader) *Writer {
	return &Writer{r: r, pending: map[docKey]pendingDoc{}, tails: map[uint32]*tail{}, dict: newDictionary(r)}
}

// Committed begins a new batch, after the one before is in the database.
func (w *Writer) Committed() {
	w.dict.committed()
	clear(w.pending)
	w.dirty = false
	if w.held > maxTailBytes || len(w.tails) > maxTails {
		w.forgetTails()
	}
}

// Reset begins a new batch in the place of one that was given up.
func (w *Writer) Reset() {
	w.dict.givenUp()
	clear(w.pending)
	if w.dirty {
		w.forgetTails()
	}
}

func (w *Writer) forgetTails() {
	clear(w.tails)
	w.held, w.dirty = 0, false
}

// Add writes rows and counters of docs to b, and the postings of the tail that they
// complete. Their IDs ascend and lie above all IDs added to the
// partition before. After ErrInvalid nothing was written; after another error b
// must be given up. docs is not kept.
func (w *Writer) Add(b *pebble.Batch, partition uint32, docs []Doc) error {
	if len(docs) == 0 {
		return nil
	}
	defer w.shrink()
	if err := w.add(b, partition, docs); err != nil {
		return fmt.Errorf("add to partition %d: %w", partition, err)
	}
	return nil
}

// shrink lets go of scratch that long documents made large.
func (w *Writer) shrink() {
	w.inv.shrink()
	if cap(w.rows) > keptBytes {
		w.rows = nil
	}
	if cap(w.val) > keptBytes {
		w.val = nil
	}
}

func (w *Writer) add(b *pebble.Batch, partition uint32, docs []Doc) error {
	t, err := w.tailOf(partition)
	if err != nil {
		return err
	}
	size, err := w.check(t, docs)
	if err != nil {
		return err
	}
	first := 0 // of the newest tail
	if len(w.cuts) > 0 {
		first = w.cuts[len(w.cuts)-1]
	}
	if err := w.makeRows(docs[first:]); err != nil {
		return err
	}
	w.dirty = true
	for i := range docs {
		d := &docs[i]
		t.last = int64(d.ID)
		t.stats.addDoc(d.Lengths)
		w.pending[docKey{partition, d.ID}] = pendingDoc{lengths: d.Lengths}
	}
	if len(w.cuts) > 0 {
		if err := w.invert(b, partition, t, docs[first].ID, docs[:first]); err != nil {
			return err
		}
	}
	t.size = size
	from := 0
	for i, d := range docs[first:] {
		row := w.rows[from:w.ends[i]]
		from = w.ends[i]
		w.key = appendForwardKey(w.key[:0], partition, d.ID)
		if err := b.Set(w.key, row, nil); err != nil {
			return err
		}
		t.docs = append(t.docs, rowOfDoc{id: d.ID, from: len(t.rows), to: len(t.rows) + len(row)})
		t.rows = append(t.rows, row...)
		w.held += len(row)
	}
	return w.count(b, partition, t)
}

// check validates docs and notes in w.cuts which of them begin a tail. size is that of
// the newest tail with them.
func (w *Writer) check(t *tail, docs []Doc) (size uint64, err error) {
	if len(docs) > maxDocsPerCall-tailSize {
		return 0, fmt.Errorf("%w: %d documents in one call", ErrInvalid, len(docs))
	}
	w.cuts = w.cuts[:0]
	start, size := t.start, t.size
	last := max(t.last, int64(start)-1)
	for i := range docs {
		d := &docs[i]
		if int64(d.ID) <= last {
			return 0, fmt.Errorf("%w: document %d after %d", ErrInvalid, d.ID, last)
		}
		last = int64(d.ID)
		n := len(d.Row)
		if d.Row == nil {
			terms, err := inOrder(d)
			if err != nil {
				return 0, fmt.Errorf("document %d: %w", d.ID, err)
			}
			n = docLen(d.Lengths, terms)
		}
		if begins(start, size, d.ID, n) {
			w.cuts = append(w.cuts, i)
			start, size = d.ID, 0
		}
		size += uint64(n)
	}
	return size, nil
}

// makeRows makes the rows of documents that stay in the tail.
func (w *Writer) makeRows(docs []Doc) (err error) {
	w.rows, w.ends = w.rows[:0], w.ends[:0]
	for i := range docs {
		row := docs[i].Row
		if row == nil {
			terms, err := inOrder(&docs[i])
			if err != nil {
				return fmt.Errorf("document %d: %w", docs[i].ID, err)
			}
			w.val = AppendDoc(w.val[:0], docs[i].Lengths, terms)
			row = w.val
		}
		if w.rows, err = appendTailRow(w.rows, row); err != nil {
			return fmt.Errorf("%w: the row of document %d: %v", ErrInvalid, docs[i].ID, err)
		}
		w.ends = append(w.ends, len(w.rows))
	}
	return nil
}

// count writes the partition's counters. A merged row would be as long, for those
// who read it, as there were batches since the last flush.
func (w *Writer) count(b *pebble.Batch, partition uint32, t *tail) error {
	w.key = appendPartition(w.key[:0], PrefixStatistics, partition)
	w.val = appendStats(w.val[:0], t.stats, t.counters)
	if err := b.Set(w.key, w.val, nil); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}
