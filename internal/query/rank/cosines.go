package rank

// MissingCosines lists the documents of a partition whose cosines the vector
// source did not bring: those of the other candidates, and of the messages right
// before and after each. The list is good until the next call.
func (r *Ranking) MissingCosines(partition int) []uint32 {
	for i := range r.candidates {
		if c := &r.candidates[i]; c.Partition == partition && c.hasVector {
			r.cosines[docKey{partition, c.Doc}] = c.cosine
		}
	}
	r.docs = r.docs[:0]
	want := func(doc uint32) {
		k := docKey{partition, doc}
		if _, ok := r.cosines[k]; !ok {
			r.cosines[k] = 0
			r.docs = append(r.docs, doc)
		}
	}
	for i := range r.candidates {
		if c := &r.candidates[i]; c.Partition == partition {
			want(c.Doc)
			r.nextTo(c, want)
		}
	}
	return r.docs
}

// SetCosine takes the cosine of a missing document's best chunk.
func (r *Ranking) SetCosine(partition int, doc uint32, cosine float64, chunk int) {
	k := docKey{partition, doc}
	r.cosines[k] = cosine
	if i, ok := r.at[k]; ok {
		c := &r.candidates[i]
		c.cosine, c.hasVector, c.Chunk = cosine, true, chunk
	}
}

// nextTo visits the message right before a candidate and the one right after.
func (r *Ranking) nextTo(c *Candidate, visit func(doc uint32)) {
	if c.around.before > 0 {
		visit(r.neighbours[c.around.at])
	}
	if c.around.after > 0 {
		visit(r.neighbours[c.around.at+c.around.before])
	}
}

// neighbourCosine is the mean cosine of the messages right before and after a
// candidate; one that is not there, or is not alike, counts as 0.
func (r *Ranking) neighbourCosine(c *Candidate) float64 {
	sum := 0.0
	r.nextTo(c, func(doc uint32) { sum += max(0, min(r.cosines[docKey{c.Partition, doc}], 1)) })
	return sum / 2
}
