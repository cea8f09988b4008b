package rank

import (
	"slices"

	index "mneme/internal/index/text"
)

// evidence is what each concept of the query gives to each document that a search looks
// at: the candidates and the documents that may contribute to them.
type evidence struct {
	concepts int
	share    []index.Share // by row and concept; none before EachLookedAt
}

func (e *evidence) reset(concepts int) { e.concepts, e.share = concepts, e.share[:0] }

// grow makes room for so many rows, without anything in them.
func (e *evidence) grow(rows int) {
	n := rows * e.concepts
	e.share = slices.Grow(e.share[:0], n)[:n]
	clear(e.share)
}

// row returns a document's row, nil if nothing was looked up.
func (e *evidence) row(i int32) []index.Share {
	if len(e.share) == 0 {
		return nil
	}
	return e.share[int(i)*e.concepts : (int(i)+1)*e.concepts]
}

// EachLookedAt visits the documents whose evidence the ranking needs, once each, with
// the number of their row.
func (r *Ranking) EachLookedAt(visit func(row, partition int, doc uint32)) {
	if rows := len(r.rows.docs); len(r.evidence.share) != rows*r.evidence.concepts {
		r.evidence.grow(rows)
	}
	for i, k := range r.rows.docs {
		visit(i, k.partition, k.doc)
	}
}

// Evidence is what each concept gives to a document that EachLookedAt named, for the
// caller to fill in.
func (r *Ranking) Evidence(row int) []index.Share { return r.evidence.row(int32(row)) }
