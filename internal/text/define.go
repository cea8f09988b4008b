package text

import (
	"strings"
)

// Limits of a name that a text explains.
const (
	minShort    = 2 // characters
	maxShort    = 10
	maxExplains = 6 // words
)

// Definitions calls visit with the short names that a text explains itself, and what they
// stand for, both folded, with single spaces between their words: service level objective
// (SLO), SLO (service level objective), internationalisation (i18n). The letters of the
// short one stand in the long one in their order, the first at the begin of its first word:
// Schwartz and Hearst, A simple algorithm for identifying abbreviation definitions in
// biomedical text, 2003.
func (a *Analysis) Definitions(visit func(short, long string)) {
	s := a.Text
	for open := strings.IndexByte(s, '('); open >= 0; {
		shut := strings.IndexByte(s[open:], ')')
		if shut < 0 {
			return
		}
		at := open + shut
		open += strings.LastIndexByte(s[open:at], '(') // the innermost: each byte is looked at once
		inside, before := s[open+1:at], strings.TrimRight(lastSentence(s[:open]), " ")
		last := before[strings.LastIndexByte(before, ' ')+1:]
		switch {
		case isShort(inside):
			if at := explains(inside, before); at >= 0 {
				define(inside, before[at:], visit)
			}
		case len(inside) <= maxClause && isShort(last) && explains(last, inside) == 0:
			define(last, inside, visit)
		}
		if open = strings.IndexByte(s[at:], '('); open >= 0 {
			open += at
		}
	}
}

// lastSentence is what stands behind the last mark that ends a sentence or a clause, of at
// most maxClause bytes.
func lastSentence(s string) string {
	s = s[max(0, len(s)-maxClause):]
	return s[strings.LastIndexAny(s, "\n.;:!?()\"")+1:]
}

const maxClause = 128

// isShort reports whether a name may be a short one: in one piece, of ASCII letters and
// digits, with two capitals or a digit within.
func isShort(s string) bool {
	if len(s) < minShort || len(s) > maxShort {
		return false
	}
	capitals, letters := 0, 0
	for i := range len(s) {
		switch {
		case isUpper(s[i]):
			capitals++
			letters++
		case isAlpha(s[i]):
			letters++
		case isDigit(s[i]) && i > 0:
		default:
			return false
		}
	}
	return capitals > 1 || numeronym(s) > 0 && letters == 2
}

// numeronym is the length of the word that a name such as i18n counts, else 0.
func numeronym(s string) int {
	if len(s) < 3 || len(s) > 4 || !isAlpha(s[0]) || !isAlpha(s[len(s)-1]) {
		return 0
	}
	n := 0
	for _, c := range []byte(s[1 : len(s)-1]) {
		if !isDigit(c) {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n + 2
}

// explains returns where the words at the end of s begin that a short name stands for; -1 if
// it stands for none.
func explains(short, s string) int {
	if n := numeronym(short); n > 0 {
		at := strings.LastIndexByte(s, ' ') + 1
		if word := s[at:]; len(word) == n && lowerByte(word[0]) == lowerByte(short[0]) && lowerByte(word[n-1]) == lowerByte(short[len(short)-1]) {
			return at
		}
		return -1
	}
	at := len(s)
	for i := len(short) - 1; i >= 0; i-- {
		for at--; at >= 0; at-- {
			if lowerByte(s[at]) == lowerByte(short[i]) && (i > 0 || at == 0 || s[at-1] == ' ' || s[at-1] == '-') {
				break
			}
		}
		if at < 0 {
			return -1
		}
	}
	at = strings.LastIndexByte(s[:at], ' ') + 1
	words := strings.Count(s[at:], " ") + 1
	if words > maxExplains || words > 2*len(short) || len(s)-at < len(short)+2 || words == 1 && len(short) > 3 {
		return -1
	}
	return at
}

func lowerByte(c byte) byte {
	if isUpper(c) {
		return c | 0x20
	}
	return c
}

func define(short, long string, visit func(short, long string)) {
	a, b := plainName(short, folded), plainName(long, folded)
	if a != "" && b != "" && a != b && len(a)+len(b) < maxTerm/2 {
		visit(a, b)
	}
}

// plainName is a name as its words that are not parts of others, with spaces between them.
func plainName(s string, form func(w *Word) string) string {
	var words []string
	end := 0
	AnalyzeWords(s, func(w Word) bool {
		switch {
		case w.Start >= end || len(words) == 0:
			words = append(words, form(&w))
		case w.End > end:
			words[len(words)-1] = form(&w)
		default:
			return true
		}
		end = w.End
		return true
	})
	return strings.Join(words, " ")
}

func folded(w *Word) string   { return w.Folded }
func stemTerm(w *Word) string { return w.Term }

// definition stands before, between and behind the names of a definition's terms. No other
// term has it.
const definition = "≡"

// DefinitionTerms are the terms under which a definition is found by either name, in its
// terms; the other name is in its words.
func DefinitionTerms(short, long string) [2]string {
	return [2]string{
		DefinitionPrefix(plainName(short, stemTerm)) + long + definition,
		DefinitionPrefix(plainName(long, stemTerm)) + short + definition,
	}
}

// DefinitionPrefix is what the terms begin with that explain a name, which is given as its
// terms with spaces between them. LongerPrefix is that of names that go on.
func DefinitionPrefix(name string) string { return definition + name + definition }

// LongerPrefix: see DefinitionPrefix.
func LongerPrefix(name string) string { return definition + name + " " }

// ParseDefinition gives the names of a definition's term.
func ParseDefinition(term string) (name, other string, ok bool) {
	parts := strings.Split(term, definition)
	if len(parts) != 4 || parts[0] != "" || parts[3] != "" {
		return "", "", false
	}
	return parts[1], parts[2], true
}
