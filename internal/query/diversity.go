package query

import (
	"bytes"
	"errors"
	"math"

	index "mneme/internal/index/text"
)

// Maximal marginal relevance (Carbonell and Goldstein, 1998): of what is left,
// the next result is the one whose score, less what it shares with the results
// before it, is the highest.
const (
	diversityDepth  = 50  // results among which it chooses
	diversityWeight = 0.3 // of the likeness that is taken off
)

// diversify lowers the scores of candidates that say what better ones say.
// Candidates stand best first, before and after.
func (r *Reader) diversify(sc *scratch) error {
	n := min(len(sc.cands), max(diversityDepth, sc.plan.limit))
	rows := make([][]index.Term, n)
	for i := range n {
		c := &sc.cands[i]
		d, err := index.ForwardRow(r.view.Reader(), sc.plan.parts[c.part].ID, c.doc)
		if err != nil && !errors.Is(err, index.ErrNotFound) {
			return err
		}
		rows[i] = d.Terms
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	alike := make([]float64, n) // to the most alike of the chosen
	left := func(i int) float64 { return sc.cands[i].fused * (1 - diversityWeight*alike[i]) }
	for done := range n {
		best := done
		for i := done + 1; i < n; i++ {
			if left(order[i]) > left(order[best]) {
				best = i
			}
		}
		chosen := order[best]
		copy(order[done+1:best+1], order[done:best])
		order[done] = chosen
		for _, i := range order[done+1:] {
			alike[i] = max(alike[i], likeness(rows[chosen], rows[i]))
		}
	}
	out := make([]candidate, 0, n)
	for _, i := range order {
		out = append(out, sc.cands[i])
		out[len(out)-1].alike = alike[i]
	}
	copy(sc.cands, out)
	// What was not looked at counts as wholly alike, so that it stays behind.
	for i := range sc.cands {
		c := &sc.cands[i]
		if i >= n {
			c.alike = 1
		}
		c.fused *= 1 - diversityWeight*c.alike
		c.score = c.fused
	}
	return nil
}

// likenessPart accounts for what was taken off, the only part below 0.
func (c *candidate) likenessPart() (weight float64) {
	return -diversityWeight * c.fused / (1 - diversityWeight*c.alike)
}

// likeness is the cosine of two documents' terms, which are in order.
func likeness(a, b []index.Term) float64 {
	dot, aa, bb := 0.0, 0.0, 0.0
	for _, t := range a {
		aa += float64(t.TF) * float64(t.TF)
	}
	for _, t := range b {
		bb += float64(t.TF) * float64(t.TF)
	}
	for len(a) > 0 && len(b) > 0 {
		switch c := bytes.Compare(a[0].Key[:], b[0].Key[:]); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			dot += float64(a[0].TF) * float64(b[0].TF)
			a, b = a[1:], b[1:]
		}
	}
	if dot == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
