package rank

import (
	"cmp"
	"slices"

	"mneme/memory"
)

// rrfK is the constant of reciprocal rank fusion (Cormack et al. 2009).
const rrfK = 60

// Evaluate fills in the parts of all candidates but their dates.
func (r *Ranking) Evaluate() {
	p := r.plan
	p.weigh()
	if p.weight[partConversation] > 0 {
		r.poolConversations()
	}
	for i := range r.candidates {
		c := &r.candidates[i]
		c.values = [numParts]float64{partVector: max(0, min(c.cosine, 1))}
		c.raw = [numParts]float64{partVector: c.cosine}
		c.pending = p.ByVector && !c.hasVector
		if p.weight[partVectorNeighbours] > 0 {
			c.values[partVectorNeighbours] = r.neighbourCosine(c)
			c.raw[partVectorNeighbours] = c.values[partVectorNeighbours]
		}
		conversation, agent, _ := p.Partitions[c.Partition].Conversations.of(c.Doc)
		if p.speakers != nil {
			c.values[partSpeaker] = p.speakers[c.Partition][agent]
			c.raw[partSpeaker] = c.values[partSpeaker]
		}
		if p.HasText() {
			r.evaluateText(c, conversation)
		}
	}
}

// evaluateText fills in what the words of the query say of a candidate in a
// conversation; 0 = in none.
func (r *Ranking) evaluateText(c *Candidate, conversation uint32) {
	p := r.plan
	own := r.evidence.of(docKey{c.Partition, c.Doc})
	c.raw[partText] = sum(own)
	c.values[partText] = min(c.raw[partText]/p.bound, 1)
	if c.around.before+c.around.after > 0 && p.weight[partNeighbours] > 0 {
		r.row = append(r.row[:0], own...)
		c.raw[partNeighbours] = r.contributed(c, r.row)
		c.values[partNeighbours] = min(c.raw[partNeighbours]/p.bound, 1-c.values[partText])
	}
	if p.weight[partConversation] > 0 && conversation != 0 {
		c.raw[partConversation] = sum(r.conversations[conversationKey{c.Partition, conversation}])
		c.values[partConversation] = min(c.raw[partConversation]/p.bound, 1)
	}
	// Who speaks and when counts only for what words or vectors matched.
	if c.raw[partText]+c.raw[partNeighbours]+c.values[partVector]+c.values[partVectorNeighbours] == 0 {
		c.values = [numParts]float64{}
	}
}

// Order gives every candidate its score and leaves them best first.
func (r *Ranking) Order() {
	r.estimatePending()
	if r.plan.Fusion == memory.FusionRRF {
		r.reciprocal()
	}
	for i := range r.candidates {
		c := &r.candidates[i]
		c.Sum = min(c.sum(r.plan), 1)
		c.Score = c.Sum
	}
	slices.SortFunc(r.candidates, func(a, b Candidate) int { return cmp.Compare(b.Sum, a.Sum) })
	if r.plan.calibrated {
		r.calibrate(r.plan.calibration)
	}
}

// estimatePending gives a value to vectors that are not there yet, so that a memory
// is not passed over while it waits for its vector. An unknown cosine is not 0: it
// is taken to be the same share of the best cosine as the candidate's words are of
// the best words.
func (r *Ranking) estimatePending() {
	p := r.plan
	text, vector := 0.0, 0.0
	for i := range r.candidates {
		text = max(text, r.candidates[i].text(p))
		vector = max(vector, r.candidates[i].values[partVector])
	}
	for i := range r.candidates {
		if c := &r.candidates[i]; c.pending && text > 0 {
			c.values[partVector] = vector * c.text(p) / text
		}
	}
}

// text is the weighted sum of the text side.
func (c *Candidate) text(p *Plan) (s float64) {
	for k := partText; k < numParts; k++ {
		s += p.weight[k] * c.values[k]
	}
	return s
}

// reciprocal replaces values by reciprocal ranks: that of the vectors, and that of
// the text side.
func (r *Ranking) reciprocal() {
	p := r.plan
	order := make([]int32, 0, len(r.candidates))
	sums := make([]float64, len(r.candidates))
	for i := range r.candidates {
		if sums[i] = r.candidates[i].text(p); sums[i] > 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &r.candidates[a], &r.candidates[b]
		return cmp.Or(cmp.Compare(sums[b], sums[a]), x.compareDoc(y))
	})
	for i := range r.candidates {
		c := &r.candidates[i]
		c.values = [numParts]float64{}
		if c.inVector {
			c.values[partVector] = (rrfK + 1) / float64(rrfK+c.vectorRank)
		}
	}
	for rank, i := range order {
		c := &r.candidates[i]
		c.values[partText] = (rrfK + 1) / float64(rrfK+rank+1)
		if c.pending {
			c.values[partVector] = c.values[partText]
		}
	}
	p.weight = [numParts]float64{partVector: p.side[0], partText: p.side[1]}
}

func (c *Candidate) sum(p *Plan) (s float64) {
	for k, v := range c.values {
		s += p.weight[k] * v
	}
	return s
}
