package rank

import (
	"slices"

	index "mneme/internal/index/text"
	"mneme/internal/text"
)

// maxConcepts bounds the work of one search; a query of 16 KiB holds more words. With
// them maxAlternatives may be looked up beside.
const (
	maxConcepts     = 256
	maxAlternatives = 64
)

// Concept is one word of a query, and what stands for it. A document has of it what the
// alternative gives that gives most: one memory that says a word in two ways says it
// once.
type Concept struct {
	Alternatives []Alternative // the query's own word first
	first        int           // its place in Plan.Words; the others follow
}

// Alternative is a term that stands for a word of the query.
type Alternative struct {
	Term   string
	Kind   Kind
	Weight float64 // of what it gives, 0..1
}

// Kind says why an alternative stands for a word.
type Kind string

// KindAsWritten is the word itself. What corrects a query has its own kinds.
const KindAsWritten Kind = "as_written"

// Terms are the distinct terms of a query in its order, as many as a search looks for.
func Terms(query string) (out []string) {
	text.Index(query, func(t text.Token) bool {
		if !slices.Contains(out, t.Term) {
			out = append(out, t.Term)
		}
		return len(out) < maxConcepts
	})
	return out
}

// findConcepts finds the query's concepts. Their terms are looked up in every field. The
// idf of an alternative is at most that of the word it stands for: a rare misspelling of
// a frequent word is worth no more than that.
func (p *Plan) findConcepts() {
	p.Words = index.Query{FieldWeights: [index.NumFields]float64{index.FieldText: weightText, index.FieldTags: weightTags, index.FieldURI: weightURI, index.FieldWho: weightWho}}
	beside := 0
	terms := Terms(p.Query)
	for _, term := range p.Also {
		if !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	for _, term := range terms {
		c := Concept{Alternatives: []Alternative{{term, KindAsWritten, 1}}, first: len(p.Words.Terms)}
		for _, a := range p.Question.Alternatives[term] {
			if beside < maxAlternatives && a.Term != term {
				c.Alternatives = append(c.Alternatives, a)
				beside++
			}
		}
		for i, a := range c.Alternatives {
			p.Words.Terms = append(p.Words.Terms, index.QueryTerm{Text: a.Term, Weight: a.Weight, Concept: len(p.Concepts), Bounded: i > 0})
		}
		p.Concepts = append(p.Concepts, c)
	}
}

// concept finds the concept of a query's own term; -1 = none.
func (p *Plan) concept(term string) int {
	return slices.IndexFunc(p.Concepts, func(c Concept) bool { return c.Alternatives[0].Term == term })
}

// ShownTerms are all terms that a snippet should show.
func (p *Plan) ShownTerms() []string {
	out := make([]string, len(p.Words.Terms))
	for i := range p.Words.Terms {
		out[i] = p.Words.Terms[i].Text
	}
	return out
}
