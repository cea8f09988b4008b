package rank

import (
	"cmp"
	"slices"
)

// Evaluate fills in the parts of all candidates.
func (r *Ranking) Evaluate() {
	p := r.plan
	p.weigh()
	for i := range r.candidates {
		c := &r.candidates[i]
		c.values = [numParts]float64{partVector: max(0, min(c.cosine, 1))}
		c.raw = [numParts]float64{partVector: c.cosine}
		c.pending = p.ByVector && !c.hasVector
		if p.weight[partVectorNeighbours] > 0 {
			c.set(partVectorNeighbours, r.neighbourCosine(c))
		}
		if p.HasText() {
			r.evaluateText(c)
		}
	}
}

// evaluateText fills in what the words of the query say of a candidate, and who said it
// and when. These count only for what words or vectors matched.
func (r *Ranking) evaluateText(c *Candidate) {
	p := r.plan
	own := r.evidence.of(docKey{c.Partition, c.Doc})
	c.raw[partText] = sum(own)
	c.values[partText] = min(c.raw[partText]/p.bound, 1)
	if c.around.before+c.around.after > 0 && p.weight[partNeighbours] > 0 {
		r.row = append(r.row[:0], own...)
		c.raw[partNeighbours] = r.contributed(c, r.row)
		c.values[partNeighbours] = min(c.raw[partNeighbours]/p.bound, 1-c.values[partText])
	}
	if c.raw[partText]+c.raw[partNeighbours]+c.values[partVector]+c.values[partVectorNeighbours] == 0 {
		c.values = [numParts]float64{}
		return
	}
	agent, at := p.Partitions[c.Partition].Conversations.of(c.Doc)
	if p.speakers != nil {
		c.set(partSpeaker, p.speakers[c.Partition][agent])
	}
	if len(p.dates) > 0 && agent != 0 {
		c.set(partDate, p.dateFit(at))
	}
}

func (c *Candidate) set(k part, value float64) { c.values[k], c.raw[k] = value, value }

// Order gives every candidate its score and leaves them best first.
func (r *Ranking) Order() {
	r.estimatePending()
	for i := range r.candidates {
		c := &r.candidates[i]
		c.Score = min(c.sum(r.plan), 1)
	}
	slices.SortFunc(r.candidates, func(a, b Candidate) int { return cmp.Compare(b.Score, a.Score) })
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

func (c *Candidate) sum(p *Plan) (s float64) {
	for k, v := range c.values {
		s += p.weight[k] * v
	}
	return s
}
