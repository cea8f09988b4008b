package query

import (
	"context"
	"math"
	"slices"

	index "mneme/internal/index/text"
)

// evidence is the part of each query term in the BM25 of each document that a
// search looks at: the candidates and who may lend to them.
type evidence struct {
	terms int
	at    map[docKey]int32
	score []float64 // by row and term
	idf   []float64 // by term, in the text field; below 0 = not known
}

// docKey is a document of one of the plan's partitions.
type docKey struct {
	part int
	doc  uint32
}

func (e *evidence) reset(terms int) {
	e.terms = terms
	clear(e.at)
	e.score, e.idf = e.score[:0], e.idf[:0]
	for range terms {
		e.idf = append(e.idf, -1)
	}
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

// gather computes the evidence of the documents that were added.
func (r *Reader) gather(ctx context.Context, sc *scratch) error {
	e := &sc.evidence
	if len(e.at) == 0 {
		return r.bound(ctx, sc)
	}
	allow := make([]*docSet, len(sc.plan.parts))
	for i := range allow {
		allow[i] = &docSet{}
	}
	for k := range e.at {
		allow[k.part].Add(k.doc)
		allow[k.part].n++
	}
	q := sc.plan.query
	q.K, q.Explain = len(e.at), true
	hits, err := r.searchText(ctx, sc, allow, q)
	if err != nil {
		return err
	}
	for i := range hits {
		row := e.of(docKey{sc.plan.partOf(hits[i].Partition), hits[i].Doc})
		for _, t := range hits[i].Parts {
			row[t.Term] += t.Score
			e.learn(&t)
		}
	}
	return r.bound(ctx, sc)
}

func (e *evidence) learn(t *index.TermScore) {
	if t.Field == index.FieldText {
		e.idf[t.Term] = t.IDF
	}
}

// bound sets what stands for a text value of 1: the BM25 of a document that
// holds each of the query's terms as often as can be. It counts all that is
// visible to the reader, so a filter changes no score. A term that no document
// holds is as rare as can be.
func (r *Reader) bound(ctx context.Context, sc *scratch) error {
	p, e := sc.plan, &sc.evidence
	for try := 0; try < maxLookups && slices.Contains(e.idf, -1); try++ {
		q := p.query
		q.Terms, q.K, q.Explain = nil, 1, true
		q.FieldWeights = [index.NumFields]float64{index.FieldText: weightText}
		for t, idf := range e.idf {
			if idf < 0 {
				q.Terms = append(q.Terms, p.query.Terms[t])
			}
		}
		hits, err := r.searchText(ctx, sc, make([]*docSet, len(p.parts)), q)
		if err != nil {
			return err
		}
		if len(hits) == 0 {
			break
		}
		for _, t := range hits[0].Parts {
			e.learn(&t)
		}
	}
	sum := 0.0
	for t, idf := range e.idf {
		if idf < 0 {
			idf = math.Log(2 + 2*float64(p.docs))
		}
		sum += p.query.Terms[t].Weight * idf
	}
	p.bound = (index.DefaultK1 + 1) * sum
	return nil
}

// maxLookups bounds the searches for terms that no document looked at holds.
const maxLookups = 16

var _ index.Set = (*docSet)(nil)
