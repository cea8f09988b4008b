// Package parse reads a query as it was written: words, phrases in quotes, beginnings* of words,
// and -words that are left out; or as what somebody said, which is plain words.
//
// Its job: say which of a query's characters are operators, and whether a phrase stands in a text.
//
// Invariants: what is no operator is plain words, and every query is one; nothing is lost but
// operators and what they leave out. A query of several lines is pasted, and has none.
//
// Not its job: what a word is to the index, or how much it weighs.
package parse

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Query is what a query says.
type Query struct {
	// Text is what is looked for: the query without its marks and without what is left out.
	Text       string
	Beside     string   // what of it stands beside the phrases
	Phrases    []Phrase // stand in every result
	Without    []Phrase // stand in no result
	Beginnings []string // of words, as they are written, without the star; they are in Text, too
}

const (
	maxPhrases    = 16 // and what is left out
	maxBeginnings = 8
)

// shortest is the fewest letters of a word that is left out, and of a beginning: `-v` is a flag,
// and `a*` says little. A beginning in a script without blanks may be one character.
const shortest = 2

// quotes are the pairs of marks that a phrase stands between.
var quotes = map[rune]rune{'"': '"', '“': '”', '„': '“', '«': '»', '「': '」', '『': '』'}

// Parse reads a query. One with more operators of a kind than there may be was pasted, as one of
// several lines: it has none.
func Parse(query string) Query {
	if strings.ContainsAny(strings.TrimSpace(query), "\n\r") {
		return Plain(query)
	}
	p := parser{rest: query}
	for p.rest != "" {
		p.step()
	}
	q := p.out
	q.Text, q.Beside = p.text.String(), p.beside.String()
	if strings.TrimSpace(q.Text) == "" {
		return Plain(query) // nothing is left to look for
	}
	if len(q.Phrases) > maxPhrases || len(q.Without) > maxPhrases || len(q.Beginnings) > maxBeginnings {
		return Plain(query) // nobody asks so: it was pasted
	}
	return q
}

// Plain reads a query in which nothing is an operator.
func Plain(query string) Query { return Query{Text: query, Beside: query} }

type parser struct {
	rest   string
	before rune // what stands in front of it; 0 = a blank, or nothing
	text   strings.Builder
	beside strings.Builder // of it, what is in no quotes
	out    Query
}

// step takes the next phrase, word or mark.
func (p *parser) step() {
	if p.before == 0 && p.rest[0] == '-' {
		if s, n := quoted(p.rest[1:]); n > 0 {
			p.without(s, 1+n, false)
			return
		}
		word, starred := strings.CutSuffix(stretch(p.rest[1:]), "*")
		if plainWord(word) {
			n := 1 + len(word)
			if starred {
				n++
			}
			p.without(word, n, starred)
			return
		}
	}
	if p.before == 0 {
		word, starred := strings.CutSuffix(strings.TrimRight(stretch(p.rest), ends), "*")
		if starred && isBeginning(word) {
			if !slices.Contains(p.out.Beginnings, word) {
				p.out.Beginnings = append(p.out.Beginnings, word)
			}
			p.write(word)
			p.rest, p.before = p.rest[len(word)+1:], '*'
			return
		}
	}
	if s, n := quoted(p.rest); n > 0 && (p.rest[0] != '"' || !inWord(p.before)) { // behind a digit it may be inches
		if ph, ok := NewPhrase(s); ok {
			p.out.Phrases = add(p.out.Phrases, ph)
		}
		p.text.WriteString(" " + s + " ")
		p.beside.WriteByte(' ')
		p.rest, p.before = p.rest[n:], 0
		return
	}
	r, n := utf8.DecodeRuneInString(p.rest)
	p.write(p.rest[:n])
	p.rest, p.before = p.rest[n:], r
	if unicode.IsSpace(r) {
		p.before = 0
	}
}

// write takes what is looked for and stands in no quotes.
func (p *parser) write(s string) {
	p.text.WriteString(s)
	p.beside.WriteString(s)
}

func (p *parser) without(s string, n int, begins bool) {
	if ph, ok := NewPhrase(s); ok {
		ph.begins = begins
		p.out.Without = add(p.out.Without, ph)
	}
	p.rest = p.rest[n:]
}

func add(to []Phrase, ph Phrase) []Phrase {
	for _, o := range to {
		if o.String() == ph.String() {
			return to
		}
	}
	return append(to, ph)
}

// quoted returns what stands in quotes at the beginning of s, and how many bytes that takes with
// the marks; 0 = s begins with no quote, or with one that is never shut.
func quoted(s string) (string, int) {
	open, n := utf8.DecodeRuneInString(s)
	shut, ok := quotes[open]
	if !ok {
		return "", 0
	}
	end := strings.IndexRune(s[n:], shut)
	if end < 0 {
		return "", 0
	}
	return s[n : n+end], n + end + utf8.RuneLen(shut)
}

// stretch is what s begins with up to white space.
func stretch(s string) string {
	if end := strings.IndexFunc(s, unicode.IsSpace); end >= 0 {
		return s[:end]
	}
	return s
}

// plainWord reports whether s is a word, a name of code or a path, of which it may be said
// that it is left out.
func plainWord(s string) bool {
	letters := 0
	for i, r := range s {
		switch {
		case unicode.IsLetter(r):
			letters++
		case unicode.In(r, unicode.N, unicode.M):
		case i > 0 && strings.ContainsRune("_-./", r):
		default:
			return false
		}
	}
	return letters >= shortest
}

// ends are the marks of a sentence that may stand behind a beginning.
const ends = "?!.,;:？！。，；："

// isBeginning reports whether s may be the beginning of a word, of a name of code, of a path, a
// version or an address.
func isBeginning(s string) bool {
	n := 0
	for i, r := range s {
		switch {
		case together(r):
			n += shortest
		case inWord(r):
			n++
		case i > 0 && strings.ContainsRune("_-./:@", r):
		default:
			return false
		}
	}
	return n >= shortest
}
