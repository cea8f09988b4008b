package query

import (
	"context"
	"slices"
)

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
				sc.at[docKey{part, c.doc}] = int32(i)
			}
		}
		for _, h := range hits {
			i, ok := sc.at[docKey{part, refs[h.ID].doc}]
			if c := &sc.cands[max(i, 0)]; ok && !c.hasVector { // the first is the best
				c.cosine, c.hasVector, c.chunk = float64(h.Score), true, int(refs[h.ID].chunk)
			}
		}
	}
	return nil
}
