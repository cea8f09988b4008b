package text

import (
	"fmt"
	"sort"

	"github.com/cockroachdb/pebble/v2"
)

// Writer adds documents to batches and removes them. It belongs to one goroutine.
//
// It remembers what the batch holds since Reset, so that a document can be removed
// in the batch that adds it; call Reset when that batch was committed or given up.
type Writer struct {
	r       pebble.Reader
	pending map[docKey]pendingDoc
	tails   map[uint32]*tail // by partition

	// Scratch, reused between calls.
	post  sorter
	inv   []inverted
	terms []Term
	rows  []byte
	ends  []int // where each document's row in rows ends
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
	return &Writer{r: r, pending: map[docKey]pendingDoc{}, tails: map[uint32]*tail{}}
}

// Reset forgets the documents of the batch so far.
func (w *Writer) Reset() {
	clear(w.pending)
	clear(w.tails)
}

// Add writes forward rows and counters of docs to b, and the postings of the tail
// that they complete. Their IDs ascend and lie above all IDs added to the
// partition before. After ErrInvalid nothing was written; after another error b
// must be given up. docs is not kept.
func (w *Writer) Add(b *pebble.Batch, partition uint32, docs []Doc) error {
	if len(docs) == 0 {
		return nil
	}
	if err := w.add(b, partition, docs); err != nil {
		return fmt.Errorf("add to partition %d: %w", partition, err)
	}
	return nil
}

func (w *Writer) add(b *pebble.Batch, partition uint32, docs []Doc) error {
	t, err := w.tailOf(partition)
	if err != nil {
		return err
	}
	if err := w.encode(t, docs); err != nil {
		return err
	}
	end := max(t.start, docs[len(docs)-1].ID&^(tailSize-1))
	from := 0
	for i := range docs {
		d := &docs[i]
		row := w.rows[from:w.ends[i]]
		from = w.ends[i]
		w.key = appendForwardKey(w.key[:0], partition, d.ID)
		if err := b.Set(w.key, row, nil); err != nil {
			return err
		}
		t.last = int64(d.ID)
		t.stats.addDoc(d.Lengths)
		w.pending[docKey{partition, d.ID}] = pendingDoc{lengths: d.Lengths}
	}
	first := sort.Search(len(docs), func(i int) bool { return docs[i].ID >= end }) // of the next tail
	if end > t.start {
		if err := w.invert(b, partition, t, end, docs[:first]); err != nil {
			return err
		}
	}
	for i := first; i < len(docs); i++ {
		row := w.rows[:w.ends[i]]
		if i > 0 {
			row = row[w.ends[i-1]:]
		}
		t.docs = append(t.docs, rowOfDoc{id: docs[i].ID, from: len(t.rows), to: len(t.rows) + len(row)})
		t.rows = append(t.rows, row...)
	}
	return w.count(b, partition, t)
}

// encode validates docs and encodes their forward rows.
func (w *Writer) encode(t *tail, docs []Doc) error {
	if len(docs) > maxDocsPerCall-tailSize {
		return fmt.Errorf("%w: %d documents in one call", ErrInvalid, len(docs))
	}
	w.rows, w.ends = w.rows[:0], w.ends[:0]
	last := max(t.last, int64(t.start)-1)
	for i := range docs {
		if int64(docs[i].ID) <= last {
			return fmt.Errorf("%w: document %d after %d", ErrInvalid, docs[i].ID, last)
		}
		last = int64(docs[i].ID)
		if row := docs[i].Row; row != nil {
			w.rows = append(w.rows, row...)
		} else {
			var err error
			if w.rows, err = EncodeForward(w.rows, docs[i]); err != nil {
				return err
			}
		}
		w.ends = append(w.ends, len(w.rows))
	}
	return nil
}

// count writes the partition's counters. A merged row would be as long, for those
// who read it, as there were batches since the last flush.
func (w *Writer) count(b *pebble.Batch, partition uint32, t *tail) error {
	w.key = appendPartition(w.key[:0], PrefixStatistics, partition)
	w.val = appendStats(w.val[:0], t.stats, t.start)
	if err := b.Set(w.key, w.val, nil); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	return nil
}
