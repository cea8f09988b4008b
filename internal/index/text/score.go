package text

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Ref names a document.
type Ref struct{ Partition, Doc uint32 }

// Share is what a concept gives to a document.
type Share struct {
	Score float64 // of the term that gives most, over all fields; 0: none is there
	Term  int     // that one, in Query.Terms
	Told  bool    // it stands only in FieldWho: not in what is said, but in who said it and when
}

// Score adds to row(i), which has a Share for each concept of the query, what the
// concepts give to docs[i]. With one term to a concept the scores of a row sum to that
// of a hit. Live, Allow, Must, After and K change nothing. Docs are distinct, and their
// partitions among those of the query. Errors: the context's.
func (p *Prepared) Score(ctx context.Context, docs []Ref, row func(i int) []Share) error {
	s := p.sc
	s.asked = s.asked[:0]
	for i, d := range docs {
		part, ok := slices.BinarySearchFunc(p.parts, d.Partition, func(o Partition, id uint32) int { return cmp.Compare(o.ID, id) })
		if ok && part < len(s.tails) {
			s.asked = append(s.asked, makeAsked(groupOf(part, d.Doc, d.Doc >= s.tails[part]), d.Doc, i))
		}
	}
	s.sortAsked()
	at := 0
	for _, g := range s.groups {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("text score: %w", err)
		}
		order := g.order()
		for at < len(s.asked) && s.asked[at].order>>blockBits < order {
			at++
		}
		from := at
		for at < len(s.asked) && s.asked[at].order>>blockBits == order {
			at++
		}
		if from < at {
			p.scoreAsked(g, s.asked[from:at], row)
		}
	}
	return nil
}

// sortAsked sorts by order, a byte at a time from the lowest (radix sort), but for bytes that
// are the same in all. Comparing costs four times as much, and a search asks for some 2,000.
func (s *scratch) sortAsked() {
	var differ uint64
	for i := range s.asked {
		differ |= s.asked[i].order ^ s.asked[0].order
	}
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var next [256]int // where the next one with such a byte goes
		for i := range s.asked {
			next[s.asked[i].order>>shift&0xff]++
		}
		at := 0
		for b, n := range next {
			next[b] = at
			at += n
		}
		s.spare = slices.Grow(s.spare[:0], len(s.asked))[:len(s.asked)]
		for _, a := range s.asked {
			to := &next[a.order>>shift&0xff]
			s.spare[*to] = a
			*to++
		}
		s.asked, s.spare = s.spare, s.asked
	}
}

// order is a number by which groups ascend as they do by compare.
func (g group) order() uint64 {
	order := uint64(g.part)<<17 | uint64(g.block)<<1
	if g.tail {
		order |= 1
	}
	return order
}

// asked is a document to be scored: the order of its group and its number in the block, and
// its place among those asked for.
type asked struct {
	order uint64
	at    int
}

func makeAsked(g group, doc uint32, at int) asked {
	return asked{g.order()<<blockBits | uint64(doc&(blockSize-1)), at}
}

func groupOf(part int, doc uint32, tail bool) group {
	return group{part: part, block: doc >> blockBits, tail: tail}
}

func (a *asked) local() uint32 { return uint32(a.order & (blockSize - 1)) }

// asking is the working memory of Score, for one group.
type asking struct {
	asked  []asked
	spare  []asked // room for sorting
	scores []askedScore
	met    []int32                // documents that the term was found in
	wanted [blockSize / 64]uint64 // the documents, by their numbers in the block; zero between groups
	which  [blockSize]uint16      // those wanted: their places in asked
}

// askedScore is what one term gives to a document.
type askedScore struct {
	sum  float64
	said bool // not only in FieldWho
}

// scoreAsked goes once through each list of a group. Documents ascend; lists stand in
// order of terms, then fields.
func (p *Prepared) scoreAsked(g group, docs []asked, row func(i int) []Share) {
	s := p.sc
	s.scores = slices.Grow(s.scores[:0], len(docs))[:len(docs)]
	clear(s.scores)
	for j := range docs {
		local := docs[j].local()
		s.wanted[local>>6] |= 1 << (local & 63)
		s.which[local] = uint16(j)
	}
	s.met = s.met[:0]
	for i := g.from; i < g.to; i++ {
		l := &s.lists[i]
		sl := &s.slots[l.slot]
		if (l.to-l.from)*chunkSize < len(docs)*seekCost {
			s.readAsked(l, sl)
		} else {
			s.seekAsked(l, sl, docs)
		}
		if i+1 < g.to && s.slots[s.lists[i+1].slot].term == sl.term {
			continue
		}
		concept := p.q.Terms[sl.term].Concept
		for _, j := range s.met {
			x := &s.scores[j]
			if best := &row(docs[j].at)[concept]; x.sum > best.Score {
				*best = Share{x.sum, sl.term, !x.said}
			}
			*x = askedScore{}
		}
		s.met = s.met[:0]
	}
	for j := range docs {
		s.wanted[docs[j].local()>>6] = 0
	}
}

// seekCost is about how many postings of a list are read in the time in which one is sought.
const seekCost = 16

// readAsked reads a whole list for the documents that are wanted.
func (s *scratch) readAsked(l *list, sl *slot) {
	for k := l.from; k < l.to; k++ {
		c := &s.chunks[k]
		postings := s.data[c.docs:c.tfs]
		for i := 0; i+1 < len(postings); i += 2 {
			local := binary.LittleEndian.Uint16(postings[i:])
			if s.wanted[local>>6]>>(local&63)&1 != 0 {
				s.meet(s.which[local], sl, c, i/2)
			}
		}
	}
}

// seekAsked looks for each of the documents in a list.
func (s *scratch) seekAsked(l *list, sl *slot, docs []asked) {
	k := l.from
	for j := range docs {
		local := docs[j].local()
		for k < l.to && uint32(s.chunks[k].last) < local {
			k++
		}
		if k == l.to {
			break
		}
		c := &s.chunks[k]
		if uint32(c.first) > local {
			continue
		}
		if at := c.seek(s.data, local); c.doc(s.data, at) == local {
			s.meet(uint16(j), sl, c, at)
		}
	}
}

// meet adds what the i-th posting of a chunk gives to the j-th document.
func (s *scratch) meet(j uint16, sl *slot, c *chunk, i int) {
	x := &s.scores[j]
	if x.sum == 0 {
		s.met = append(s.met, int32(j))
	}
	x.sum += sl.part(c.tf(s.data, i), c.length(s.data, i))
	x.said = x.said || sl.field != FieldWho
}
