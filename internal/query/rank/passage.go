package rank

import (
	"slices"

	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// A long text holds many words of a query without answering it, scattered over its parts. So what
// it holds counts by half for the whole, and by half for the best stretch of as many words as a
// passage has. That is read in the text itself, from the best candidate down: it only ever lowers
// a sum, so whoever is first after that is first of all, whatever the limit.

// passageBytes is the longest text, in bytes, that is taken for one passage unread.
const passageBytes = 4 * text.PassageWords

// stretches finds the best stretch of a text. Its memory is used again.
type stretches struct {
	held   []float64 // by concept: what a candidate has of it
	times  []int     // by concept: how often it stands in the present stretch
	places []place
	text   text.Analysis // the one that was looked at last
	used   int           // so many words of its memory were written
}

// Analysis gives a text analysed. It is good until the next text is.
func (r *Ranking) Analysis(s string) text.Analysis { return r.stretches.analyse(s) }

// analyse analyses a text, unless it was the last one.
func (st *stretches) analyse(s string) text.Analysis {
	if st.text.Text != s {
		st.text = text.AnalyzeInto(st.text.Words, s)
		st.used = max(st.used, len(st.text.Words))
	}
	return st.text
}

// maxKeptWords bounds the memory that is kept for the words of a text, between searches.
const maxKeptWords = 1 << 12

// forget drops the text, and the memory of a long one.
func (st *stretches) forget() {
	words := st.text.Words[:0]
	if clear(words[:st.used]); st.used > maxKeptWords {
		words = nil
	}
	st.text, st.used = text.Analysis{Words: words}, 0
}

// place is a word of a text that stands for a concept of the query.
type place struct{ pos, concept int }

// Narrowed reports whether Narrow has seen the text of a candidate.
func (c *Candidate) Narrowed() bool { return c.narrowed }

// Scatters reports whether a candidate has two words of the query or more, which may stand far
// from each other in its text.
func (r *Ranking) Scatters(c *Candidate) bool {
	words := 0
	for i, share := range r.evidence.row(c.row) {
		if concept := &r.plan.Concepts[i]; !concept.dated && concept.held(share) > 0 {
			words++
		}
	}
	return words > 1
}

// IsLong reports whether a text may be more than one passage.
func IsLong(s string) bool { return len(s) > passageBytes }

// Narrow takes the text of a candidate, which may be empty where it need not be looked at. It
// reports whether the sum is less for it, so that the candidate may not be in its place any more.
func (r *Ranking) Narrow(c *Candidate, s string) bool {
	c.narrowed = true
	if !IsLong(s) || r.plan.bound <= 0 {
		return false
	}
	p := r.plan
	whole, best := r.stretches.of(p, r.evidence.row(c.row), s)
	if best >= whole {
		return false
	}
	before := c.Sum
	c.raw[featureMatched] -= (whole - best) / 2
	c.values[featureMatched] = min(c.raw[featureMatched]/p.bound, 1)
	r.add(c)
	return c.Sum < before
}

// of returns what a text holds of the query's words, and what its best stretch does.
func (st *stretches) of(p *Plan, own []index.Share, s string) (whole, best float64) {
	st.held, st.times, st.places = st.held[:0], st.times[:0], st.places[:0]
	for i := range own {
		held := 0.0
		if c := &p.Concepts[i]; !c.dated {
			held = c.held(own[i])
		}
		st.held, st.times = append(st.held, held), append(st.times, 0)
	}
	st.analyse(s).Index(func(t text.Token) bool {
		for _, concept := range p.conceptsOf(t.Term) {
			if st.held[concept] == 0 {
				continue
			}
			st.places = append(st.places, place{t.Pos, concept})
			if st.times[concept] == 0 {
				st.times[concept] = 1
				whole += st.held[concept]
			}
		}
		return true
	})
	clear(st.times)
	from, sum := 0, 0.0
	for _, at := range st.places {
		for ; at.pos-st.places[from].pos >= text.PassageWords; from++ {
			gone := st.places[from].concept
			if st.times[gone]--; st.times[gone] == 0 {
				sum -= st.held[gone]
			}
		}
		if st.times[at.concept]++; st.times[at.concept] == 1 {
			sum += st.held[at.concept]
		}
		best = max(best, sum)
	}
	return whole, best
}

// conceptsOf are the concepts that a term stands for.
func (p *Plan) conceptsOf(term string) []int {
	if p.byTerm.Len() == 0 {
		for i := range p.Concepts {
			for _, a := range p.Concepts[i].Alternatives {
				if at, _ := p.byTerm.Get(a.Term); !slices.Contains(at, i) {
					p.byTerm.Set(a.Term, append(at, i))
				}
			}
		}
	}
	concepts, _ := p.byTerm.Get(term)
	return concepts
}
