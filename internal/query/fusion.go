package query

import (
	"context"
	"slices"

	index "mneme/internal/index/text"
	"mneme/memory"
)

// rrfK is the constant of reciprocal rank fusion (Cormack et al. 2009).
const rrfK = 60

// fuse gives every candidate its score and leaves them best first.
func (r *Reader) fuse(ctx context.Context, sc *scratch) error {
	p := sc.plan
	sc.cands = slices.DeleteFunc(sc.cands, func(c candidate) bool { return !c.inText && !c.inVector })
	if p.hasVector() {
		if err := r.completeVectors(ctx, sc); err != nil {
			return err
		}
	}
	for i := range sc.cands {
		sc.cands[i].scale(p)
	}
	if p.hasText() && p.hasVector() && !p.rrf {
		if err := r.completeText(ctx, sc); err != nil {
			return err
		}
	}
	slices.SortFunc(sc.cands, func(a, b candidate) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return nil
}

// scale brings the raw values to 0..1 and fuses them.
func (c *candidate) scale(p *plan) {
	c.text, c.vector = 0, 0
	if c.bm25 > 0 {
		c.text = c.bm25 / (c.bm25 + p.textC)
	}
	if c.cosine > 0 {
		c.vector = min(c.cosine, 1)
	}
	vector, text := c.parts(p)
	c.score = min(p.weightVector*vector+p.weightText*text, 1)
}

// parts are what the weights are applied to.
func (c *candidate) parts(p *plan) (vector, text float64) {
	if !p.rrf {
		return c.vector, c.text
	}
	return reciprocal(c.inVector, c.vectorRank), reciprocal(c.inText, c.textRank)
}

func reciprocal(in bool, rank int) float64 {
	if !in {
		return 0
	}
	return (rrfK + 1) / float64(rrfK+rank)
}

// completeVectors computes the cosine of candidates that text alone brought:
// that of their best chunk.
func (r *Reader) completeVectors(ctx context.Context, sc *scratch) error {
	p := sc.plan
	for part := range p.parts {
		set := r.s.vectors.Load().get(setKey{p.parts[part].ID, r.set.SpaceKey()})
		if set == nil {
			continue
		}
		sc.ids = sc.ids[:0]
		for i := range sc.cands {
			if c := &sc.cands[i]; c.part == part && !c.hasVector {
				sc.ids = set.idsOf(sc.ids, c.doc)
			}
		}
		if len(sc.ids) == 0 {
			continue
		}
		slices.Sort(sc.ids)
		refs := set.snapshot()
		hits, err := set.set.Search(ctx, p.vector, len(sc.ids), idFilter(sc.ids))
		if err != nil {
			return err
		}
		clear(sc.at)
		for i := range sc.cands {
			if c := &sc.cands[i]; c.part == part && !c.hasVector {
				sc.at[uint64(c.doc)] = int32(i)
			}
		}
		for _, h := range hits {
			i, ok := sc.at[uint64(refs[h.ID].doc)]
			if c := &sc.cands[max(i, 0)]; ok && !c.hasVector { // the first is the best
				c.cosine, c.hasVector, c.chunk = float64(h.Score), true, int(refs[h.ID].chunk)
			}
		}
	}
	return nil
}

// completeText computes the BM25 of candidates that vectors alone brought, as
// far as it can change the answer: such a document has at most the lowest BM25
// that the text source brought.
func (r *Reader) completeText(ctx context.Context, sc *scratch) error {
	p := sc.plan
	if sc.textFloor == 0 {
		return nil // the text source brought all that match
	}
	gain := p.weightText * (sc.textFloor / (sc.textFloor + p.textC))
	floor := sc.complete(p.limit)
	allow := make([]*docSet, len(p.parts))
	for i := range allow {
		allow[i] = &docSet{}
	}
	n := 0
	for i := range sc.cands {
		c := &sc.cands[i]
		if c.hasText || c.score+gain < floor {
			continue
		}
		set := allow[c.part]
		set.Add(c.doc)
		set.n++
		n++
	}
	if n == 0 {
		return nil
	}
	p.query.K = n
	hits, err := r.searchText(ctx, sc, allow)
	if err != nil {
		return err
	}
	clear(sc.at)
	for i := range sc.cands {
		sc.at[uint64(sc.cands[i].part)<<32|uint64(sc.cands[i].doc)] = int32(i)
	}
	for _, h := range hits {
		i, ok := sc.at[uint64(p.partOf(h.Partition))<<32|uint64(h.Doc)]
		if !ok {
			continue
		}
		c := &sc.cands[i]
		c.bm25, c.hasText, c.terms = h.Score, true, h.Parts
		c.scale(p)
	}
	return nil
}

// complete is the score of the limit-th best candidate as far as text is known
// now, 0 if there are fewer.
func (sc *scratch) complete(limit int) float64 {
	sc.scores = sc.scores[:0]
	for i := range sc.cands {
		sc.scores = append(sc.scores, sc.cands[i].score)
	}
	if len(sc.scores) < limit {
		return 0
	}
	slices.Sort(sc.scores)
	return sc.scores[len(sc.scores)-limit]
}

// explain accounts for a candidate's score.
func (c *candidate) explain(p *plan) *memory.Explain {
	out := &memory.Explain{Fusion: "weighted"}
	if p.rrf {
		out.Fusion = "rrf"
	}
	vector, text := c.parts(p)
	if p.hasVector() {
		out.Parts = append(out.Parts, memory.ExplainPart{Source: sourceVector, Weight: p.weightVector, Value: vector, Raw: c.cosine})
	}
	if p.hasText() {
		out.Parts = append(out.Parts, memory.ExplainPart{Source: sourceText, Weight: p.weightText, Value: text, Raw: c.bm25})
	}
	for _, t := range c.terms {
		out.Terms = addTerm(out.Terms, p.terms[t.Term], t.Score)
	}
	return out
}

// addTerm adds up what one term scored in several fields.
func addTerm(terms []memory.ExplainTerm, term string, score float64) []memory.ExplainTerm {
	for i := range terms {
		if terms[i].Term == term {
			terms[i].Score += score
			return terms
		}
	}
	return append(terms, memory.ExplainTerm{Term: term, Score: score})
}

var _ index.Set = (*docSet)(nil)
