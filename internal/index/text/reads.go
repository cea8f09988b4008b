package text

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// DocTerms reads documents of one partition, also removed ones: one for each of
// ids, in that order, with no Terms where there is none (never added, or erased).
// It is cheapest for ids that ascend. Errors: ErrCorrupt, the database's.
func DocTerms(r pebble.Reader, partition uint32, ids []uint32) (docs []Doc, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	prefix := appendPartition(nil, PrefixForward, partition)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return nil, fmt.Errorf("read documents of partition %d: %w", partition, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	docs = make([]Doc, len(ids))
	var key []byte
	for i, id := range ids {
		docs[i].ID = id
		key = appendForwardKey(key[:0], partition, id)
		if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
			continue
		}
		v, err := it.ValueAndErr()
		if err == nil {
			docs[i], err = DecodeForward(id, v)
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d of partition %d: %w", id, partition, err)
		}
	}
	if err := it.Error(); err != nil {
		return nil, fmt.Errorf("read documents of partition %d: %w", partition, err)
	}
	return docs, nil
}

// FieldTerm is a term in a field.
type FieldTerm struct {
	Key   TermKey
	Field Field
}

// DocFreqs counts, for each of terms, in that order, the documents of the
// partitions together, added and not removed, that hold it. Many terms in one call
// are cheaper. Errors: ErrInvalid for a partition given twice, ErrCorrupt, the
// database's.
func DocFreqs(r pebble.Reader, partitions []uint32, terms []FieldTerm) ([]uint64, error) {
	out, err := docFreqs(r, partitions, terms)
	if err != nil {
		return nil, fmt.Errorf("count documents: %w", err)
	}
	return out, nil
}

// DocFreq is DocFreqs of one term.
func DocFreq(r pebble.Reader, partitions []uint32, key TermKey, f Field) (uint64, error) {
	n, err := DocFreqs(r, partitions, []FieldTerm{{key, f}})
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

func docFreqs(r pebble.Reader, partitions []uint32, terms []FieldTerm) (out []uint64, err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixPostings}, UpperBound: []byte{PrefixForward + 1}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	partitions = slices.Sorted(slices.Values(partitions))
	if d := slices.Compact(slices.Clone(partitions)); len(d) < len(partitions) {
		return nil, fmt.Errorf("%w: a partition twice", ErrInvalid)
	}
	s := &scratch{}
	for i, t := range terms {
		s.slots = append(s.slots, slot{term: i, field: t.Field, key: t.Key})
	}
	s.seekOrder()
	for _, p := range partitions {
		if err := s.countPartition(it, p); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p, err)
		}
	}
	out = make([]uint64, len(terms))
	for i := range out {
		out[i] = s.slots[i].n
	}
	return out, nil
}

// countPartition adds a partition's counts to the slots.
func (s *scratch) countPartition(it *pebble.Iterator, id uint32) error {
	_, tail, err := seekStats(it, id)
	if err != nil {
		return err
	}
	for _, i := range s.order {
		if tail == 0 {
			break
		}
		s.data, s.chunks, s.lists = s.data[:0], s.chunks[:0], s.lists[:0]
		if err := s.loadSlot(it, 0, id, i); err != nil {
			return fmt.Errorf("term %s: %w", s.slots[i].key, err)
		}
	}
	s.data, s.chunks, s.lists = s.data[:0], s.chunks[:0], s.lists[:0]
	return s.loadTail(it, 0, id, tail)
}
