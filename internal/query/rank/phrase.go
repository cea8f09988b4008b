package rank

import (
	"slices"
	"strings"
	"unicode/utf8"

	index "mneme/internal/index/text"
	"mneme/internal/text"
	"mneme/memory"
)

// A phrase in quotes must stand in a result word for word. The index knows which
// documents hold all of its words; whether they stand together is read in the
// text. A phrase of stop words alone is not in the index: then only what the rest
// of the query finds is looked at.
//
// In a question, which has a question mark, quotes are those of titles and names
// and restrict nothing: the answer to "When did she read 'Dune'?", with double
// quotes, need not name the book. On the development sets restricting questions
// costs 0.01 of recall@10.

// Phrase is a quoted phrase: its folded words, stop words included, as numbers.
// Equal words have equal numbers in all phrases of a plan.
type Phrase struct {
	words []int32 // from 1
	// border[i] is how many of the first words are also the last ones of
	// words[:i+1], without being all of it (Knuth, Morris and Pratt 1977).
	border []int32
}

// maxPhrases bounds the phrases of one query.
const maxPhrases = 16

// quotes are the pairs of marks that a phrase stands between.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '「': '」', '『': '』'}

// findPhrases finds the phrases and what the index must hold of them. It needs
// the query's terms.
func (p *Plan) findPhrases() error {
	if strings.ContainsAny(p.Query, "?？") {
		return nil
	}
	for _, quoted := range quotedParts(p.Query) {
		words := p.numberWords(quoted)
		if len(words) == 0 || slices.ContainsFunc(p.Phrases, func(o Phrase) bool { return slices.Equal(o.words, words) }) {
			continue
		}
		if len(p.Phrases) == maxPhrases {
			return memory.Errorf(memory.CodeInvalid, "the query has more than %d phrases in quotes", maxPhrases)
		}
		p.Phrases = append(p.Phrases, newPhrase(words))
		text.Analyze(quoted, func(t text.Token) bool {
			c := p.concept(t.Term)
			if c < 0 {
				return true
			}
			at := p.Concepts[c].first
			same := func(g []int) bool { return g[0] == at }
			if !slices.ContainsFunc(p.Words.Must, same) && len(p.Words.Must) < index.MaxMust {
				p.Words.Must = append(p.Words.Must, []int{at})
			}
			return true
		})
	}
	return nil
}

// quotedParts returns what stands in quotes; an open quote quotes nothing.
func quotedParts(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		open, n := utf8.DecodeRuneInString(s[i:])
		i += n
		shut, ok := quotes[open]
		if !ok {
			continue
		}
		end := strings.IndexRune(s[i:], shut)
		if end < 0 {
			continue
		}
		out = append(out, s[i:i+end])
		i += end + utf8.RuneLen(shut)
	}
	return out
}

// numberWords returns the folded words of a phrase by their numbers.
func (p *Plan) numberWords(s string) (words []int32) {
	text.AnalyzeWords(s, func(w text.Word) bool {
		n, ok := p.phraseWords[w.Folded]
		if !ok {
			if p.phraseWords == nil {
				p.phraseWords = map[string]int32{}
			}
			n = int32(len(p.phraseWords) + 1)
			p.phraseWords[w.Folded] = n
		}
		words = append(words, n)
		return true
	})
	return words
}

func newPhrase(words []int32) Phrase {
	ph := Phrase{words: words, border: make([]int32, len(words))}
	m := phraseMatcher{Phrase: &ph}
	for i := 1; i < len(words); i++ {
		m.next(words[i])
		ph.border[i] = m.at
	}
	return ph
}

// phraseMatcher looks for a phrase in words that come one after another, in time
// for each word that does not depend, on average, on the length of the phrase.
type phraseMatcher struct {
	*Phrase
	at       int32 // how many words of the phrase the last words are
	compared int   // words, which tests count
}

// next takes the next word and reports whether the phrase ends with it. Nothing may
// follow the end of the phrase.
func (m *phraseMatcher) next(word int32) bool {
	for {
		m.compared++
		if m.words[m.at] == word {
			m.at++
			return int(m.at) == len(m.words)
		}
		if m.at == 0 {
			return false
		}
		m.at = m.border[m.at-1]
	}
}

// HasPhrases reports whether a text holds all phrases of the query.
func (p *Plan) HasPhrases(s string) bool {
	missing := make([]phraseMatcher, len(p.Phrases))
	for i := range missing {
		missing[i].Phrase = &p.Phrases[i]
	}
	return p.findAll(missing, s)
}

// findAll reports whether a text holds what each of the matchers looks for. It stops
// where the last one of them ends.
func (p *Plan) findAll(missing []phraseMatcher, s string) bool {
	text.AnalyzeWords(s, func(w text.Word) bool {
		n := p.phraseWords[w.Folded] // 0 is in no phrase
		for i := 0; i < len(missing); {
			if missing[i].next(n) {
				missing = slices.Delete(missing, i, i+1)
				continue
			}
			i++
		}
		return len(missing) > 0
	})
	return len(missing) == 0
}
