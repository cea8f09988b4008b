package text

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// Remove takes a document out of all counters and marks it. Its postings and its
// row stay (history and RemovePhysical need them), so the caller's live set must
// leave it out from now on. Removing it again does nothing. b must be indexed
// (pebble.NewIndexedBatch), since the document may have been added in it. Errors:
// ErrNotFound, ErrInvalid, ErrCorrupt, the database's.
func (w *Writer) Remove(b *pebble.Batch, partition, id uint32) error {
	if err := w.remove(b, partition, id); err != nil {
		return fmt.Errorf("remove document %d of partition %d: %w", id, partition, err)
	}
	return nil
}

func (w *Writer) remove(b *pebble.Batch, partition, id uint32) error {
	if !b.Indexed() {
		return errNotIndexed
	}
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
	if err := b.Set(w.key, []byte{removedMark}, nil); err != nil {
		return err
	}
	d.removed, w.dirty = true, true
	w.pending[docKey{partition, id}] = d
	if known := t.doc(id); known != nil {
		known.removed = true
	}
	return w.discount(b, partition, t, d)
}

var errNotIndexed = fmt.Errorf("%w: the batch is not indexed", ErrInvalid)

// discountTerms counts the document as removed in the postings rows of its terms.
func (w *Writer) discountTerms(b *pebble.Batch, partition, id uint32) error {
	w.val = appendRemoved(w.val[:0], 1)
	return w.eachTerm(b, partition, id, func(_ uint32, n name) error {
		w.key = appendPostingKey(w.key[:0], partition, n.field, n.text, id>>blockBits)
		return b.Merge(w.key, w.val, nil)
	})
}

// eachTerm visits the terms of a document that has postings.
func (w *Writer) eachTerm(b *pebble.Batch, partition, id uint32, visit func(id uint32, n name) error) (err error) {
	err = view(b, appendForwardKey(nil, partition, id), func(v []byte) (err error) {
		_, w.ids, err = readInverted(w.ids[:0], v)
		return err
	})
	if err != nil {
		return err
	}
	terms := make([]name, len(w.ids)) // all, since visit may change their rows
	if err := w.namesOf(b, partition, terms); err != nil {
		return err
	}
	for i, n := range terms {
		if err := visit(w.ids[i].id, n); err != nil {
			return fmt.Errorf("term %q: %w", n.text, err)
		}
	}
	return nil
}

// namesOf finds the names of w.ids.
func (w *Writer) namesOf(b *pebble.Batch, partition uint32, terms []name) (err error) {
	names, err := openNames(b, partition)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, names.it.Close()) }()
	for i := range terms {
		if terms[i], err = names.name(w.ids[i].id); err != nil {
			return err
		}
	}
	return nil
}

// RemovePhysical deletes every row and posting of a document, for erasure; what
// is left is what the others wrote: a term that no document has any more leaves the
// dictionary. b must be indexed (pebble.NewIndexedBatch), since postings are edited
// as b leaves them. A document that is not there is no error, so that an erasure can
// be repeated. The bytes leave the disk when Pebble
// compacts the ranges of Spans. Errors: ErrInvalid, ErrCorrupt, the database's.
func (w *Writer) RemovePhysical(b *pebble.Batch, partition, id uint32) error {
	if err := w.erase(b, partition, id); err != nil {
		return fmt.Errorf("erase document %d of partition %d: %w", id, partition, err)
	}
	return nil
}

func (w *Writer) erase(b *pebble.Batch, partition, id uint32) error {
	if !b.Indexed() {
		return errNotIndexed
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
		vocab := w.dict.part(partition, tl.nextID)
		err := w.eachTerm(b, partition, id, func(term uint32, n name) error {
			last, err := w.dropPosting(b, partition, n, id, state.removed)
			if err == nil && last {
				err = w.dict.dismiss(b, vocab, partition, term, n)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := b.Delete(appendForwardKey(nil, partition, id), nil); err != nil {
		return err
	}
	if err := b.Delete(appendRemovedKey(nil, partition, id), nil); err != nil {
		return err
	}
	w.dirty = true
	w.pending[docKey{partition, id}] = pendingDoc{erased: true}
	if known := tl.doc(id); known != nil {
		known.erased = true
	}
	if state.removed {
		return nil
	}
	return w.discount(b, partition, tl, state)
}

// dropPosting rewrites one postings row without id. last says that the term has no
// postings any more.
func (w *Writer) dropPosting(b *pebble.Batch, partition uint32, n name, id uint32, removed bool) (last bool, err error) {
	key := appendPostingKey(nil, partition, n.field, n.text, id>>blockBits)
	var dead uint32
	err = view(b, key, func(v []byte) (err error) {
		w.run, dead, err = readRow(w.run[:0], v)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return false, fmt.Errorf("%w: no postings of a document", ErrCorrupt)
	}
	if err != nil {
		return false, err
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
	if len(kept) > 0 {
		w.val = appendRow(w.val[:0], dead, kept)
		return false, b.Set(key, w.val, nil)
	}
	if err := b.Delete(key, nil); err != nil {
		return false, err
	}
	prefix := key[:len(key)-2] // of all its blocks
	it, err := b.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return false, err
	}
	last = !it.First()
	return last, errors.Join(it.Error(), it.Close())
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
	var d pendingDoc
	err := view(b, appendForwardKey(nil, partition, id), func(v []byte) (err error) {
		d.lengths, err = lengthsOf(v)
		return err
	})
	if err != nil {
		return pendingDoc{}, err
	}
	d.removed, err = Removed(b, partition, id)
	return d, err
}
