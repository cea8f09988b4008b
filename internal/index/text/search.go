package text

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Searcher runs searches and keeps their scratch memory between them. The zero
// value is ready; it is safe for concurrent use and must not be copied.
type Searcher struct{ pool sync.Pool }

// Search runs one search with a Searcher of its own. Servers keep a Searcher.
func Search(ctx context.Context, r pebble.Reader, parts []Partition, q Query) ([]Hit, error) {
	return new(Searcher).Search(ctx, r, parts, q)
}

// words is a bitmap of one block.
type words [blockWords]uint64

// group is the lists of one block of one partition, and which of its documents
// live.
type group struct {
	from, to int // in scratch.lists
	live     int // in scratch.live, -1: all live
}

type scratch struct {
	slots    []slot
	order    []int
	lists    []list
	postings []posting
	groups   []group
	live     []words
	key      []byte
	top      topK

	acc     [blockSize]float64 // zero between blocks
	touched words              // zero between blocks
	filter  words
}

// A scratch that grew past this is not kept: 32 MiB of postings.
const keepPostings = 4 << 20

func (s *Searcher) take() *scratch {
	if sc, ok := s.pool.Get().(*scratch); ok {
		return sc
	}
	return new(scratch)
}

func (s *Searcher) give(sc *scratch) {
	if cap(sc.postings) > keepPostings {
		return
	}
	sc.slots, sc.lists, sc.postings = sc.slots[:0], sc.lists[:0], sc.postings[:0]
	sc.groups, sc.live = sc.groups[:0], sc.live[:0]
	clear(sc.top.heap)
	sc.top.heap = sc.top.heap[:0]
	s.pool.Put(sc)
}

// Search returns the q.K best documents that hold a term of the query, the best
// first, ties by partition and DocID ascending. r is best a snapshot: all of the
// search should see one state, the one of the live sets. Errors: ErrInvalid,
// ErrCorrupt, the context's, the database's.
func (s *Searcher) Search(ctx context.Context, r pebble.Reader, parts []Partition, q Query) ([]Hit, error) {
	if err := q.validate(); err != nil {
		return nil, fmt.Errorf("text search: %w", err)
	}
	parts, err := byID(parts)
	if err != nil {
		return nil, fmt.Errorf("text search: %w", err)
	}
	sc := s.take()
	hits, err := sc.search(ctx, r, parts, &q)
	if err != nil {
		// The scratch may hold half a block: it is not given back.
		return nil, fmt.Errorf("text search: %w", err)
	}
	s.give(sc)
	return hits, nil
}

func (s *scratch) search(ctx context.Context, r pebble.Reader, parts []Partition, q *Query) ([]Hit, error) {
	s.slots = q.slots(s.slots[:0])
	if len(s.slots) == 0 {
		return nil, ctx.Err()
	}
	s.seekOrder()
	var stats Stats
	for i, p := range parts {
		st, err := ReadStats(r, p.ID)
		if err != nil {
			return nil, err
		}
		stats.Add(st)
		if st.Docs == 0 {
			continue
		}
		from := len(s.lists)
		if err := s.readPartition(ctx, r, i, p.ID); err != nil {
			return nil, fmt.Errorf("partition %d: %w", p.ID, err)
		}
		s.countLive(p.Live, from)
	}
	for i := range s.slots {
		s.slots[i].weigh(q, stats)
	}
	s.top.k = q.K
	for _, g := range s.groups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.score(parts, g)
	}
	hits := s.top.sorted()
	if q.Explain {
		s.explain(parts, q, stats, hits)
	}
	return hits, nil
}

// countLive cuts the lists from index from on into groups and counts n.
func (s *scratch) countLive(live Set, from int) {
	for i := from; i < len(s.lists); {
		g := group{from: i, live: -1}
		for g.to = i; g.to < len(s.lists) && s.lists[g.to].block == s.lists[i].block; g.to++ {
		}
		i = g.to
		if live != nil {
			g.live = len(s.live)
			s.live = slices.Grow(s.live, 1)[:len(s.live)+1]
			s.fillLive(live, g)
		}
		for _, l := range s.lists[g.from:g.to] {
			n := uint64(l.to - l.from)
			if g.live >= 0 {
				n = countIn(&s.live[g.live], s.postings[l.from:l.to])
			}
			s.slots[l.slot].n += n
		}
		s.groups = append(s.groups, g)
	}
}

