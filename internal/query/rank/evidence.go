package rank

import index "mneme/internal/index/text"

// evidence is what each concept of the query gives to each document that a search looks
// at: the candidates and the documents that may contribute to them.
type evidence struct {
	concepts int
	at       map[docKey]int32
	docs     []docKey      // by row
	share    []index.Share // by row and concept
}

func (e *evidence) reset(concepts int) {
	e.concepts = concepts
	clear(e.at)
	e.docs, e.share = e.docs[:0], e.share[:0]
}

// add makes room for a document.
func (e *evidence) add(k docKey) {
	if _, ok := e.at[k]; ok {
		return
	}
	e.at[k] = int32(len(e.docs))
	e.docs = append(e.docs, k)
	for range e.concepts {
		e.share = append(e.share, index.Share{})
	}
}

func (e *evidence) row(i int) []index.Share {
	return e.share[i*e.concepts : (i+1)*e.concepts]
}

// of returns a document's row, nil if it was not looked at.
func (e *evidence) of(k docKey) []index.Share {
	i, ok := e.at[k]
	if !ok {
		return nil
	}
	return e.row(int(i))
}

// EachLookedAt visits the documents whose evidence the ranking needs, once each, with
// the number of their row.
func (r *Ranking) EachLookedAt(visit func(row, partition int, doc uint32)) {
	for i := range r.candidates {
		r.evidence.add(docKey{r.candidates[i].Partition, r.candidates[i].Doc})
	}
	for i, k := range r.evidence.docs {
		visit(i, k.partition, k.doc)
	}
}

// Evidence is what each concept gives to a document that EachLookedAt named, for the
// caller to fill in.
func (r *Ranking) Evidence(row int) []index.Share { return r.evidence.row(row) }
