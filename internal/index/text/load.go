package text

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// list is the postings of one slot in one block of one partition, or in its tail,
// as chunks.
type list struct {
	part     int // index in the sorted partitions
	block    uint32
	tail     bool // the tail of the partition, which lies behind its blocks
	slot     int
	from, to int // in scratch.chunks
	at       int // the chunk that a search has come to
}

// group is the lists of one block or tail of a partition, in order of slots.
type group struct {
	part     int
	block    uint32
	tail     bool
	from, to int // in scratch.lists
}

func (g group) compare(o group) int {
	return cmp.Or(cmp.Compare(g.part, o.part), cmp.Compare(g.block, o.block), compareBool(g.tail, o.tail))
}

// scratch is what a search read, and its working memory.
type scratch struct {
	slots  []slot
	order  []int    // slots by field and text
	unread []int    // those of order that are to be read
	own    Stats    // of this database
	stats  Stats    // of all, see Together
	tails  []uint32 // by partition: where its tail begins
	empty  []bool   // by partition: it has no documents
	data   []byte   // rows, back to back
	chunks []chunk
	lists  []list
	groups []group

	former former
	memos  []memo // of frequent slots
	loose  []posting
	found  []foundInTail
	key    []byte
	last   []byte // the key before
	window
	asking
}

type foundInTail struct {
	slot    int
	p       posting
	removed bool
}

// load reads all rows of the query, through one iterator, which sees one state.
func (s *scratch) load(ctx context.Context, r pebble.Reader, parts []Partition) error {
	s.seekOrder()
	s.unread = append(s.unread[:0], s.order...)
	return s.read(ctx, r, parts)
}

// read reads the rows of unread slots.
func (s *scratch) read(ctx context.Context, r pebble.Reader, parts []Partition) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{PrefixPostings}, UpperBound: []byte{PrefixForward + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for i, p := range parts {
		if err := s.loadPartition(ctx, it, i, p.ID); err != nil {
			return fmt.Errorf("partition %d: %w", p.ID, err)
		}
	}
	return nil
}

func (s *scratch) loadPartition(ctx context.Context, it *pebble.Iterator, part int, id uint32) error {
	if part == len(s.tails) {
		st, tail, err := seekStats(it, id)
		if err != nil {
			return err
		}
		s.tails, s.empty = append(s.tails, tail), append(s.empty, st.Docs == 0)
		if st.Docs > 0 {
			s.own.Add(st)
		}
	}
	if s.empty[part] {
		return nil
	}
	tail := s.tails[part]
	if err := ctx.Err(); err != nil {
		return err
	}
	s.key = s.key[:0]
	for _, i := range s.unread {
		if tail == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.loadSlot(it, part, id, i); err != nil {
			return fmt.Errorf("term %q: %w", s.slots[i].text, err)
		}
	}
	return s.loadTail(it, part, id, tail)
}

func seekStats(it *pebble.Iterator, partition uint32) (st Stats, tail uint32, err error) {
	key := appendPartition(nil, PrefixStatistics, partition)
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		return st, 0, it.Error()
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return st, 0, err
	}
	st, c, err := decodeStats(v)
	return st, c.start, err
}

