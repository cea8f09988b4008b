package text

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Searcher runs searches and keeps their scratch memory between them. The zero
// value is ready; it is safe for concurrent use and must not be copied.
type Searcher struct{ pool sync.Pool }

// A scratch that grew past this is not kept.
const (
	keepData   = 16 << 20
	keepChunks = 1 << 18
)

func (s *Searcher) take() *scratch {
	if sc, ok := s.pool.Get().(*scratch); ok {
		return sc
	}
	return new(scratch)
}

func (s *Searcher) give(sc *scratch) {
	if cap(sc.data) > keepData || cap(sc.chunks) > keepChunks {
		return
	}
	sc.slots, sc.order, sc.unread, sc.data, sc.chunks = sc.slots[:0], sc.order[:0], sc.unread[:0], sc.data[:0], sc.chunks[:0]
	sc.tails, sc.empty, sc.own, sc.stats = sc.tails[:0], sc.empty[:0], Stats{}, Stats{}
	sc.lists, sc.groups = sc.lists[:0], sc.groups[:0]
	sc.top.heap, sc.top.after = sc.top.heap[:0], nil
	s.pool.Put(sc)
}

// Search returns the q.K best documents that hold a term of the query, the best
// first, ties by partition and DocID ascending. Only the postings that can change
// the answer are scored. r may be a database or a snapshot: a search sees one
// state, which should be that of the live sets. Errors: ErrInvalid, ErrCorrupt,
// the context's, the database's.
func (s *Searcher) Search(ctx context.Context, r pebble.Reader, parts []Partition, q Query) ([]Hit, error) {
	p, err := s.Prepare(ctx, r, parts, q)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Top(ctx, q.K, q.After)
}

// Prepared is a query with the rows that answer it, read once, for several
// searches of one state. It belongs to one goroutine until Close.
type Prepared struct {
	s     *Searcher
	sc    *scratch
	r     pebble.Reader
	parts []Partition
	q     Query
	bound bool // the chunks have their bounds
}

// Prepare reads the rows that q needs. Close gives the memory back. Errors: those
// of Search.
func (s *Searcher) Prepare(ctx context.Context, r pebble.Reader, parts []Partition, q Query) (*Prepared, error) {
	if err := q.validate(); err != nil {
		return nil, fmt.Errorf("text search: %w", err)
	}
	parts, err := byID(parts)
	if err != nil {
		return nil, fmt.Errorf("text search: %w", err)
	}
	sc := s.take()
	sc.slots = q.slots(sc.slots[:0])
	if len(sc.slots) > 0 {
		err = sc.load(ctx, r, parts)
	} else {
		err = ctx.Err()
	}
	if err != nil {
		sc.data = sc.data[:0]
		s.give(sc)
		return nil, fmt.Errorf("text search: %w", err)
	}
	sc.begin(&q)
	return &Prepared{s: s, sc: sc, r: r, parts: parts, q: q}, nil
}

// begin groups and weighs what was read.
func (s *scratch) begin(q *Query) {
	s.group()
	if s.stats = s.own; len(s.slots) == 0 { // nothing is read for it
		s.stats = Stats{}
	}
	for i := range s.slots {
		s.slots[i].n = s.slots[i].own
	}
	weighAll(s.slots, q, s.stats)
}

// Together weighs one query alike in several databases: what was prepared in each
// counts by the counters of all, as if their partitions lay in one. Call it before
// anything is asked of them. All must be of the same query.
func Together(all []*Prepared) {
	if len(all) < 2 {
		return
	}
	var st Stats
	for _, p := range all {
		st.Add(p.sc.own)
	}
	for i := range all[0].sc.slots {
		n := uint64(0)
		for _, p := range all {
			n += p.sc.slots[i].own
		}
		for _, p := range all {
			p.sc.slots[i].n = n
		}
	}
	for _, p := range all {
		p.sc.stats = st
		weighAll(p.sc.slots, &p.q, st)
	}
}

// Close gives the memory back. Further calls do nothing.
func (p *Prepared) Close() {
	if p.sc != nil {
		p.s.give(p.sc)
		p.sc = nil
	}
}

// Stats are the counters of all partitions together, after Together of all databases.
func (p *Prepared) Stats() Stats { return p.sc.stats }

// DocFreq is n of a query term (an index of Query.Terms) in a field, 0 if that was
// not looked up.
func (p *Prepared) DocFreq(term int, f Field) uint64 {
	for i := range p.sc.slots {
		if sl := &p.sc.slots[i]; sl.term == term && sl.field == f {
			return sl.n
		}
	}
	return 0
}

