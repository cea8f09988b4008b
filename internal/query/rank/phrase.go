package rank

import (
	"slices"
	"strings"
	"unicode"

	index "mneme/internal/index/text"
	"mneme/internal/query/parse"
	"mneme/internal/text"
)

// A phrase in quotes stands in a result word for word, and what is left out does not. The index
// knows which documents hold the words of the phrases; whether they stand together is read in
// the text. A phrase of stop words alone is not in the index: then what the rest of the query
// finds is looked at.

// requirePhrases says what the index must hold of the phrases. It needs the query's concepts.
// Only stretches of letters are required: what others are cut into depends on what stands
// around them.
func (p *Plan) requirePhrases() {
	for _, ph := range p.Phrases {
		for _, stretch := range strings.Fields(ph.String()) {
			if strings.ContainsFunc(stretch, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) }) {
				continue
			}
			text.Analyze(stretch, func(t text.Token) bool {
				p.require(p.concept(t.Term))
				return true
			})
		}
	}
}

// require has each result of the index hold the word of a concept itself.
func (p *Plan) require(concept int) {
	if concept < 0 || len(p.Words.Must) == index.MaxMust {
		return
	}
	at := p.Concepts[concept].first
	if !slices.ContainsFunc(p.Words.Must, func(group []int) bool { return group[0] == at }) {
		p.Words.Must = append(p.Words.Must, []int{at})
	}
}

// Checks reports whether results have to be read to know whether they are ones.
func (p *Plan) Checks() bool { return len(p.Phrases) > 0 || len(p.Without) > 0 }

// Takes reports whether a text holds all phrases of the query, and nothing of what it leaves out.
func (p *Plan) Takes(s string) bool {
	folded := parse.Fold(s)
	in := func(ph parse.Phrase) bool { return ph.In(folded) }
	return !slices.ContainsFunc(p.Phrases, func(ph parse.Phrase) bool { return !in(ph) }) && !slices.ContainsFunc(p.Without, in)
}