// loadSlot reads the rows of a slot. Slots of a partition come in the order of their keys,
// and s.key is that of the one before, empty at the first.
func (s *scratch) loadSlot(it *pebble.Iterator, part int, id uint32, i int) error {
	sl := &s.slots[i]
	s.last, s.key = s.key, appendTermPrefix(s.last[:0], id, sl.field, sl.text)
	ok := it.Valid()
	if !s.stands(it) {
		ok = it.SeekGE(s.key)
	}
	for ; ok && bytes.HasPrefix(it.Key(), s.key); ok = it.Next() {
		block, err := blockOf(it.Key(), len(s.key))
		if err != nil {
			return err
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		l := list{part: part, block: block, slot: i, from: len(s.chunks)}
		n, err := s.loadRow(v)
		if err != nil {
			return fmt.Errorf("block %d: %w", block, err)
		}
		sl.own += n
		if l.to = len(s.chunks); l.to > l.from {
			s.lists = append(s.lists, l)
		}
	}
	return it.Error()
}

// stands reports whether it, which went to s.last and through the rows there, stands at
// the first row from s.key on already. A field of few terms then costs few seeks,
// whatever is asked for.
func (s *scratch) stands(it *pebble.Iterator) bool {
	if len(s.last) == 0 || bytes.Equal(s.last, s.key) {
		return false
	}
	return it.Valid() && bytes.Compare(it.Key(), s.key) >= 0 || !it.Valid() && it.Error() == nil
}

// loadRow appends a row's chunks; n is how many of its documents are not removed.
func (s *scratch) loadRow(v []byte) (n uint64, err error) {
	if len(v) == 0 {
		return 0, fmt.Errorf("%w: empty postings", ErrCorrupt)
	}
	from := len(s.data)
	s.data = append(s.data, v...)
	var r rowReader
	removed := uint64(0)
	s.loose = s.loose[:0]
	for i := from; i < from+len(v); {
		switch s.data[i] {
		case runVersion:
			begin := len(s.loose)
			if s.loose, i, err = appendLoose(s.loose, s.data[:from+len(v)], i+1); err != nil {
				return 0, err
			}
			err = r.follow(s.loose[begin].local(), s.loose[len(s.loose)-1].local())
			n += uint64(len(s.loose) - begin)
		case chunkVersion:
			s.packLoose()
			var c chunk
			if c, err = readChunk(s.data[:from+len(v)], i+1); err != nil {
				return 0, err
			}
			err = r.follow(uint32(c.first), uint32(c.last))
			s.chunks = append(s.chunks, c)
			n += uint64(c.n)
			i = int(c.end)
		case removedVersion:
			var m uint32
			m, i, err = readRemoved(s.data[:from+len(v)], i+1)
			removed += uint64(m)
		default:
			err = fmt.Errorf("%w: postings version 0x%02x", ErrCorrupt, s.data[i])
		}
		if err != nil {
			return 0, err
		}
	}
	s.packLoose()
	if removed > n {
		return 0, fmt.Errorf("%w: %d removed of %d", ErrCorrupt, removed, n)
	}
	return n - removed, nil
}

// packLoose makes chunks of the postings in s.loose, behind the rows read so far.
func (s *scratch) packLoose() {
	for ps := s.loose; len(ps) > 0; {
		n := min(len(ps), chunkSize)
		at := len(s.data)
		s.data = appendChunk(s.data, ps[:n])
		c, err := readChunk(s.data, at+1)
		if err != nil {
			panic(err) // of what was just packed
		}
		s.chunks = append(s.chunks, c)
		ps = ps[n:]
	}
	s.loose = s.loose[:0]
}

// loadTail looks the slots up in the rows of the tail.
func (s *scratch) loadTail(it *pebble.Iterator, part int, id, tail uint32) error {
	s.found = s.found[:0]
	err := eachTailRow(it, id, tail, func(doc uint32, row []byte, removed bool) error {
		return s.findInRow(doc, row, removed)
	})
	if err != nil || len(s.found) == 0 {
		return err
	}
	slices.SortStableFunc(s.found, func(a, b foundInTail) int { return cmp.Compare(a.slot, b.slot) })
	for i := 0; i < len(s.found); {
		l := list{part: part, block: tail >> blockBits, tail: true, slot: s.found[i].slot, from: len(s.chunks)}
		s.loose = s.loose[:0]
		for ; i < len(s.found) && s.found[i].slot == l.slot; i++ {
			s.loose = append(s.loose, s.found[i].p)
			if !s.found[i].removed {
				s.slots[l.slot].own++
			}
		}
		if !ascend(s.loose) {
			return fmt.Errorf("%w: tail of partition %d does not lie in one block", ErrCorrupt, id)
		}
		s.packLoose()
		l.to = len(s.chunks)
		s.lists = append(s.lists, l)
	}
	return nil
}

// findInRow looks the slots up in the row of a document.
func (s *scratch) findInRow(doc uint32, row []byte, removed bool) error {
	f, _, err := openTailRow(row)
	if err != nil {
		return fmt.Errorf("document %d: %w", doc, err)
	}
	for _, i := range s.unread {
		sl := &s.slots[i]
		tf, err := f.find(sl.field, sl.text, sl.print)
		if err != nil {
			return fmt.Errorf("document %d: %w", doc, err)
		}
		if tf > 0 {
			p := makePosting(doc&(blockSize-1), min(tf, MaxTF), f.doc.lengths[sl.field])
			s.found = append(s.found, foundInTail{i, p, removed})
		}
	}
	return nil
}

func ascend(ps []posting) bool {
	for i := 1; i < len(ps); i++ {
		if ps[i].local() <= ps[i-1].local() {
			return false
		}
	}
	return true
}

// seekOrder lists the slots by field and text: ascending seeks are cheaper for the iterator.
func (s *scratch) seekOrder() {
	s.order = s.order[:0]
	for i := range s.slots {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(a, b int) int {
		return cmp.Or(s.slots[a].compareKey(&s.slots[b]), cmp.Compare(a, b))
	})
}

// compareKey orders slots as their rows stand.
func (s *slot) compareKey(o *slot) int {
	return cmp.Or(cmp.Compare(s.field, o.field), cmp.Compare(s.text, o.text))
}

// group sorts the lists by document and cuts them into groups.
func (s *scratch) group() {
	s.groups = s.groups[:0]
	slices.SortFunc(s.lists, func(a, b list) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.block, b.block), compareBool(a.tail, b.tail), cmp.Compare(a.slot, b.slot))
	})
	for i := range s.lists {
		l := &s.lists[i]
		if n := len(s.groups); n > 0 {
			if g := &s.groups[n-1]; g.part == l.part && g.block == l.block && g.tail == l.tail {
				g.to = i + 1
				continue
			}
		}
		s.groups = append(s.groups, group{part: l.part, block: l.block, tail: l.tail, from: i, to: i + 1})
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