func countIn(w *words, ps []posting) (n uint64) {
	for _, p := range ps {
		i := p.local() & (blockSize - 1)
		n += w[i>>6] >> (i & 63) & 1
	}
	return n
}

// fillLive sets the group's live bitmap, at least for the documents of its lists.
func (s *scratch) fillLive(live Set, g group) {
	w := &s.live[g.live]
	first := s.lists[g.from].block << blockBits
	if ws, ok := live.(WordSet); ok {
		ws.Words(first, w[:])
		return
	}
	clear(w[:])
	seen := &s.filter
	clear(seen[:])
	for _, l := range s.lists[g.from:g.to] {
		for _, p := range s.postings[l.from:l.to] {
			i := p.local() & (blockSize - 1)
			bit := uint64(1) << (i & 63)
			if seen[i>>6]&bit == 0 {
				seen[i>>6] |= bit
				if live.Contains(first + i) {
					w[i>>6] |= bit
				}
			}
		}
	}
}

// score adds up one block and offers its documents to the heap.
func (s *scratch) score(parts []Partition, g group) {
	for _, l := range s.lists[g.from:g.to] {
		sl := &s.slots[l.slot]
		boost, kA, kB := sl.boost, sl.kA, sl.kB
		for _, p := range s.postings[l.from:l.to] {
			i := p.local() & (blockSize - 1)
			tf := float64(p.tf())
			s.acc[i] += boost * tf / (tf + kA + kB*float64(p.length()))
			s.touched[i>>6] |= 1 << (i & 63)
		}
	}
	l := &s.lists[g.from]
	part := &parts[l.part]
	first := l.block << blockBits
	allow := s.prepareFilter(part, g, first)
	for j := range s.touched {
		t := s.touched[j]
		if t == 0 {
			continue
		}
		s.touched[j] = 0
		for keep := s.filter[j]; t != 0; t &= t - 1 {
			b := bits.TrailingZeros64(t)
			i := j<<6 | b
			score := s.acc[i]
			s.acc[i] = 0
			if keep>>b&1 == 0 || !s.top.wants(score) {
				continue
			}
			if id := first + uint32(i); allow == nil || allow.Contains(id) {
				s.top.offer(Hit{Partition: part.ID, Doc: id, Score: score})
			}
		}
	}
}

// prepareFilter puts into s.filter which documents of the block may be hits, and
// returns the set that must be asked for each of them besides, or nil.
func (s *scratch) prepareFilter(part *Partition, g group, first uint32) (ask Set) {
	switch allow := part.Allow.(type) {
	case nil:
		for i := range s.filter {
			s.filter[i] = ^uint64(0)
		}
	case WordSet:
		allow.Words(first, s.filter[:])
	default:
		ask = allow
		for i := range s.filter {
			s.filter[i] = ^uint64(0)
		}
	}
	if g.live >= 0 {
		live := &s.live[g.live]
		for i := range s.filter {
			s.filter[i] &= live[i]
		}
	}
	return ask
}

// explain finds the summands of the hits again. hits are few.
func (s *scratch) explain(parts []Partition, q *Query, st Stats, hits []Hit) {
	for h := range hits {
		hit := &hits[h]
		for _, l := range s.lists {
			if parts[l.part].ID != hit.Partition || l.block != hit.Doc>>blockBits {
				continue
			}
			ps := s.postings[l.from:l.to]
			at, ok := slices.BinarySearchFunc(ps, hit.Doc&(blockSize-1), func(p posting, local uint32) int {
				return int(p.local()) - int(local)
			})
			if !ok {
				continue
			}
			sl := &s.slots[l.slot]
			hit.Parts = append(hit.Parts, TermScore{
				Term: q.Terms[sl.term].Term, Field: sl.field,
				TF: ps[at].tf(), Length: ps[at].length(), AvgLength: st.avg(sl.field),
				N: st.Docs, DF: sl.n, IDF: sl.idf, Score: sl.part(ps[at]),
			})
		}
	}
}
