package query

import (
	"context"
	"math"

	index "mneme/internal/index/text"
)

// evidence is the part of each query term in the BM25 of each document that a
// search looks at: the candidates and the documents that may contribute to them.
type evidence struct {
	terms int
	at    map[docKey]int32
	score []float64 // by row and term
}

// docKey is a document of one of the plan's partitions.
type docKey struct {
	part int
	doc  uint32
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

// gather computes the evidence of the documents that were added, and the BM25
// that stands for a text value of 1: that of a document that holds each of the
// query's terms as often as can be. It counts all that is visible to the
// reader, so a filter changes it not.
func (r *Reader) gather(ctx context.Context, sc *scratch, words *index.Prepared) error {
	p, e := sc.plan, &sc.evidence
	sc.refs = sc.refs[:0]
	for k := range e.at {
		sc.refs = append(sc.refs, index.Ref{Partition: p.parts[k.part].ID, Doc: k.doc})
	}
	hits, err := words.Score(ctx, sc.hits[:0], sc.refs)
	if err != nil {
		return err
	}
	sc.hits = hits
	for i := range hits {
		row := e.of(docKey{p.partOf(hits[i].Partition), hits[i].Doc})
		for _, t := range hits[i].Parts {
			row[t.Term] += t.Score
		}
	}
	p.bound = 0
	for t := range p.query.Terms {
		n := float64(words.DocFreq(t, index.FieldText))
		all := max(float64(words.Stats().Docs), n)
		p.bound += (index.DefaultK1 + 1) * p.query.Terms[t].Weight * math.Log(1+(all-n+0.5)/(n+0.5))
	}
	return nil
}

var _ index.Set = (*docSet)(nil)
