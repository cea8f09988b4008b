package query

import "context"

// Messages of one conversation explain each other: the answer that a question
// is about often holds few of its words, while the messages around it hold the
// rest.

// nearWeights are what a word is worth that stands not in a message but so many
// messages before or behind it.
var nearWeights = [...]float64{0.5, 0.3, 0.2}

const (
	// expandBest is how many of the best documents of each source bring their
	// neighbours as candidates, and expandReach how far.
	expandBest  = 20
	expandReach = 2
)

// span is where a candidate's neighbours lie in scratch.near: first those
// before it, the nearest first, then those behind it.
type span struct{ at, before, after int32 }

// surround finds candidates' neighbours: those of the best become candidates
// too, as far as the filter lets them; only documents that the reader may see contribute.
func (r *Reader) surround(ctx context.Context, sc *scratch) error {
	p, view := sc.plan, r.s.contexts.Load()
	origins, err := r.origins(ctx, sc)
	if err != nil {
		return err
	}
	var before, after [len(nearWeights)]uint32
	for _, k := range origins {
		around := view.get(p.parts[k.part].ID)
		if around == nil {
			continue
		}
		nb, na := around.around(k.doc, before[:expandReach], after[:expandReach], p.parts[k.part].visible)
		for _, docs := range [2][]uint32{before[:nb], after[:na]} {
			for _, doc := range docs {
				if p.allow[k.part].allows(doc) {
					sc.find(k.part, doc).inNear = true
				}
			}
		}
	}
	sc.near = sc.near[:0]
	for i := range sc.cands {
		c := &sc.cands[i]
		around := view.get(p.parts[c.part].ID)
		if around == nil {
			continue
		}
		nb, na := around.around(c.doc, before[:], after[:], p.parts[c.part].visible)
		c.span = span{int32(len(sc.near)), int32(nb), int32(na)}
		sc.near = append(append(sc.near, before[:nb]...), after[:na]...)
		for _, doc := range sc.near[c.span.at:] {
			sc.evidence.add(docKey{c.part, doc})
		}
	}
	return nil
}

// origins lists the documents whose neighbours become candidates. What the
// filter leaves out may be one: the answer of the one who is asked for stands
// beside the question of another.
func (r *Reader) origins(ctx context.Context, sc *scratch) ([]docKey, error) {
	p := sc.plan
	var out []docKey
	for i := range sc.cands {
		if c := &sc.cands[i]; c.best() {
			out = append(out, docKey{c.part, c.doc})
		}
	}
	if p.req.Filter == nil {
		return out, nil
	}
	q := p.query
	q.K, q.Must = expandBest, nil
	hits, err := r.s.texts.Search(ctx, r.view.Reader(), p.partitions(nil), q)
	for _, h := range hits {
		out = append(out, docKey{p.partOf(h.Partition), h.Doc})
	}
	return out, err
}

// best reports whether a source found nearly nothing better.
func (c *candidate) best() bool {
	return c.inText && c.textRank <= expandBest || c.inVector && c.vectorRank <= expandBest
}

// visible reports whether a document is part of the reader's view and lives.
func (p openPart) visible(doc uint32) bool { return doc < p.NextDoc && p.live.Contains(doc) }

// contributed is what neighbours add to a candidate's BM25: each term counts where it
// is worth most, in the message or, less, around it.
func (sc *scratch) contributed(c *candidate, own []float64) float64 {
	gain := 0.0
	near := sc.near[c.span.at : c.span.at+c.span.before+c.span.after]
	for i, doc := range near {
		if i >= int(c.span.before) {
			i -= int(c.span.before)
		}
		for t, s := range sc.evidence.of(docKey{c.part, doc}) {
			if s *= nearWeights[i]; s > own[t] {
				gain += s - own[t]
				own[t] = s
			}
		}
	}
	return gain
}

// conversationKey is a conversation in one of the plan's partitions.
type conversationKey struct {
	part         int
	conversation uint32
}

// pool gathers for each conversation how much of each term the best of its
// messages holds, as far as the search has looked at them.
func (r *Reader) pool(sc *scratch) {
	view, e := r.s.contexts.Load(), &sc.evidence
	for k := range e.at {
		around := view.get(sc.plan.parts[k.part].ID)
		if around == nil {
			continue
		}
		conversation, _, _ := around.of(k.doc)
		if conversation == 0 {
			continue
		}
		key := conversationKey{k.part, conversation}
		best := sc.conversations[key]
		if best == nil {
			best = make([]float64, e.terms)
			sc.conversations[key] = best
		}
		for t, s := range e.of(k) {
			best[t] = max(best[t], s)
		}
	}
}