// Known reports whether any document has a query term (an index of Query.Terms) in a
// field that was looked up.
func (p *Prepared) Known(term int) bool {
	return slices.ContainsFunc(p.sc.slots, func(sl slot) bool { return sl.term == term && sl.n > 0 })
}

// Top returns the k best hits that come after the given one, nil for all.
func (p *Prepared) Top(ctx context.Context, k int, after *Hit) ([]Hit, error) {
	return p.top(ctx, k, after, p.parts, &p.q)
}

// TopOfAll returns the k best of all that live, whatever Allow, Must and After say.
func (p *Prepared) TopOfAll(ctx context.Context, k int) ([]Hit, error) {
	parts, q := slices.Clone(p.parts), p.q
	for i := range parts {
		parts[i].Allow = nil
	}
	q.Must = nil
	return p.top(ctx, k, nil, parts, &q)
}

func (p *Prepared) top(ctx context.Context, k int, after *Hit, parts []Partition, q *Query) ([]Hit, error) {
	if k <= 0 {
		return nil, fmt.Errorf("text search: %w: %d hits", ErrInvalid, k)
	}
	s := p.sc
	if !p.bound {
		s.boundAll()
		p.bound = true
	}
	s.top.k, s.top.after, s.top.heap = k, after, s.top.heap[:0]
	for _, g := range s.groups {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("text search: %w", err)
		}
		s.scoreGroup(&parts[g.part], g, q)
	}
	hits := s.top.sorted()
	if p.q.Explain {
		for i := range hits {
			hits[i].Parts = p.explain(hits[i].Partition, hits[i].Doc)
		}
	}
	return hits, nil
}

// Each visits hits, the best first, until visit says false, in pages that grow
// from q.K on: for callers that cannot say beforehand how many they will take.
func (p *Prepared) Each(ctx context.Context, visit func(h *Hit) bool) error {
	after := p.q.After
	for k := p.q.K; ; k *= 4 {
		hits, err := p.Top(ctx, k, after)
		if err != nil {
			return err
		}
		for i := range hits {
			if !visit(&hits[i]) {
				return nil
			}
		}
		if len(hits) < k {
			return nil
		}
		after = &hits[len(hits)-1]
		k = min(k, 1<<16)
	}
}

// explain lists the summands of a document's score.
func (p *Prepared) explain(partition, doc uint32) (parts []TermScore) {
	st := &p.sc.stats
	p.eachPart(partition, doc, func(sl *slot, tf, length uint32, x float64) {
		parts = append(parts, TermScore{
			Term: sl.term, Field: sl.field, TF: tf, Length: length, AvgLength: st.avg(sl.field),
			N: st.Docs, DF: sl.n, IDF: sl.idf, Score: x,
		})
	})
	return parts
}

// eachPart finds a document in all lists, in order of terms, then fields.
func (p *Prepared) eachPart(partition, doc uint32, visit func(sl *slot, tf, length uint32, x float64)) {
	s := p.sc
	part, ok := slices.BinarySearchFunc(p.parts, partition, func(o Partition, id uint32) int { return cmp.Compare(o.ID, id) })
	if !ok || part >= len(s.tails) {
		return
	}
	want := group{part: part, block: doc >> blockBits, tail: doc >= s.tails[part]}
	at, ok := slices.BinarySearchFunc(s.groups, want, group.compare)
	if !ok {
		return
	}
	local := doc & (blockSize - 1)
	for _, l := range s.lists[s.groups[at].from:s.groups[at].to] {
		chunks := s.chunks[l.from:l.to]
		k, _ := slices.BinarySearchFunc(chunks, local, func(c chunk, local uint32) int { return cmp.Compare(uint32(c.last), local) })
		if k == len(chunks) || uint32(chunks[k].first) > local {
			continue
		}
		c := &chunks[k]
		i := c.seek(s.data, local)
		if c.doc(s.data, i) != local {
			continue
		}
		sl := &s.slots[l.slot]
		tf, length := c.tf(s.data, i), c.length(s.data, i)
		visit(sl, tf, length, sl.part(tf, length))
	}
}

// maxMemos bounds the memory of long queries: 256 KiB, about what stays in cache.
const maxMemos = 32

// boundAll computes what each chunk can score at most.
func (s *scratch) boundAll() {
	s.memos = slices.Grow(s.memos[:0], min(len(s.slots), maxMemos))
	for i := range s.slots {
		if s.slots[i].n >= memoFrom && len(s.memos) < maxMemos {
			s.memos = append(s.memos, memo{})
			s.slots[i].memo = &s.memos[len(s.memos)-1]
		}
	}
	for _, l := range s.lists {
		sl := &s.slots[l.slot]
		for k := l.from; k < l.to; k++ {
			s.chunks[k].ub = sl.bound(s.data, &s.chunks[k])
		}
	}
}
