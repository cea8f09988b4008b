package text

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// BM25 parameters used when a Query leaves both zero.
const (
	DefaultK1 = 1.2
	DefaultB  = 0.75
)

// Query is a bag of weighted terms.
//
// A document's score is the sum over terms t and fields f of
//
//	weight(t) · weight(f) · idf · tf·(k1+1) / (tf + k1·(1-b+b·len/avglen))
//	idf = ln(1 + (N-n+0.5)/(n+0.5))
//
// (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, with the
// never negative idf of Lucene). N documents and avglen, the mean length of f over
// them, come from the counters; n is the number of live documents whose field f
// holds t. All three are over the partitions of the search together and do not
// depend on Allow.
type Query struct {
	Terms        []QueryTerm
	K            int                // at most so many hits; positive
	FieldWeights [NumFields]float64 // 0: the field is not read
	K1, B        float64            // both 0: the defaults
	Explain      bool               // fill Hit.Parts
}

// QueryTerm is one term under its key in each field. The zero key and the zero
// weight are not looked up.
type QueryTerm struct {
	Keys   [NumFields]TermKey
	Weight float64
	Term   int // the caller's number, given back in TermScore
}

// Partition is one of the partitions that a search opens. Live holds all
// documents that count, nil means all; Allow, the filter, those that may be hits,
// nil means all.
type Partition struct {
	ID    uint32
	Live  Set
	Allow Set
}

// Hit is one found document.
type Hit struct {
	Partition uint32
	Doc       uint32
	Score     float64
	Parts     []TermScore // in order of Query.Terms, then fields; nil without Explain
}

// TermScore is one summand of a score.
type TermScore struct {
	Term      int // QueryTerm.Term
	Field     Field
	TF        uint32
	Length    uint32  // of the field
	AvgLength float64 // N, n, AvgLength and IDF are those of the search
	N, DF     uint64
	IDF       float64
	Score     float64
}

// slot is one term key to read: a query term in one field.
type slot struct {
	term   int // index in Query.Terms
	field  Field
	key    TermKey
	weight float64 // of term and field
	n      uint64  // live documents
	idf    float64
	boost  float64 // weight · idf · (k1+1)
	kA, kB float64 // k1·(1-b) and k1·b/avglen
}

// part is one summand of a document's score.
func (s *slot) part(p posting) float64 {
	tf := float64(p.tf())
	return s.boost * tf / (tf + s.kA + s.kB*float64(p.length()))
}

func (q *Query) validate() error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	switch {
	case q.K <= 0:
		return fmt.Errorf("%w: %d hits", ErrInvalid, q.K)
	case !finite(q.K1) || q.K1 < 0 || !finite(q.B) || q.B < 0 || q.B > 1:
		return fmt.Errorf("%w: k1 %v, b %v", ErrInvalid, q.K1, q.B)
	}
	for f, w := range q.FieldWeights {
		if !finite(w) {
			return fmt.Errorf("%w: weight %v of %s", ErrInvalid, w, Field(f))
		}
	}
	for i, t := range q.Terms {
		if !finite(t.Weight) {
			return fmt.Errorf("%w: weight %v of query term %d", ErrInvalid, t.Weight, i)
		}
	}
	return nil
}

// slots lists what to read, in order of terms, then fields.
func (q *Query) slots(dst []slot) []slot {
	for i, t := range q.Terms {
		for f := range t.Keys {
			w := t.Weight * q.FieldWeights[f]
			if w != 0 && t.Keys[f] != (TermKey{}) {
				dst = append(dst, slot{term: i, field: Field(f), key: t.Keys[f], weight: w})
			}
		}
	}
	return dst
}

// weigh fills in what depends on the counts.
func (s *slot) weigh(q *Query, st Stats) {
	k1, b := q.K1, q.B
	if k1 == 0 && b == 0 {
		k1, b = DefaultK1, DefaultB
	}
	n, all := float64(s.n), float64(st.Docs)
	// A live set that disagrees with the counters must not give NaN.
	all = max(all, n)
	s.idf = math.Log(1 + (all-n+0.5)/(n+0.5))
	s.boost = s.weight * s.idf * (k1 + 1)
	s.kA, s.kB = k1*(1-b), 0
	if avg := st.avg(s.field); avg > 0 {
		s.kB = k1 * b / avg
	}
}

func (s *Stats) avg(f Field) float64 {
	if s.Docs == 0 {
		return 0
	}
	return float64(s.Length[f]) / float64(s.Docs)
}

// byID returns parts ascending by ID. Error: ErrInvalid for one given twice, which
// would count its documents twice.
func byID(parts []Partition) ([]Partition, error) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Partition) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(parts); i++ {
		if parts[i].ID == parts[i-1].ID {
			return nil, fmt.Errorf("%w: partition %d twice", ErrInvalid, parts[i].ID)
		}
	}
	return parts, nil
}
