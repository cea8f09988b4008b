package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mneme/internal/text"
)

// Phrase is what stands in quotes, folded. The zero value stands nowhere.
type Phrase struct {
	folded string
	// border[i] is how many of the first bytes are also the last ones of folded[:i+1],
	// without being all of it (Knuth, Morris and Pratt 1977).
	border []int32
	begins bool // its last word may go on
}

// NewPhrase returns the phrase of what stands in quotes, false for white space.
func NewPhrase(s string) (Phrase, bool) {
	ph := Phrase{folded: Fold(s)}
	if ph.folded == "" {
		return ph, false
	}
	ph.border = make([]int32, len(ph.folded))
	for i, at := 1, int32(0); i < len(ph.folded); i++ {
		at = ph.next(at, ph.folded[i])
		ph.border[i] = at
	}
	return ph, true
}

// next is how many of the first bytes stand in front of what follows c, where at of them stood
// in front of c. At is not all of them.
func (ph Phrase) next(at int32, c byte) int32 {
	for at > 0 && ph.folded[at] != c {
		at = ph.border[at-1]
	}
	if ph.folded[at] == c {
		at++
	}
	return at
}

// String is the phrase as it is compared.
func (ph Phrase) String() string {
	if ph.begins {
		return ph.folded + "*"
	}
	return ph.folded
}

// Fold brings a text to the form in which phrases are looked for in it: text.Fold, and one
// blank for each stretch of white space, with none at the ends.
func Fold(s string) string {
	if folded, ok := foldASCII(s); ok {
		return folded
	}
	return strings.Join(strings.Fields(text.Fold(s)), " ")
}

// foldASCII is Fold in one pass; false if s is not ASCII.
func foldASCII(s string) (string, bool) {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			return "", false
		case c == ' ' || '\t' <= c && c <= '\r':
			if n := len(out); n == 0 || out[n-1] == ' ' {
				continue
			}
			c = ' '
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		out = append(out, c)
	}
	if n := len(out); n > 0 && out[n-1] == ' ' {
		out = out[:n-1]
	}
	return string(out), true
}

// In reports whether the phrase stands in a text that was folded with Fold: at the edges of
// words, where it begins and ends with letters or digits. Where words are written together, as
// Chinese ones are, it may stand anywhere.
func (ph Phrase) In(folded string) bool {
	if ph.folded == "" {
		return false
	}
	start := strings.Index(folded, ph.folded)
	if start < 0 {
		return false
	}
	all := int32(len(ph.folded))
	for i, at := start+len(ph.folded), all; ; i++ {
		if at == all {
			if ph.edges(folded[:i-len(ph.folded)], folded[i:]) {
				return true
			}
			at = ph.border[at-1]
		}
		if i == len(folded) {
			return false
		}
		at = ph.next(at, folded[i])
	}
}

// edges reports whether the phrase has its edges between what stands before and after it.
func (ph Phrase) edges(before, after string) bool {
	left, _ := utf8.DecodeLastRuneInString(before)
	first, _ := utf8.DecodeRuneInString(ph.folded)
	last, _ := utf8.DecodeLastRuneInString(ph.folded)
	right, _ := utf8.DecodeRuneInString(after)
	return !joined(left, first) && (ph.begins || !joined(last, right))
}

// joined reports whether two characters beside each other are of one word.
func joined(a, b rune) bool {
	return inWord(a) && inWord(b) && !(together(a) && together(b)) || inWord(a) && unicode.Is(unicode.M, b)
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// together reports whether a script writes its words without blanks between them.
func together(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
