package rank

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	index "mneme/internal/index/text"
	"mneme/internal/query/parse"
	"mneme/internal/text"
)

// A phrase in quotes stands in a result word for word, and what is left out does not. The index
// knows which documents hold the words of the phrases; whether they stand together is read in
// the text. A phrase of stop words alone is not in the index: then what the rest of the query
// finds is looked at.

// requirePhrases says what the index must hold of the phrases. It needs the query's concepts.
// Only words of letters are required: what others are cut into depends on what stands around
// them.
func (p *Plan) requirePhrases() {
	for _, ph := range p.Phrases {
		for _, stretch := range strings.Fields(ph.String()) {
			if !strings.ContainsFunc(stretch, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) }) {
				p.require(stretch, true)
				continue
			}
			eachWithin(stretch, func(word string) { p.require(word, false) })
		}
	}
}

// eachWithin visits the words of ASCII letters between ASCII signs in a stretch without
// blanks: of "%s.name[4]d" s, name and d. An apostrophe joins what stands around it.
func eachWithin(stretch string, visit func(word string)) {
	isLetter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	parts := func(i int) bool { // what stands at i, or an end, sets a word apart
		return i < 0 || i == len(stretch) || stretch[i] < utf8.RuneSelf && stretch[i] != '\'' && (stretch[i] < '0' || stretch[i] > '9')
	}
	for i := 0; i < len(stretch); i++ {
		from := i
		for i < len(stretch) && isLetter(stretch[i]) {
			i++
		}
		if from < i && parts(from-1) && parts(i) {
			visit(stretch[from:i])
		}
	}
}

// require has each result of the index hold a word of a phrase. One within a name may be
// indexed as the whole name alone, if the name is joined by characters that folding makes
// plain ones.
func (p *Plan) require(word string, alone bool) {
	text.Analyze(word, func(t text.Token) bool {
		concept := p.concept(t.Term)
		if concept < 0 || len(p.Words.Must) == index.MaxMust {
			return true
		}
		group := []int{p.Concepts[concept].first}
		for i := range p.Concepts {
			if c := &p.Concepts[i]; !alone && i != concept && strings.Contains(c.Alternatives[0].Term, word) {
				group = append(group, c.first)
			}
		}
		if !slices.ContainsFunc(p.Words.Must, func(o []int) bool { return slices.Equal(o, group) }) {
			p.Words.Must = append(p.Words.Must, group)
		}
		return true
	})
}

// Checks reports whether results have to be read to know whether they are ones.
func (p *Plan) Checks() bool { return len(p.Phrases) > 0 || len(p.Without) > 0 }

// Takes reports whether a text holds all phrases of the query, and neither it nor one of its tags
// and names anything of what the query leaves out.
func (p *Plan) Takes(s string, names ...string) bool {
	folded := parse.Fold(s)
	if slices.ContainsFunc(p.Phrases, func(ph parse.Phrase) bool { return !ph.In(folded) }) {
		return false
	}
	return !slices.ContainsFunc(p.Without, func(ph parse.Phrase) bool {
		return ph.In(folded) || slices.ContainsFunc(names, func(name string) bool { return ph.In(parse.Fold(name)) })
	})
}
