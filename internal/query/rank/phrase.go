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

// Phrase is the folded words of a quoted phrase, stop words included.
type Phrase []string

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
		words := Phrase(foldedWords(quoted))
		if len(words) == 0 || slices.ContainsFunc(p.Phrases, func(o Phrase) bool { return slices.Equal(o, words) }) {
			continue
		}
		if len(p.Phrases) == maxPhrases {
			return memory.Errorf(memory.CodeInvalid, "the query has more than %d phrases in quotes", maxPhrases)
		}
		p.Phrases = append(p.Phrases, words)
		text.Analyze(quoted, func(t text.Token) bool {
			at := slices.Index(p.Terms, t.Term)
			same := func(g []int) bool { return g[0] == at }
			if at >= 0 && !slices.ContainsFunc(p.Words.Must, same) && len(p.Words.Must) < index.MaxMust {
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

func foldedWords(s string) (words []string) {
	text.AnalyzeWords(s, func(w text.Word) bool {
		words = append(words, w.Folded)
		return true
	})
	return words
}

// in reports whether the phrase stands in a text, given as its folded words.
func (ph Phrase) in(words []string) bool {
	for i := 0; i+len(ph) <= len(words); i++ {
		if words[i] == ph[0] && slices.Equal(words[i:i+len(ph)], ph) {
			return true
		}
	}
	return false
}

// HasPhrases reports whether a text holds all phrases of the query.
func (p *Plan) HasPhrases(text string) bool {
	words := foldedWords(text)
	for _, ph := range p.Phrases {
		if !ph.in(words) {
			return false
		}
	}
	return true
}
