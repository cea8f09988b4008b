package rank

import (
	"cmp"
	"slices"

	index "mneme/internal/index/text"
	"mneme/memory"
)

// Candidate is a document that a source found.
type Candidate struct {
	Partition int // in Question.Partitions
	Doc       uint32
	Chunk     int     // best one by vector; -1 = unknown
	Sum       float64 // of the weighted features
	Score     float64 // 0..1, the logistic function of the sum

	cosine               float64 // raw
	hasVector            bool    // cosine is exact, be it 0
	inText, inVector     bool    // that source found it
	isNeighbour          bool    // it stands beside what a source found
	textRank, vectorRank int     // from 1, in the source that found it
	around               span    // its neighbours
	narrowed             bool    // its text was looked at, see Narrow
	opens                bool    // it is the first message of a conversation that goes on
	row                  int32   // in Ranking.rows

	values, raw [numFeatures]float64 // of each feature, and before scaling
}

// InText reports whether the text source found it.
func (c *Candidate) InText() bool { return c.inText }

// HasWords reports whether the document has words of the query itself.
func (c *Candidate) HasWords() bool { return c.raw[featureText] > 0 }

// VectorScore is the value of its vector, 0..1.
func (c *Candidate) VectorScore() float64 { return max(0, min(c.cosine, 1)) }

// TextScore is the value of its text, 0..1.
func (c *Candidate) TextScore() float64 { return c.values[featureMatched] }

// MatchedBy names the parts that count for it: the sources that found it, and what
// is around it.
func (c *Candidate) MatchedBy() []string {
	out := make([]string, 0, 4)
	for k, by := range sources {
		in := true
		switch feature(k) {
		case featureBase, featureKnown, featureWordsAlone, featureVectorsAlone, featureMatched, featureMatchedNeighbours:
			in = false
		case featureVector:
			in = c.inVector
		case featureText:
			in = c.inText
		}
		if in && c.values[k] > 0 {
			out = append(out, by)
		}
	}
	return out
}

// Ranking holds the candidates of one search. It is filled in this order: FoundText
// and FoundVector, KeepBestVectors, AddNeighbours, evidence, Keep, cosines,
// Evaluate, Order. Its memory is used again.
type Ranking struct {
	plan         *Plan
	candidates   []Candidate
	rows         rows    // the candidates, and what stands around them
	known        []known // by row
	evidence     evidence
	neighbours   []int32 // rows of those of the candidates, see span
	best         []index.Share
	held         []float64 // by concept
	docs         []uint32  // of one partition
	at           []int32   // the places of these among the candidates
	surroundings Surroundings
	order        []ordered
	spare        []Candidate // room for Order
	stretches    stretches
}

// known is what ranking knows of a document besides its evidence.
type known struct {
	candidate int32   // 1 + its place among the candidates, 0 = it is none
	asked     bool    // for its cosine
	cosine    float64 // of its best chunk; 0 = it has none, or was not asked for
}

// Found is how many candidates each source brought, and how many stand beside those.
func (r *Ranking) Found() (byText, byVector, neighbours int) {
	for i := range r.candidates {
		switch c := &r.candidates[i]; {
		case c.inText && c.inVector:
			byText++
			byVector++
		case c.inText:
			byText++
		case c.inVector:
			byVector++
		default:
			neighbours++
		}
	}
	return byText, byVector, neighbours
}

// NewRanking returns an empty ranking.
func NewRanking() *Ranking { return &Ranking{} }

// Begin empties the ranking for a search.
func (r *Ranking) Begin(p *Plan) {
	clear(r.candidates)
	r.candidates = r.candidates[:0]
	r.rows.reset()
	r.known, r.neighbours = r.known[:0], r.neighbours[:0]
	r.stretches.forget()
	r.plan = p
	concepts := 0
	if p != nil {
		concepts = len(p.Concepts)
	}
	r.evidence.reset(concepts)
}

// Candidates lists the candidates. The list is good until the next change.
func (r *Ranking) Candidates() []Candidate { return r.candidates }

// find returns the candidate of a document, making it if need be. The pointer
// is good until the next call.
func (r *Ranking) find(k docKey) *Candidate {
	row := r.row(k)
	if i := r.known[row].candidate; i > 0 {
		return &r.candidates[i-1]
	}
	r.candidates = append(r.candidates, Candidate{Partition: k.partition, Doc: k.doc, Chunk: -1, row: row})
	r.known[row].candidate = int32(len(r.candidates))
	return &r.candidates[len(r.candidates)-1]
}

// row returns the row of a document, making it if need be.
func (r *Ranking) row(k docKey) int32 {
	row, isNew := r.rows.add(k)
	if isNew {
		r.known = append(r.known, known{})
	}
	return row
}

// FoundText takes a document that the text source found, with its rank from 1.
func (r *Ranking) FoundText(partition int, doc uint32, rank int) {
	c := r.find(docKey{partition, doc})
	c.inText, c.textRank = true, rank
}

// FoundVector takes a document that the vector source found.
func (r *Ranking) FoundVector(partition int, doc uint32, cosine float64, chunk int) {
	c := r.find(docKey{partition, doc})
	c.cosine, c.hasVector, c.inVector, c.Chunk = cosine, true, true, chunk
}

// KeepBestVectors orders the vector candidates of all partitions and keeps the
// best of them.
func (r *Ranking) KeepBestVectors() {
	order := make([]int32, 0, len(r.candidates))
	for i := range r.candidates {
		if r.candidates[i].inVector {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &r.candidates[a], &r.candidates[b]
		return cmp.Or(cmp.Compare(y.cosine, x.cosine), x.compareDoc(y))
	})
	for rank, i := range order {
		c := &r.candidates[i]
		c.vectorRank = rank + 1
		c.inVector = rank < r.plan.VectorPool()
	}
}

func (c *Candidate) compareDoc(o *Candidate) int {
	return cmp.Or(cmp.Compare(c.Partition, o.Partition), cmp.Compare(c.Doc, o.Doc))
}

// Keep drops the candidates that no source found after all, and those that keep
// (nil = all) does not let through.
func (r *Ranking) Keep(keep func(c *Candidate) (bool, error)) error {
	n := 0
	for i := range r.known {
		r.known[i].candidate = 0
	}
	for i := range r.candidates {
		c := &r.candidates[i]
		if !c.inText && !c.inVector && !c.isNeighbour {
			continue
		}
		if keep != nil {
			if ok, err := keep(c); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if n < i {
			r.candidates[n] = *c
		}
		n++
		r.known[c.row].candidate = int32(n)
	}
	clear(r.candidates[n:])
	r.candidates = r.candidates[:n]
	return nil
}

// Explain accounts for a candidate's score.
func (r *Ranking) Explain(c *Candidate) *memory.Explain {
	p := r.plan
	out := &memory.Explain{Sum: c.Sum}
	for k, v := range c.values {
		if v > 0 || feature(k) == featureText && p.HasText() || feature(k) == featureVector && p.ByVector {
			out.Parts = append(out.Parts, memory.ExplainPart{Source: sources[k], Weight: p.weight(feature(k)), Value: v, Raw: c.raw[k]})
		}
	}
	for i, share := range r.evidence.row(c.row) {
		if share.Score > 0 {
			concept := &p.Concepts[i]
			a := concept.Alternatives[share.Term-concept.first]
			term := memory.ExplainTerm{Term: concept.Alternatives[0].Term, Score: share.Score}
			if a.Term != term.Term {
				term.ReadAs, term.Kind = a.Term, string(a.Kind)
			}
			out.Terms = append(out.Terms, term)
		}
	}
	return out
}
