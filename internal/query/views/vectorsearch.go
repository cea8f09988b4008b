package views

import (
	"context"
	"math"
	"slices"

	"mneme/internal/index/vector"
)

// Match is the best chunk of a document for a query vector.
type Match struct {
	Doc    uint32
	Chunk  int
	Cosine float64
}

// Lookup looks a query vector up in sets. It belongs to one search at a time; its
// memory is used again.
type Lookup struct {
	Query []float32
	seen  map[uint32]struct{}
	ids   []vector.ID
	dots  []float32
}

// Nearest visits the documents nearest to the query, the best first, each once
// with its best chunk, until it has visited limit of them. It looks at documents
// below end only, since a set may be ahead of the reader's view, and within docs
// (nil = all).
func (l *Lookup) Nearest(ctx context.Context, s *VectorSet, limit int, end uint32, docs *DocSet, visit func(Match)) error {
	refs := s.snapshot()
	var filter vector.Filter
	if docs != nil {
		filter = &vectorFilter{s, refs, docs}
	}
	l.reset()
	for want := limit; ; want *= 2 {
		hits, err := s.set.Search(ctx, l.Query, want, filter)
		if err != nil {
			return err
		}
		for _, h := range hits {
			if int(h.ID) >= len(refs) || refs[h.ID].doc >= end || !l.first(refs[h.ID].doc) {
				continue
			}
			if len(l.seen) > limit {
				return nil
			}
			visit(Match{Doc: refs[h.ID].doc, Chunk: int(refs[h.ID].chunk), Cosine: float64(h.Score)})
		}
		if len(l.seen) >= limit || len(hits) < want {
			return nil
		}
	}
}

// Cosines visits those of docs that have vectors, each once with its best chunk.
func (l *Lookup) Cosines(ctx context.Context, s *VectorSet, docs []uint32, visit func(Match)) error {
	slices.Sort(docs)
	l.ids = s.idsOf(l.ids[:0], docs...)
	if !slices.IsSorted(l.ids) { // some were attached late
		slices.Sort(l.ids)
	}
	l.dots = slices.Grow(l.dots[:0], len(l.ids))[:len(l.ids)]
	if err := s.set.Dots(ctx, l.Query, l.ids, l.dots); err != nil {
		return err
	}
	refs := s.snapshot()
	var best Match
	found := false
	for i, id := range l.ids {
		if math.IsNaN(float64(l.dots[i])) {
			continue
		}
		m := Match{Doc: refs[id].doc, Chunk: int(refs[id].chunk), Cosine: float64(l.dots[i])}
		if found && m.Doc != best.Doc {
			visit(best)
			found = false
		}
		if !found || m.Cosine > best.Cosine || m.Cosine == best.Cosine && m.Chunk < best.Chunk {
			best, found = m, true
		}
	}
	if found {
		visit(best)
	}
	return nil
}

// What cosines of texts with queries that they have nothing to do with are taken to be
// before any were seen, how many seen ones that is worth, and how many are looked at.
const (
	usualMean, usualDeviation = 0.3, 0.15
	usualWorth                = 16
	backgroundSample          = 256
)

// usual are usualWorth cosines at the quantiles of a normal distribution.
var usual = func() (cosines [usualWorth]float32) {
	for i := range cosines {
		cosines[i] = float32(usualMean + usualDeviation*math.Sqrt2*math.Erfinv(2*(float64(i)+0.5)/usualWorth-1))
	}
	return cosines
}()

// Background estimates from vectors of the set, evenly spread, how cosines with the query
// are distributed of texts that have nothing to do with it: around their median, as wide as
// from there to the lower sixth. What the query means stands in the upper half, and in a
// small set it may be most of it, which moves neither far.
func (l *Lookup) Background(ctx context.Context, s *VectorSet) (mean, deviation float64, err error) {
	refs := s.snapshot()
	l.ids = l.ids[:0]
	for i := range min(backgroundSample, len(refs)) {
		l.ids = append(l.ids, vector.ID(i*len(refs)/min(backgroundSample, len(refs))))
	}
	l.dots = slices.Grow(l.dots[:0], len(l.ids)+usualWorth)[:len(l.ids)]
	if err := s.set.Dots(ctx, l.Query, l.ids, l.dots); err != nil {
		return 0, 0, err
	}
	l.dots = slices.DeleteFunc(l.dots, func(x float32) bool { return x != x })
	l.dots = append(l.dots, usual[:]...)
	slices.Sort(l.dots)
	const below = 0.1587 // of a normal distribution lies more than a deviation below its mean
	mean = float64(l.dots[len(l.dots)/2])
	return mean, max(mean-float64(l.dots[int(below*float64(len(l.dots)))]), usualDeviation/4), nil
}

func (l *Lookup) reset() {
	if l.seen == nil {
		l.seen = map[uint32]struct{}{}
	}
	clear(l.seen)
}

// first reports whether a document is seen for the first time. Chunks come best
// first, so that one is its best.
func (l *Lookup) first(doc uint32) bool {
	n := len(l.seen)
	l.seen[doc] = struct{}{}
	return len(l.seen) > n
}

// vectorFilter lets a set return the vectors of allowed documents only.
type vectorFilter struct {
	set  *VectorSet
	refs []chunkRef
	docs *DocSet
}

// Contains implements vector.Filter. A vector that is newer than the snapshot
// is newer than the reader's view.
func (f *vectorFilter) Contains(id vector.ID) bool {
	return int(id) < len(f.refs) && f.docs.Contains(f.refs[id].doc)
}

// Count implements vector.Filter with the number of documents: their vectors
// are about as many, and none exactly if there are none.
func (f *vectorFilter) Count() int { return f.docs.n }

// Each implements vector.Filter. Vectors that were attached late do not stand
// in the order of their documents.
func (f *vectorFilter) Each(yield func(vector.ID) bool) {
	ids := make([]vector.ID, 0, f.docs.n)
	f.docs.each(func(doc uint32) { ids = f.set.idsOf(ids, doc) })
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	for _, id := range ids {
		if !yield(id) {
			return
		}
	}
}
