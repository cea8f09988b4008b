package query

// Messages of one conversation explain each other: the answer that a question
// is about often holds few of its words, while the messages around it hold the
// rest.

// nearWeights are what a word is worth that stands not in a message but so many
// messages before or behind it.
var nearWeights = [...]float64{0.5, 0.3, 0.2}

const (
	// expandBest is how many of the best documents of each source bring their
	// neighbours as candidates, and expandReach how far.
	expandBest  = minCandidates
	expandReach = 2
)

// span is where a candidate's neighbours lie in scratch.near: first those
// before it, the nearest first, then those behind it.
type span struct{ at, before, after int32 }

// surround finds candidates' neighbours: those of the best become candidates
// too, as far as the filter lets them; whoever the reader may see lends.
func (r *Reader) surround(sc *scratch) {
	p, view := sc.plan, r.s.contexts.Load()
	sc.near = sc.near[:0]
	for i := range p.parts {
		around, visible := view.get(p.parts[i].ID), p.parts[i].visible
		if around == nil {
			continue
		}
		var before, after [len(nearWeights)]uint32
		for c, n := 0, len(sc.cands); c < n; c++ {
			if sc.cands[c].part != i || !sc.cands[c].best() {
				continue
			}
			nb, na := around.around(sc.cands[c].doc, before[:expandReach], after[:expandReach], visible)
			for _, docs := range [2][]uint32{before[:nb], after[:na]} {
				for _, doc := range docs {
					if p.allow[i].allows(doc) {
						sc.find(i, doc).inNear = true
					}
				}
			}
		}
		for c := range sc.cands {
			if sc.cands[c].part != i {
				continue
			}
			nb, na := around.around(sc.cands[c].doc, before[:], after[:], visible)
			sc.cands[c].span = span{int32(len(sc.near)), int32(nb), int32(na)}
			sc.near = append(append(sc.near, before[:nb]...), after[:na]...)
			for _, doc := range sc.near[sc.cands[c].span.at:] {
				sc.evidence.add(docKey{i, doc})
			}
		}
	}
}

// best reports whether a source found nearly nothing better.
func (c *candidate) best() bool {
	return c.inText && c.textRank <= expandBest || c.inVector && c.vectorRank <= expandBest
}

// visible reports whether a document is part of the reader's view and lives.
func (p openPart) visible(doc uint32) bool { return doc < p.NextDoc && p.live.Contains(doc) }

// lent is what neighbours add to a candidate's BM25: each term counts where it
// is worth most, in the message or, less, around it.
func (sc *scratch) lent(c *candidate, own []float64) float64 {
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

// talkKey is a conversation in one of the plan's partitions.
type talkKey struct {
	part int
	talk uint32
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
		talk, _, _ := around.of(k.doc)
		if talk == 0 {
			continue
		}
		key := talkKey{k.part, talk}
		best := sc.talks[key]
		if best == nil {
			best = make([]float64, e.terms)
			sc.talks[key] = best
		}
		for t, s := range e.of(k) {
			best[t] = max(best[t], s)
		}
	}
}
