package query

import (
	"cmp"
	"context"
	"slices"

	"mneme/memory"
)

// rrfK is the constant of reciprocal rank fusion (Cormack et al. 2009).
const rrfK = 60

// fuse gives every candidate its score and leaves them best first.
func (r *Reader) fuse(ctx context.Context, sc *scratch) error {
	p := sc.plan
	sc.cands = slices.DeleteFunc(sc.cands, func(c candidate) bool { return !c.inText && !c.inVector && !c.inNear })
	if len(p.phrases) > 0 {
		if err := r.keepPhrases(sc); err != nil {
			return err
		}
	}
	if p.hasVector() {
		if err := r.completeVectors(ctx, sc); err != nil {
			return err
		}
	}
	r.evaluate(sc)
	if len(p.dates) > 0 {
		if err := r.evaluateDates(ctx, sc); err != nil {
			return err
		}
	}
	sc.await()
	if p.fusion == memory.FusionRRF {
		sc.reciprocal()
	}
	for i := range sc.cands {
		sc.cands[i].add(p)
	}
	slices.SortFunc(sc.cands, func(a, b candidate) int { return cmp.Compare(b.fused, a.fused) })
	if p.calibrated {
		sc.calibrate(p.calibration)
	}
	return nil
}

// evaluate fills in the parts of all candidates.
func (r *Reader) evaluate(sc *scratch) {
	p := sc.plan
	p.weigh()
	if p.weight[partConversation] > 0 {
		r.pool(sc)
	}
	view := r.s.contexts.Load()
	for i := range sc.cands {
		c := &sc.cands[i]
		c.values = [numParts]float64{partVector: max(0, min(c.cosine, 1))}
		c.raw = [numParts]float64{partVector: c.cosine}
		c.pending = p.hasVector() && !c.hasVector
		if p.weight[partVectorNear] > 0 {
			c.values[partVectorNear] = sc.nearCosine(c)
			c.raw[partVectorNear] = c.values[partVectorNear]
		}
		if around := view.get(p.parts[c.part].ID); around != nil && p.speakers != nil {
			_, agent, _ := around.of(c.doc)
			c.values[partSpeaker] = p.speakers[c.part][agent]
			c.raw[partSpeaker] = c.values[partSpeaker]
		}
		if p.hasText() {
			sc.evaluateText(c, view.get(p.parts[c.part].ID))
		}
	}
}

// evaluateText fills in what the words of the query say of a candidate.
func (sc *scratch) evaluateText(c *candidate, around *contextPart) {
	p := sc.plan
	own := sc.evidence.of(docKey{c.part, c.doc})
	c.raw[partText] = sum(own)
	c.values[partText] = min(c.raw[partText]/p.bound, 1)
	if c.span.before+c.span.after > 0 && p.weight[partNear] > 0 {
		sc.row = append(sc.row[:0], own...)
		c.raw[partNear] = sc.contributed(c, sc.row)
		c.values[partNear] = min(c.raw[partNear]/p.bound, 1-c.values[partText])
	}
	if p.weight[partConversation] > 0 && around != nil {
		if conversation, _, _ := around.of(c.doc); conversation != 0 {
			c.raw[partConversation] = sum(sc.conversations[conversationKey{c.part, conversation}])
			c.values[partConversation] = min(c.raw[partConversation]/p.bound, 1)
		}
	}
	// Who speaks and when is no evidence for what nothing else speaks for.
	if c.raw[partText]+c.raw[partNear]+c.values[partVector]+c.values[partVectorNear] == 0 {
		c.values = [numParts]float64{}
	}
}

// await speaks for vectors that are not there yet. Of their likeness nothing is
// known, which is not the same as none: it is taken to stand beside the best one
// as the candidate's words stand beside the best words, so that a memory is not
// passed over while it waits.
func (sc *scratch) await() {
	p := sc.plan
	text, vector := 0.0, 0.0
	for i := range sc.cands {
		text = max(text, sc.cands[i].text(p))
		vector = max(vector, sc.cands[i].values[partVector])
	}
	for i := range sc.cands {
		if c := &sc.cands[i]; c.pending && text > 0 {
			c.values[partVector] = vector * c.text(p) / text
		}
	}
}

// text is the weighted sum of the text side.
func (c *candidate) text(p *plan) (s float64) {
	for k := partText; k < numParts; k++ {
		s += p.weight[k] * c.values[k]
	}
	return s
}

// reciprocal puts ranks for values: the vectors' own, and that of the text side.
func (sc *scratch) reciprocal() {
	p := sc.plan
	order := make([]int32, 0, len(sc.cands))
	sums := make([]float64, len(sc.cands))
	for i := range sc.cands {
		if sums[i] = sc.cands[i].text(p); sums[i] > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &sc.cands[a], &sc.cands[b]
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(x.part, y.part), cmp.Compare(x.doc, y.doc))
	})
	for i := range sc.cands {
		c := &sc.cands[i]
		c.values = [numParts]float64{}
		if c.inVector {
			c.values[partVector] = (rrfK + 1) / float64(rrfK+c.vectorRank)
		}
	}
	for rank, i := range order {
		c := &sc.cands[i]
		c.values[partText] = (rrfK + 1) / float64(rrfK+rank+1)
		if c.pending {
			c.values[partVector] = c.values[partText]
		}
	}
	p.weight = [numParts]float64{partVector: p.side[0], partText: p.side[1]}
}

// add sums the parts up.
func (c *candidate) add(p *plan) {
	c.fused = min(c.sum(p), 1)
	c.score = c.fused
}

func (c *candidate) sum(p *plan) (s float64) {
	for k, v := range c.values {
		s += p.weight[k] * v
	}
	return s
}

// explain accounts for a candidate's score.
func (sc *scratch) explain(c *candidate) *memory.Explain {
	p := sc.plan
	out := &memory.Explain{Fusion: string(p.fusion)}
	factor := 1.0
	if p.calibrated && c.fused > 0 {
		factor = c.score / c.fused
		out.Calibration = factor
	}
	for k, v := range c.values {
		if p.weight[k] > 0 || k == int(partText) && p.hasText() || k == int(partVector) && p.hasVector() {
			out.Parts = append(out.Parts, memory.ExplainPart{Source: sources[k], Weight: p.weight[k] * factor, Value: v, Raw: c.raw[k]})
		}
	}
	for t, s := range sc.evidence.of(docKey{c.part, c.doc}) {
		if s > 0 {
			out.Terms = append(out.Terms, memory.ExplainTerm{Term: p.terms[t], Score: s})
		}
	}
	return out
}
