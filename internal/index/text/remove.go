package text

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

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

// RemovePhysical deletes every row and posting of documents, for erasure; what
// is left is what the others wrote: a term that no document has any more leaves the
// dictionary. Documents that are erased together cost each row that they share
// once. b must be indexed (pebble.NewIndexedBatch), since postings are edited as b
// leaves them. A document that is not there is no error, so that an erasure can
// be repeated. The bytes, also those of rows that were written anew, leave the disk
// when Pebble rewrites the ranges of Spans. Errors: ErrInvalid, ErrCorrupt, the
// database's.
func (w *Writer) RemovePhysical(b *pebble.Batch, partition uint32, ids ...uint32) error {
	if err := w.erase(b, partition, ids); err != nil {
		return fmt.Errorf("erase %d documents of partition %d: %w", len(ids), partition, err)
	}
	return nil
}

func (w *Writer) erase(b *pebble.Batch, partition uint32, ids []uint32) error {
	if !b.Indexed() {
		return errNotIndexed
	}
	tl, err := w.tailOf(partition)
	if err != nil {
		return err
	}
	e := &eraser{w: w, b: b, partition: partition, vocab: w.dict.part(partition, tl.nextID), gone: map[erasedRow][]erasedPosting{}, terms: map[name]uint32{}}
	for _, id := range ids {
		if err := e.document(tl, id); err != nil {
			return fmt.Errorf("document %d: %w", id, err)
		}
	}
	return e.postings()
}

// eraser takes documents out of the rows that they share with others.
type eraser struct {
	w         *Writer
	b         *pebble.Batch
	partition uint32
	vocab     *vocabulary
	gone      map[erasedRow][]erasedPosting
	terms     map[name]uint32 // ids of the terms in gone
}

// erasedRow names one row of postings.
type erasedRow struct {
	name
	block uint32
}

type erasedPosting struct {
	local   uint32
	removed bool
}

// document deletes a document's own rows and notes its postings.
func (e *eraser) document(tl *tail, id uint32) error {
	w, b := e.w, e.b
	state, err := w.state(b, e.partition, id)
	if errors.Is(err, ErrNotFound) || (err == nil && state.erased) {
		return nil
	}
	if err != nil {
		return err
	}
	if id < tl.start {
		err := w.eachTerm(b, e.partition, id, func(term uint32, n name) error {
			at := erasedRow{n, id >> blockBits}
			e.gone[at] = append(e.gone[at], erasedPosting{id & (blockSize - 1), state.removed})
			e.terms[n] = term
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := b.Delete(appendForwardKey(nil, e.partition, id), nil); err != nil {
		return err
	}
	if err := b.Delete(appendRemovedKey(nil, e.partition, id), nil); err != nil {
		return err
	}
	w.dirty = true
	w.pending[docKey{e.partition, id}] = pendingDoc{erased: true}
	if known := tl.doc(id); known != nil {
		known.erased = true
	}
	if state.removed {
		return nil
	}
	return w.discount(b, e.partition, tl, state)
}

// postings writes the rows of postings without the erased ones, in key order, and
// takes terms that have none left out of the dictionary.
func (e *eraser) postings() error {
	rows := slices.SortedFunc(maps.Keys(e.gone), func(a, b erasedRow) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.text, b.text), cmp.Compare(a.block, b.block))
	})
	for i, row := range rows {
		if err := e.w.dropPostings(e.b, e.partition, row, e.gone[row]); err != nil {
			return fmt.Errorf("term %q: %w", row.text, err)
		}
		if i+1 < len(rows) && rows[i+1].name == row.name {
			continue // its last row says whether there are any left
		}
		last, err := e.w.unused(e.b, e.partition, row.name)
		if err == nil && last {
			err = e.w.dict.dismiss(e.b, e.vocab, e.partition, e.terms[row.name], row.name)
		}
		if err != nil {
			return fmt.Errorf("term %q: %w", row.text, err)
		}
	}
	return nil
}

// dropPostings writes one row of postings anew without some.
func (w *Writer) dropPostings(b *pebble.Batch, partition uint32, row erasedRow, gone []erasedPosting) error {
	key := appendPostingKey(nil, partition, row.field, row.text, row.block)
	var dead uint32
	err := view(b, key, func(v []byte) (err error) {
		w.run, dead, err = readRow(w.run[:0], v)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: no postings of a document", ErrCorrupt)
	}
	if err != nil {
		return err
	}
	locals := map[uint32]bool{}
	for _, p := range gone {
		locals[p.local] = true
		if p.removed && dead > 0 {
			dead--
		}
	}
	kept := slices.DeleteFunc(w.run, func(p posting) bool { return locals[p.local()] })
	if len(kept) == 0 {
		return b.Delete(key, nil)
	}
	w.val = appendRow(w.val[:0], dead, kept)
	return b.Set(key, w.val, nil)
}

// unused reports whether a term has no postings.
func (w *Writer) unused(b *pebble.Batch, partition uint32, n name) (bool, error) {
	prefix := appendTermPrefix(nil, partition, n.field, n.text)
	it, err := b.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return false, err
	}
	none := !it.First()
	return none, errors.Join(it.Error(), it.Close())
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
