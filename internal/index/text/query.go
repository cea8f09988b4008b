package text

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// BM25 parameters used when a Query leaves both zero. B is less than the usual 0.75,
// for lengths are those of passages, which differ by less than texts do.
const (
	DefaultK1 = 1.2
	DefaultB  = 0.4
)

// Query is a bag of weighted terms.
//
// A document's score is the sum over terms t and fields f of
//
//	weight(t) · weight(f) · idf · tf·(k1+1) / (tf + k1·(1-b+b·len/avglen))
//	idf = ln(1 + (N-n+0.5)/(n+0.5))
//
// (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, with the
// never negative idf of Lucene, see IDF). N documents and avglen, the mean length of f over
// them, come from the counters; n is the number of documents, added and not
// removed, whose field f holds t. All three are over the partitions of the search
// together and do not depend on Live and Allow.
//
// Each summand is rounded to a multiple of 2^-50 of the sum of all weights (to the
// next power of two), so that sums are exact and a score is the same to the bit
// however it was reached.
type Query struct {
	Terms        []QueryTerm
	K            int                // at most so many hits; positive
	FieldWeights [NumFields]float64 // 0: the field is not read
	K1, B        float64            // both 0: the defaults
	Explain      bool               // fill Hit.Parts

	// Must narrows the hits: of each group, which lists indexes of Terms, they
	// hold at least one term in a field that is read. A phrase is one group for
	// each of its terms; the index has no positions, so the caller looks for the
	// order in the texts. At most MaxMust groups; an empty one matches nothing.
	Must [][]int
	// After narrows the hits to those that come after it in the order of hits.
	After *Hit
}

// MaxMust is how many groups Query.Must may have.
const MaxMust = 64

// QueryTerm is one term, looked up in each field that is read. An empty text is not
// looked up, and the zero weight only where Must names the term.
type QueryTerm struct {
	Text   string
	Weight float64
	// Concept is the caller's number of what the term stands for, from 0. Terms of one
	// concept are alternatives: Score counts the one that gives a document most, while
	// Top adds them up, which never makes a document less.
	Concept int
	// Bounded: its idf is at most that of each other term of its concept, so that a
	// rare word that stands for another one is worth no more than that.
	Bounded bool
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
	Term      int // in Query.Terms
	Field     Field
	TF        uint32
	Length    uint32  // of the field
	AvgLength float64 // N, n, AvgLength and IDF are those of the search
	N, DF     uint64
	IDF       float64
	Score     float64
}

// slot is one list to read: a query term in one field.
type slot struct {
	term   int // index in Query.Terms
	field  Field
	text   string
	print  byte    // its fingerprint
	weight float64 // of term and field
	must   uint64  // the groups of Query.Must that it belongs to
	own    uint64  // documents added and not removed, of this database
	n      uint64  // these of all, see Together
	common uint64  // n that idf is of: as n, or the most of the concept
	idf    float64
	boost  float64 // weight · idf · (k1+1)
	kA, kB float64 // k1·(1-b) and k1·b/avglen
	round  float64
	memo   *memo // nil: none
}

// part is one summand of a document's score.
func (s *slot) part(tf, length uint32) float64 {
	f := float64(tf)
	x := s.boost * f / (f + (s.kA + s.kB*float64(length)))
	return float64(x+s.round) - s.round
}

// A frequent term keeps what its postings score, for the frequencies and lengths
// that most have: a look-up instead of a division.
const (
	memoTFs     = 4
	memoLengths = 256
	memoFrom    = 1024 // documents from which on it pays
)

type memo [memoTFs * memoLengths]float64

// known is part, remembered.
func (s *slot) known(tf, length uint32) float64 {
	if s.memo == nil || tf > memoTFs || length >= memoLengths {
		return s.part(tf, length)
	}
	x := &s.memo[(tf-1)*memoLengths+length]
	if *x == 0 {
		*x = s.part(tf, length)
	}
	return *x
}

// bound is the most that a posting scores which one of the pairs covers. A term
// of negative weight adds at most nothing, by not being there.
func (s *slot) bound(v []byte, c *chunk) float64 {
	if s.boost <= 0 {
		return 0
	}
	ub, at := 0.0, int(c.pairs)
	for range c.nPairs {
		var tf, length uint32
		tf, at = readUvarint(v, at)
		length, at = readUvarint(v, at)
		ub = max(ub, s.part(tf, length))
	}
	return ub
}

