package text

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

// lexeme is what a raw word comes to, whatever text it stands in.
type lexeme struct {
	// word is the raw word, of size bytes, as far as it is kept; a text's words lie scattered over
	// the memo, and what is compared first lies where the pointer leads.
	word   [memoWord]byte
	size   uint8
	kind   Kind
	split  bool // the word has parts of its own (camel case, letters and digits)
	folded string
	term   string
}

// is reports whether it is the lexeme of a word that is kept.
func (l *lexeme) is(raw string) bool { return string(l.word[:l.size]) == raw }

const (
	memoSlots = 1 << 15
	// memoWord is the longest word kept, in bytes.
	memoWord = 32
)

// memo remembers the lexemes of common words. It is the one piece of state in
// this package and cannot be observed: it holds values of a pure function, is
// bounded (a word stands in one of two slots, the newest first) and safe for concurrent
// use.
var memo [memoSlots]atomic.Pointer[lexeme]

// lookup returns the lexeme of a raw word.
func lookup(raw string) *lexeme {
	if len(raw) > memoWord {
		return newLexeme(raw)
	}
	h := uint32(2166136261) // FNV-1a
	for i := 0; i < len(raw); i++ {
		h = (h ^ uint32(raw[i])) * 16777619
	}
	at := (h ^ h>>15) % memoSlots
	first, second := &memo[at], &memo[at^1]
	former := first.Load()
	if former != nil && former.is(raw) {
		return former
	}
	if l := second.Load(); l != nil && l.is(raw) {
		return l
	}
	l := newLexeme(strings.Clone(raw))
	first.Store(l)
	if former != nil {
		second.Store(former)
	}
	return l
}

func newLexeme(raw string) *lexeme {
	l := &lexeme{folded: Fold(raw)}
	if len(raw) <= memoWord {
		l.size = uint8(copy(l.word[:], raw))
	}
	l.term = l.folded
	switch {
	case isNumber(l.folded):
		l.kind = KindNumber
		l.term = plainNumber(l.folded)
	case isStop(raw, l.folded):
		l.kind = KindStop
	case isEnglish(l.folded):
		l.term = stem(l.folded)
	}
	l.split = len(raw) <= maxWhole && isASCII(raw) && partEnd(raw, 0) < len(raw)
	return l
}

// stem is the Porter2 stem. It never returns an empty string.
func stem(folded string) string {
	if s := english.Stem(irregular(folded), true); s != "" {
		return s
	}
	return folded
}

// isEnglish reports whether the stemmer may see the word. Long runs of letters
// are no words.
func isEnglish(folded string) bool {
	if len(folded) < 3 || len(folded) > 40 {
		return false
	}
	for i := 0; i < len(folded); i++ {
		if c := folded[i]; !isAlpha(c) && c != '\'' {
			return false
		}
	}
	return true
}

func isNumber(s string) bool {
	if s == "" || !isDigit(s[0]) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isDigit(c) && c != ',' && c != '.' {
			return false
		}
	}
	return true
}

// plainNumber drops thousands separators, and the zero that pads a day, a month
// or an hour to two digits.
func plainNumber(s string) string {
	if strings.IndexByte(s, ',') >= 0 {
		s = strings.ReplaceAll(s, ",", "")
	}
	if len(s) == 2 && s[0] == '0' {
		s = s[1:]
	}
	return s
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
