package text

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Writer adds documents to batches and removes them. It belongs to one goroutine.
//
// It remembers the documents it added since Reset, so that one can be removed in
// the batch that adds it; call Reset when that batch was committed or given up.
type Writer struct {
	r       pebble.Reader
	pending map[docKey]pendingDoc

	// Scratch, reused between calls.
	post sorter
	fwd  []Term // terms of all documents, each document's in order
	ends []int  // where each document's terms in fwd end
	run  []posting
	key  []byte
	val  []byte
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
	return &Writer{r: r, pending: map[docKey]pendingDoc{}}
}

// Reset forgets the documents of the batch so far.
func (w *Writer) Reset() { clear(w.pending) }

// Add writes postings, forward rows and counters of docs to b. Their IDs ascend
// and lie above all IDs added to the partition before. Postings are grouped: one
// merge per term and block for the whole call, so that large calls are cheaper.
// After ErrInvalid nothing was written; after another error b must be given up.
// docs is not kept.
func (w *Writer) Add(b *pebble.Batch, partition uint32, docs []Doc) error {
	if err := w.collect(docs); err != nil {
		return fmt.Errorf("add to partition %d: %w", partition, err)
	}
	if len(docs) == 0 {
		return nil
	}
	if err := w.writePostings(b, partition, docs); err != nil {
		return fmt.Errorf("add to partition %d: %w", partition, err)
	}
	if err := w.writeForward(b, partition, docs); err != nil {
		return fmt.Errorf("add to partition %d: %w", partition, err)
	}
	var sum Stats
	for i := range docs {
		sum.addDoc(docs[i].Lengths)
		w.pending[docKey{partition, docs[i].ID}] = pendingDoc{lengths: docs[i].Lengths}
	}
	return w.count(b, partition, sum)
}

// collect validates docs and sorts their terms into w.post.
func (w *Writer) collect(docs []Doc) error {
	if len(docs) > maxDocsPerCall {
		return fmt.Errorf("%w: %d documents in one call", ErrInvalid, len(docs))
	}
	w.post.reset()
	w.ends = w.ends[:0]
	for i := range docs {
		d := &docs[i]
		if i > 0 && d.ID <= docs[i-1].ID {
			return fmt.Errorf("%w: document %d after %d", ErrInvalid, d.ID, docs[i-1].ID)
		}
		if err := checkDoc(d.Lengths, d.Terms); err != nil {
			return fmt.Errorf("document %d: %w", d.ID, err)
		}
		for _, t := range d.Terms {
			w.post.add(makeDocTerm(t, i))
		}
		w.ends = append(w.ends, w.post.len())
	}
	ts := w.post.sort()
	for i := 1; i < len(ts); i++ {
		if ts[i].hi == ts[i-1].hi && ts[i].lo == ts[i-1].lo {
			return fmt.Errorf("document %d: %w: term %s twice in %s",
				docs[ts[i].doc()].ID, ErrInvalid, ts[i].termKey(), ts[i].field())
		}
	}
	return nil
}

// writePostings merges one run per term, field and block. Keys go out ascending,
// which the memtable inserts fastest.
func (w *Writer) writePostings(b *pebble.Batch, partition uint32, docs []Doc) error {
	ts := w.post.sorted
	for i := 0; i < len(ts); {
		first := ts[i]
		block := docs[first.doc()].ID >> blockBits
		w.run = w.run[:0]
		for ; i < len(ts); i++ {
			t := ts[i]
			d := &docs[t.doc()]
			if t.hi != first.hi || t.group() != first.group() || d.ID>>blockBits != block {
				break
			}
			w.run = append(w.run, makePosting(d.ID&(blockSize-1), t.tf, d.Lengths[t.field()]))
		}
		w.key = appendPostingKey(w.key[:0], partition, first.termKey(), first.field(), block)
		w.val = appendRun(w.val[:0], w.run)
		if err := b.Merge(w.key, w.val, nil); err != nil {
			return err
		}
	}
	return nil
}

// writeForward sets the forward rows. Dealing the sorted terms out to their
// documents gives each one's terms in order.
func (w *Writer) writeForward(b *pebble.Batch, partition uint32, docs []Doc) error {
	ts := w.post.sorted
	w.fwd = slices.Grow(w.fwd[:0], len(ts))[:len(ts)]
	for i := len(ts) - 1; i >= 0; i-- {
		d := ts[i].doc()
		w.ends[d]-- // ends at the document's first term
		w.fwd[w.ends[d]] = Term{Key: ts[i].termKey(), Field: ts[i].field(), TF: ts[i].tf}
	}
	for i := range docs {
		end := len(ts)
		if i+1 < len(docs) {
			end = w.ends[i+1]
		}
		w.key = appendForwardKey(w.key[:0], partition, docs[i].ID)
		w.val = appendForward(w.val[:0], docs[i].Lengths, w.fwd[w.ends[i]:end])
		if err := b.Set(w.key, w.val, nil); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) count(b *pebble.Batch, partition uint32, diff Stats) error {
	w.key = appendPartition(w.key[:0], PrefixStatistics, partition)
	w.val = appendStats(w.val[:0], diff)
	if err := b.Merge(w.key, w.val, nil); err != nil {
		return fmt.Errorf("count in partition %d: %w", partition, err)
	}
	return nil
}