// weighAll weighs all slots and sets how their summands are rounded.
func weighAll(slots []slot, q *Query, st Stats) {
	sum := 0.0
	boundIDF(slots, q)
	for i := range slots {
		slots[i].weigh(q, st)
		sum += math.Abs(slots[i].boost)
	}
	_, exp := math.Frexp(sum) // sum < 2^exp
	// Adding and taking away 1.5·2^52·u rounds to a multiple of u.
	round := math.Ldexp(1.5, 52+exp-50)
	for i := range slots {
		slots[i].round = round
	}
}

// boundIDF counts for each slot the documents that its idf is of.
func boundIDF(slots []slot, q *Query) {
	type group struct {
		concept int
		field   Field
	}
	var most map[group]uint64 // by groups with a bounded term
	for i := range slots {
		s := &slots[i]
		s.common = s.n
		if t := &q.Terms[s.term]; t.Bounded {
			if most == nil {
				most = map[group]uint64{}
			}
			most[group{t.Concept, s.field}] = 0
		}
	}
	if most == nil {
		return
	}
	for i := range slots {
		s := &slots[i]
		if n, ok := most[group{q.Terms[s.term].Concept, s.field}]; ok {
			most[group{q.Terms[s.term].Concept, s.field}] = max(n, s.n)
		}
	}
	for i := range slots {
		if s := &slots[i]; q.Terms[s.term].Bounded {
			s.common = most[group{q.Terms[s.term].Concept, s.field}]
		}
	}
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
		if !finite(w) || math.Abs(w) > maxWeight {
			return fmt.Errorf("%w: weight %v of %s", ErrInvalid, w, Field(f))
		}
	}
	for i, t := range q.Terms {
		if !finite(t.Weight) || math.Abs(t.Weight) > maxWeight {
			return fmt.Errorf("%w: weight %v of query term %d", ErrInvalid, t.Weight, i)
		}
	}
	if len(q.Must) > MaxMust {
		return fmt.Errorf("%w: %d groups of required terms", ErrInvalid, len(q.Must))
	}
	for _, group := range q.Must {
		for _, i := range group {
			if i < 0 || i >= len(q.Terms) {
				return fmt.Errorf("%w: required term %d of %d", ErrInvalid, i, len(q.Terms))
			}
		}
	}
	return nil
}

// maxWeight keeps scores finite.
const maxWeight = 1e9

// slots lists what to read, in order of terms, then fields.
func (q *Query) slots(dst []slot) []slot {
	for i, t := range q.Terms {
		if !ValidTerm(t.Text) {
			continue // no document has it
		}
		must, print := q.groupsOf(i), fingerprint(t.Text)
		for f, weight := range q.FieldWeights {
			w := t.Weight * weight
			if w != 0 || must != 0 && weight != 0 {
				dst = append(dst, slot{term: i, field: Field(f), text: t.Text, print: print, weight: w, must: must})
			}
		}
	}
	return dst
}

// groupsOf gives the groups of Must that name a term, one bit each.
func (q *Query) groupsOf(term int) (groups uint64) {
	for g, terms := range q.Must {
		if slices.Contains(terms, term) {
			groups |= 1 << g
		}
	}
	return groups
}

// fewDocs is how many documents there are at least where the idf of a term is reckoned: that
// one of five documents has a word does not make it a common one.
const fewDocs = 100

// IDF weighs a term that n of so many documents have by how rare it is.
func IDF(docs, n uint64) float64 {
	// n too, for rows that disagree with the counters must not give NaN.
	all := float64(max(docs, n, fewDocs))
	return math.Log(1 + (all-float64(n)+0.5)/(float64(n)+0.5))
}

// weigh fills in what depends on the counts.
func (s *slot) weigh(q *Query, st Stats) {
	k1, b := q.K1, q.B
	if k1 == 0 && b == 0 {
		k1, b = DefaultK1, DefaultB
	}
	s.idf = IDF(st.Docs, s.common)
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
