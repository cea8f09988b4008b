package query

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"mneme/internal/derive"
	index "mneme/internal/index/text"
)

// Pseudo-relevance feedback after RM3 (Lavrenko and Croft, 2001; Abdul-Jaleel
// et al., 2004), simplified: terms that several of the best documents share are
// asked for as well. Only their keys are needed, which the forward rows hold.
const (
	expandDocs  = 5  // documents that give terms
	expandTerms = 10 // terms taken
	expandLeast = 2  // documents that must share a term
)

// expand adds what the candidates hold of the words that the best of them
// share. It needs the values of all parts.
func (r *Reader) expand(ctx context.Context, sc *scratch) error {
	p := sc.plan
	q, err := r.feedback(sc)
	if err != nil || len(q.Terms) == 0 {
		return err
	}
	sc.refs = sc.refs[:0]
	for i := range sc.cands {
		sc.refs = append(sc.refs, index.Ref{Partition: p.parts[sc.cands[i].part].ID, Doc: sc.cands[i].doc})
	}
	hits, err := r.s.texts.Score(ctx, r.view.Reader(), p.partitions(nil), q, sc.refs)
	if err != nil {
		return err
	}
	for i, h := range hits {
		c := &sc.cands[i]
		c.raw[partExpand] = h.Score
		c.values[partExpand] = min(h.Score/p.bound, 1)
	}
	return nil
}

// feedback makes the query of the shared terms. Their weights are the shares of
// documents that hold them; the index knows how rare they are.
func (r *Reader) feedback(sc *scratch) (index.Query, error) {
	p := sc.plan
	q := index.Query{FieldWeights: [index.NumFields]float64{index.FieldText: weightText}}
	best := make([]int, len(sc.cands))
	sums := make([]float64, len(sc.cands))
	for i := range best {
		best[i], sums[i] = i, sc.cands[i].text(p)
	}
	slices.SortFunc(best, func(a, b int) int {
		x, y := &sc.cands[a], &sc.cands[b]
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(x.part, y.part), cmp.Compare(x.doc, y.doc))
	})
	best = best[:min(len(best), expandDocs)]
	held := map[index.TermKey]int{}
	for _, i := range best {
		c := &sc.cands[i]
		d, err := index.ForwardRow(r.view.Reader(), p.parts[c.part].ID, c.doc)
		if errors.Is(err, index.ErrNotFound) {
			continue // its key is gone
		}
		if err != nil {
			return q, err
		}
		for _, t := range d.Terms {
			if t.Field == index.FieldText {
				held[t.Key]++
			}
		}
	}
	for _, t := range p.query.Terms {
		delete(held, t.Keys[index.FieldText])
	}
	for _, a := range r.s.contexts.Load().agentTerms(p) {
		delete(held, derive.TermKey(r.names, index.FieldText, a))
	}
	for key, n := range held {
		if n >= expandLeast {
			t := index.QueryTerm{Weight: float64(n) / float64(len(best))}
			t.Keys[index.FieldText] = key
			q.Terms = append(q.Terms, t)
		}
	}
	slices.SortFunc(q.Terms, func(a, b index.QueryTerm) int {
		x, y := a.Keys[index.FieldText], b.Keys[index.FieldText]
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), slices.Compare(x[:], y[:]))
	})
	q.Terms = q.Terms[:min(len(q.Terms), expandTerms)]
	return q, nil
}

// agentTerms are the words of the names of agents whose messages are among the
// plan's partitions, as far as these are few: names are in every message.
func (v *contextView) agentTerms(p *plan) []string {
	var out []string
	for i := range p.parts {
		around := v.get(p.parts[i].ID)
		if around == nil {
			continue
		}
		around.mu.RLock()
		if len(around.byTerm) <= maxAliases {
			for t := range around.byTerm {
				out = append(out, t)
			}
		}
		around.mu.RUnlock()
	}
	return out
}
