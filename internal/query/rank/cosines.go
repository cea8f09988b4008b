package rank

// MissingCosines lists the documents of a partition whose cosines the vector
// source did not bring: those of the other candidates, and of the messages right
// before and after each. The list is good until the next call.
func (r *Ranking) MissingCosines(partition int) []uint32 {
	for i := range r.candidates {
		if c := &r.candidates[i]; c.Partition == partition && c.hasVector {
			k := &r.known[c.row]
			k.cosine, k.asked = c.cosine, true
		}
	}
	r.docs = r.docs[:0]
	want := func(row int32) {
		if k := &r.known[row]; !k.asked {
			k.asked = true
			r.docs = append(r.docs, r.rows.docs[row].doc)
		}
	}
	for i := range r.candidates {
		if c := &r.candidates[i]; c.Partition == partition {
			want(c.row)
			r.nextTo(c, want)
		}
	}
	return r.docs
}

// SetCosine takes the cosine of a missing document's best chunk.
func (r *Ranking) SetCosine(partition int, doc uint32, cosine float64, chunk int) {
	row, ok := r.rows.find(docKey{partition, doc})
	if !ok {
		return
	}
	r.known[row].cosine = cosine
	if i := r.known[row].candidate; i > 0 {
		c := &r.candidates[i-1]
		c.cosine, c.hasVector, c.Chunk = cosine, true, chunk
	}
}

// nextTo visits the message right before a candidate and the one right after.
func (r *Ranking) nextTo(c *Candidate, visit func(row int32)) {
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
	r.nextTo(c, func(row int32) { sum += max(0, min(r.known[row].cosine, 1)) })
	return sum / 2
}
