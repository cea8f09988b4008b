package query

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	index "mneme/internal/index/text"
	"mneme/internal/index/vector"
)

// candidate is a document that a source brought.
type candidate struct {
	part int // in plan.parts
	doc  uint32

	bm25, cosine         float64 // raw
	hasText, hasVector   bool    // the raw value is exact, be it 0
	inText, inVector     bool    // that source brought it
	textRank, vectorRank int     // from 1, in the source that brought it
	chunk                int     // best one by vector; -1 = unknown
	terms                []index.TermScore
	text, vector, score  float64 // 0..1
}

// scratch is the memory of one search, used again.
type scratch struct {
	plan  *plan
	cands []candidate
	at    map[uint64]int32 // by part and document: in cands
	// textFloor is the lowest BM25 that the text source brought; a document
	// that it did not bring has no more. 0 if it brought all there are.
	textFloor float64
	parts     []index.Partition
	ids       []vector.ID
	bits      []index.Bits
	scores    []float64
	seen      map[uint32]struct{}
}

func newScratch() *scratch {
	return &scratch{at: map[uint64]int32{}, seen: map[uint32]struct{}{}}
}

func (sc *scratch) release(pool *sync.Pool) {
	clear(sc.cands)
	sc.cands = sc.cands[:0]
	clear(sc.at)
	clear(sc.seen)
	clear(sc.parts)
	sc.plan, sc.textFloor = nil, 0
	pool.Put(sc)
}

// find returns the candidate of a document, making it if need be. The pointer
// is good until the next call.
func (sc *scratch) find(part int, doc uint32) *candidate {
	key := uint64(part)<<32 | uint64(doc)
	if i, ok := sc.at[key]; ok {
		return &sc.cands[i]
	}
	sc.at[key] = int32(len(sc.cands))
	sc.cands = append(sc.cands, candidate{part: part, doc: doc, chunk: -1})
	return &sc.cands[len(sc.cands)-1]
}

// candidates asks the sources.
func (r *Reader) candidates(ctx context.Context, sc *scratch) error {
	p := sc.plan
	if p.hasText() {
		if err := r.textCandidates(ctx, sc); err != nil {
			return err
		}
	}
	if p.hasVector() {
		for i := range p.parts {
			if err := r.vectorCandidates(ctx, sc, i); err != nil {
				return err
			}
		}
		sc.rankVectors()
	}
	return nil
}

func (r *Reader) textCandidates(ctx context.Context, sc *scratch) error {
	p := sc.plan
	var stats index.Stats
	for i := range p.parts {
		st, err := index.ReadStats(r.view.Reader(), p.parts[i].ID)
		if err != nil {
			return err
		}
		stats.Add(st)
	}
	p.textC = textScale(stats.Docs, len(p.terms))
	p.query.K = p.k
	hits, err := r.searchText(ctx, sc, p.allow)
	if err != nil {
		return err
	}
	for rank, h := range hits {
		c := sc.find(p.partOf(h.Partition), h.Doc)
		c.bm25, c.hasText, c.inText, c.textRank, c.terms = h.Score, true, true, rank+1, h.Parts
	}
	if len(hits) == p.k {
		sc.textFloor = hits[len(hits)-1].Score
	}
	return nil
}

// textScale is the BM25 at which a text score is one half. It grows with the
// number of query terms and with what one rare term is worth among that many
// documents.
func textScale(docs uint64, terms int) float64 {
	return scaleShare * float64(terms) * math.Log(2+float64(docs))
}

// scaleShare was measured on LoCoMo with the built-in embedder: from 0.1 to 0.5
// recall@10 of the fusion is flat, above it falls (0.660 at 0.25, 0.651 at 1,
// 0.592 at 5), because text scores then lie too close together.
const scaleShare = 0.25

func (p *plan) partOf(id uint32) int {
	return slices.IndexFunc(p.parts, func(o openPart) bool { return o.ID == id })
}

func (r *Reader) searchText(ctx context.Context, sc *scratch, allow []*docSet) ([]index.Hit, error) {
	p := sc.plan
	sc.parts = sc.parts[:0]
	for i := range p.parts {
		part := index.Partition{ID: p.parts[i].ID, Live: p.parts[i].live}
		if allow[i] != nil {
			part.Allow = allow[i]
		}
		sc.parts = append(sc.parts, part)
	}
	return r.s.texts.Search(ctx, r.view.Reader(), sc.parts, p.query)
}

// vectorCandidates brings the documents of one partition with the nearest
// chunks. The set may be ahead of the view: what the view does not hold yet is
// left out and more is asked for.
func (r *Reader) vectorCandidates(ctx context.Context, sc *scratch, part int) error {
	p := sc.plan
	set := r.s.vectors.Load().get(setKey{p.parts[part].ID, r.set.SpaceKey()})
	if set == nil {
		return nil
	}
	refs := set.snapshot()
	var filter vector.Filter
	if docs := p.allow[part]; docs != nil {
		filter = &vectorFilter{set, refs, docs}
	}
	for want := p.k; ; want *= 4 {
		hits, err := set.set.Search(ctx, p.vector, want, filter)
		if err != nil {
			return err
		}
		clear(sc.seen)
		for _, h := range hits {
			if int(h.ID) >= len(refs) || refs[h.ID].doc >= p.parts[part].NextDoc {
				continue
			}
			sc.seen[refs[h.ID].doc] = struct{}{}
			if len(sc.seen) > p.k {
				break
			}
			c := sc.find(part, refs[h.ID].doc)
			if !c.inVector { // the first is the best
				c.cosine, c.hasVector, c.inVector, c.chunk = float64(h.Score), true, true, int(refs[h.ID].chunk)
			}
		}
		if len(sc.seen) >= p.k || len(hits) < want {
			return nil
		}
	}
}

// rankVectors orders the vector candidates of all partitions and keeps the
// best k of them.
func (sc *scratch) rankVectors() {
	order := make([]int32, 0, len(sc.cands))
	for i := range sc.cands {
		if sc.cands[i].inVector {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &sc.cands[a], &sc.cands[b]
		return cmp.Or(cmp.Compare(y.cosine, x.cosine), cmp.Compare(x.part, y.part), cmp.Compare(x.doc, y.doc))
	})
	for rank, i := range order {
		c := &sc.cands[i]
		c.vectorRank = rank + 1
		if rank >= sc.plan.k {
			c.inVector = false
		}
	}
}
