package text

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Remove takes a document out of the counters and marks it. Its postings and its
// forward row stay (history and RemovePhysical need them), so the caller's live
// set must leave it out from now on. Removing it again does nothing. Errors:
// ErrNotFound, ErrCorrupt, the database's.
func (w *Writer) Remove(b *pebble.Batch, partition, id uint32) error {
	d, err := w.state(b, partition, id)
	if err == nil && d.erased {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("remove document %d of partition %d: %w", id, partition, err)
	}
	if d.removed {
		return nil
	}
	w.key = appendRemovedKey(w.key[:0], partition, id)
	if err := b.Set(w.key, []byte{forwardVersion}, nil); err != nil {
		return fmt.Errorf("remove document %d of partition %d: %w", id, partition, err)
	}
	d.removed = true
	w.pending[docKey{partition, id}] = d
	return w.discount(b, partition, d)
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
	doc, err := ForwardRow(b, partition, id)
	if err != nil {
		return err
	}
	for _, t := range doc.Terms {
		if err := w.dropPosting(b, partition, t, id); err != nil {
			return fmt.Errorf("term %s: %w", t.Key, err)
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
	return w.discount(b, partition, state)
}

// dropPosting rewrites one postings row without id.
func (w *Writer) dropPosting(b *pebble.Batch, partition uint32, t Term, id uint32) error {
	key := appendPostingKey(nil, partition, t.Key, t.Field, id>>blockBits)
	err := view(b, key, func(v []byte) (err error) {
		w.run, err = appendPostings(w.run[:0], v)
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
	if len(kept) == 0 {
		return b.Delete(key, nil)
	}
	w.val = appendRun(w.val[:0], kept)
	return b.Set(key, w.val, nil)
}

func (w *Writer) discount(b *pebble.Batch, partition uint32, d pendingDoc) error {
	var s Stats
	s.addDoc(d.lengths)
	return w.count(b, partition, s.negated())
}

// state finds a document in the rows of this batch, else in the database.
func (w *Writer) state(b *pebble.Batch, partition, id uint32) (pendingDoc, error) {
	if d, ok := w.pending[docKey{partition, id}]; ok {
		return d, nil
	}
	r := w.r
	if b.Indexed() {
		r = b
	}
	var d pendingDoc
	err := view(r, appendForwardKey(nil, partition, id), func(v []byte) (err error) {
		d.lengths, _, err = forwardLengths(v)
		return err
	})
	if err != nil {
		return pendingDoc{}, err
	}
	d.removed, err = Removed(r, partition, id)
	return d, err
}
