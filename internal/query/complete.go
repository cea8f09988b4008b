package query

import (
	"context"
	"slices"
)

// completeVectors computes the cosines that the vector source did not bring:
// those of the other candidates, and of the messages right before and behind
// each. A document's cosine is that of its best chunk.
func (r *Reader) completeVectors(ctx context.Context, sc *scratch) error {
	clear(sc.cosines)
	clear(sc.at)
	for i := range sc.cands {
		c := &sc.cands[i]
		sc.at[docKey{c.part, c.doc}] = int32(i)
		if c.hasVector {
			sc.cosines[docKey{c.part, c.doc}] = c.cosine
		}
	}
	for part := range sc.plan.parts {
		if err := r.completePart(ctx, sc, part); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) completePart(ctx context.Context, sc *scratch, part int) error {
	p := sc.plan
	set := r.s.vectors.Load().get(setKey{p.parts[part].ID, r.set.SpaceKey()})
	if set == nil {
		return nil
	}
	sc.ids = sc.ids[:0]
	want := func(doc uint32) {
		k := docKey{part, doc}
		if _, ok := sc.cosines[k]; !ok {
			sc.cosines[k] = 0
			sc.ids = set.idsOf(sc.ids, doc)
		}
	}
	for i := range sc.cands {
		if c := &sc.cands[i]; c.part == part {
			want(c.doc)
			sc.nextTo(c, want)
		}
	}
	if len(sc.ids) == 0 {
		return nil
	}
	slices.Sort(sc.ids)
	refs := set.snapshot()
	hits, err := set.set.Search(ctx, p.vector, len(sc.ids), idFilter(sc.ids))
	if err != nil {
		return err
	}
	clear(sc.seen)
	for _, h := range hits {
		ref := refs[h.ID]
		if _, ok := sc.seen[ref.doc]; ok { // the first is the best
			continue
		}
		sc.seen[ref.doc] = struct{}{}
		k := docKey{part, ref.doc}
		sc.cosines[k] = float64(h.Score)
		if i, ok := sc.at[k]; ok {
			c := &sc.cands[i]
			c.cosine, c.hasVector, c.chunk = float64(h.Score), true, int(ref.chunk)
		}
	}
	return nil
}

// nextTo visits the message right before a candidate and the one right behind.
func (sc *scratch) nextTo(c *candidate, visit func(doc uint32)) {
	if c.span.before > 0 {
		visit(sc.near[c.span.at])
	}
	if c.span.after > 0 {
		visit(sc.near[c.span.at+c.span.before])
	}
}

// nearCosine is the mean cosine of the messages right before and behind a
// candidate; one that is not there, or is not alike, counts as 0.
func (sc *scratch) nearCosine(c *candidate) float64 {
	sum := 0.0
	sc.nextTo(c, func(doc uint32) { sum += max(0, min(sc.cosines[docKey{c.part, doc}], 1)) })
	return sum / 2
}
