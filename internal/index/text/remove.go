package text

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Remove takes a document out of all counters and marks it. Its postings and its
// forward row stay (history and RemovePhysical need them), so the caller's live
// set must leave it out from now on. Removing it again does nothing. Errors:
// ErrNotFound, ErrCorrupt, the database's.
func (w *Writer) Remove(b *pebble.Batch, partition, id uint32) error {
	if err := w.remove(b, partition, id); err != nil {
		return fmt.Errorf("remove document %d of partition %d: %w", id, partition, err)
	}
	return nil
}

func (w *Writer) remove(b *pebble.Batch, partition, id uint32) error {
	d, err := w.state(b, partition, id)
	if err == nil && d.erased {
		err = ErrNotFound
	}
	if err != nil || d.removed {
		return err
	}
	t, err := w.tailOf(partition)
	if err != nil {
		return err
	}
	if id < t.start {
		if err := w.discountTerms(b, partition, id); err != nil {
			return err
		}
	}
	w.key = appendRemovedKey(w.key[:0], partition, id)
	if err := b.Set(w.key, []byte{forwardVersion}, nil); err != nil {
		return err
	}
	d.removed = true
	w.pending[docKey{partition, id}] = d
	return w.discount(b, partition, t, d)
}

// discountTerms counts the document as removed in the postings rows of its terms.
func (w *Writer) discountTerms(b *pebble.Batch, partition, id uint32) error {
	terms, err := w.termsOf(b, partition, id)
	if err != nil {
		return err
	}
	w.val = appendRemoved(w.val[:0], 1)
	for _, t := range terms {
		w.key = appendPostingKey(w.key[:0], partition, t.Key, t.Field, id>>blockBits)
		if err := b.Merge(w.key, w.val, nil); err != nil {
			return err
		}
	}
	return nil
}

// termsOf reads the document's terms, valid until the next call.
func (w *Writer) termsOf(b *pebble.Batch, partition, id uint32) ([]Term, error) {
	read := func(v []byte) error {
		f, err := splitForward(v)
		if err == nil {
			w.terms, err = f.appendTerms(w.terms[:0])
		}
		return err
	}
	key := appendForwardKey(nil, partition, id)
	err := view(w.reader(b), key, read)
	if errors.Is(err, ErrNotFound) { // added and inverted in this batch
		return w.batchTerms(b, key, read)
	}
	return w.terms, err
}

// batchTerms finds a row that only the batch holds, which is not indexed.
func (w *Writer) batchTerms(b *pebble.Batch, key []byte, read func(v []byte) error) ([]Term, error) {
	r := b.Reader()
	for {
		kind, k, v, ok, err := r.Next()
		if err != nil || !ok {
			return nil, errors.Join(ErrNotFound, err)
		}
		if kind == pebble.InternalKeyKindSet && bytes.Equal(k, key) {
			err := read(v)
			return w.terms, err
		}
	}
}

func (w *Writer) reader(b *pebble.Batch) pebble.Reader {
	if b.Indexed() {
		return b
	}
	return w.r
}

// RemovePhysical deletes every row and posting of a document, for erasure; what
// is left is what the others wrote. b must be indexed (pebble.NewIndexedBatch),
// since postings are edited as b leaves them. A document that is not there is no
// error, so that an erasure can be repeated. The bytes leave the disk when Pebble
// compacts the ranges of Spans. Errors: ErrInvalid, ErrCorrupt, the database's.
func (w *Writer) RemovePhysical(b *pebble.Batch, partition, id uint32) error {
	if err := w.erase(b, partition, id); err != nil {
		return fmt.Errorf("erase document %d of partition %d: %w", id, partition, err)
	}
	return nil
}

func (w *Writer) erase(b *pebble.Batch, partition, id uint32) error {
	if !b.Indexed() {
		return fmt.Errorf("%w: the batch is not indexed", ErrInvalid)
	}
	state, err := w.state(b, partition, id)
	if errors.Is(err, ErrNotFound) || (err == nil && state.erased) {
		return nil
	}
	if err != nil {
		return err
	}
	tl, err := w.tailOf(partition)
	if err != nil {
		return err
	}
	if id < tl.start {
		terms, err := w.termsOf(b, partition, id)
		if err != nil {
			return err
		}
		for _, t := range terms {
			if err := w.dropPosting(b, partition, t, id, state.removed); err != nil {
				return fmt.Errorf("term %s: %w", t.Key, err)
			}
		}
	}
	if err := b.Delete(appendForwardKey(nil, partition, id), nil); err != nil {
		return err
	}
	if err := b.Delete(appendRemovedKey(nil, partition, id), nil); err != nil {
		return err
	}
	w.pending[docKey{partition, id}] = pendingDoc{erased: true}
	if state.removed {
		return nil
	}
	return w.discount(b, partition, tl, state)
}

// dropPosting rewrites one postings row without id.
func (w *Writer) dropPosting(b *pebble.Batch, partition uint32, t Term, id uint32, removed bool) error {
	key := appendPostingKey(nil, partition, t.Key, t.Field, id>>blockBits)
	var dead uint32
	err := view(b, key, func(v []byte) (err error) {
		w.run, dead, err = readRow(w.run[:0], v)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	kept := w.run[:0]
	for _, p := range w.run {
		if p.local() != id&(blockSize-1) {
			kept = append(kept, p)
		}
	}
	if removed && dead > 0 {
		dead--
	}
	if len(kept) == 0 {
		return b.Delete(key, nil)
	}
	w.val = appendRow(w.val[:0], dead, kept)
	return b.Set(key, w.val, nil)
}

func (w *Writer) discount(b *pebble.Batch, partition uint32, t *tail, d pendingDoc) error {
	t.stats.dropDoc(d.lengths)
	return w.count(b, partition, t)
}

// state finds a document in the rows of this batch, else in the database.
func (w *Writer) state(b *pebble.Batch, partition, id uint32) (pendingDoc, error) {
	if d, ok := w.pending[docKey{partition, id}]; ok {
		return d, nil
	}
	r := w.reader(b)
	var d pendingDoc
	err := view(r, appendForwardKey(nil, partition, id), func(v []byte) error {
		f, err := splitForward(v)
		d.lengths = f.lengths
		return err
	})
	if err != nil {
		return pendingDoc{}, err
	}
	d.removed, err = Removed(r, partition, id)
	return d, err
}
