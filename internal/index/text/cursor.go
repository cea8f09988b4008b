package text

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/storage"
)

// list is the decoded postings of one slot in one block of one partition.
type list struct {
	part     int // index in the sorted partitions
	block    uint32
	slot     int
	from, to int // in scratch.postings
}

// readPartition decodes all postings of the slots in one partition: lists gain
// one entry per slot and block, ascending by block, then slot.
func (s *scratch) readPartition(ctx context.Context, r pebble.Reader, part int, id uint32) (err error) {
	prefix := appendPartition(nil, PrefixPostings, id)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: storage.PrefixEnd(prefix)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	first := len(s.lists)
	for _, i := range s.order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.readSlot(it, part, id, i); err != nil {
			return fmt.Errorf("term %s: %w", s.slots[i].key, err)
		}
	}
	slices.SortFunc(s.lists[first:], func(a, b list) int {
		if c := cmp.Compare(a.block, b.block); c != 0 {
			return c
		}
		return cmp.Compare(a.slot, b.slot)
	})
	return nil
}

func (s *scratch) readSlot(it *pebble.Iterator, part int, id uint32, i int) error {
	sl := &s.slots[i]
	s.key = appendTermPrefix(s.key[:0], id, sl.key, sl.field)
	for ok := it.SeekGE(s.key); ok && bytes.HasPrefix(it.Key(), s.key); ok = it.Next() {
		k, err := ParsePostingKey(it.Key())
		if err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		from := len(s.postings)
		if s.postings, err = appendPostings(s.postings, v); err != nil {
			return fmt.Errorf("block %d: %w", k.Block, err)
		}
		s.lists = append(s.lists, list{part: part, block: k.Block, slot: i, from: from, to: len(s.postings)})
	}
	return it.Error()
}

// seekOrder lists the slots by key: ascending seeks are cheaper for the iterator.
func (s *scratch) seekOrder() {
	s.order = s.order[:0]
	for i := range s.slots {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int) int {
		x, y := &s.slots[a], &s.slots[b]
		if c := bytes.Compare(x.key[:], y.key[:]); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(x.field, y.field), cmp.Compare(a, b))
	})
}
