package rank

import (
	"math"
	"slices"
	"strings"
	"unicode"

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
	dated        bool          // it is a part of a date
	whole        bool          // it is an identifier, a path or an address in one piece
	most         float64       // the BM25 that it gives at most
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

// isIdentifier reports whether a term is an identifier, a path, an address or a version:
// compounds of plain words such as follow-up are none, nor is a plain number.
func isIdentifier(term string) bool {
	letters := strings.ContainsFunc(term, unicode.IsLetter)
	return letters && len(term) >= 4 && strings.ContainsAny(term, "0123456789_/.:@#")
}

// Terms are the distinct terms of a query in its order, as many as a search looks for.
func Terms(query string) (out []string) {
	eachTerm(query, func(t text.Token) { out = append(out, t.Term) })
	return out
}

func eachTerm(query string, visit func(t text.Token)) {
	known := map[string]bool{}
	text.Index(query, func(t text.Token) bool {
		if !known[t.Term] {
			known[t.Term] = true
			visit(t)
		}
		return len(known) < maxConcepts
	})
}

// findConcepts finds the query's concepts. Their terms are looked up in every field. The
// idf of an alternative is at most that of the word it stands for: a rare misspelling of
// a frequent word is worth no more than that.
func (p *Plan) findConcepts() {
	p.Words = index.Query{FieldWeights: [index.NumFields]float64{index.FieldText: weightText, index.FieldTags: weightTags, index.FieldURI: weightURI, index.FieldWho: weightWho}}
	beside := 0
	add := func(term string, dated, whole bool) {
		c := Concept{Alternatives: []Alternative{{term, KindAsWritten, 1}}, first: len(p.Words.Terms), dated: dated, whole: whole}
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
	eachTerm(p.Query, func(t text.Token) { add(t.Term, p.inDate(t), isIdentifier(t.Term)) })
	for _, term := range p.Also {
		if p.concept(term) < 0 {
			add(term, false, false)
		}
	}
}

// held is the most that the concept gives if a document says it at all, else 0. What stands
// for a word counts by the root of its weight, which is already in the BM25.
func (c *Concept) held(s index.Share) float64 {
	if s.Score == 0 || s.Told {
		return 0
	}
	return c.most * math.Sqrt(c.Alternatives[s.Term-c.first].Weight)
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
