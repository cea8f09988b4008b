package rank

// evidence is the share of each query term in the BM25 of each document that a
// search looks at: the candidates and the documents that may contribute to them.
type evidence struct {
	terms int
	at    map[docKey]int32
	score []float64 // by row and term
}

func (e *evidence) reset(terms int) {
	e.terms = terms
	clear(e.at)
	e.score = e.score[:0]
}

// add makes room for a document.
func (e *evidence) add(k docKey) {
	if _, ok := e.at[k]; ok {
		return
	}
	e.at[k] = int32(len(e.at))
	for range e.terms {
		e.score = append(e.score, 0)
	}
}

// of returns a document's row, nil if it was not looked at.
func (e *evidence) of(k docKey) []float64 {
	i, ok := e.at[k]
	if !ok {
		return nil
	}
	return e.score[int(i)*e.terms : (int(i)+1)*e.terms]
}

func sum(row []float64) (s float64) {
	for _, x := range row {
		s += x
	}
	return s
}

// EachLookedAt visits the documents whose evidence the ranking needs, once each.
func (r *Ranking) EachLookedAt(visit func(partition int, doc uint32)) {
	for i := range r.candidates {
		r.evidence.add(docKey{r.candidates[i].Partition, r.candidates[i].Doc})
	}
	for k := range r.evidence.at {
		visit(k.partition, k.doc)
	}
}

// Evidence is what each term gives to the BM25 of a document that EachLookedAt
// named, by term, for the caller to add to.
func (r *Ranking) Evidence(partition int, doc uint32) []float64 {
	return r.evidence.of(docKey{partition, doc})
}
