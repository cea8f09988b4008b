package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold brings s to the form in which words are compared: NFKC, full Unicode case
// folding, typographic apostrophes made plain, and accents of Latin and Greek
// letters dropped. Marks of other scripts carry the vowel or the consonant
// and stay.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	// Folding may undo the normal form (and the other way round): U+0345 and a few
	// compatibility letters need the second round.
	f := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(s)))
	if isASCII(f) {
		return f
	}
	f = norm.NFC.String(strings.Map(plainLetter, dropAccents(norm.NFD.String(f))))
	if strings.ContainsAny(f, "æœþ") {
		f = ligatures.Replace(f)
	}
	return f
}

// ligatures are the Latin letters that stand for two. The replacer is immutable.
var ligatures = strings.NewReplacer("æ", "ae", "œ", "oe", "þ", "th")

// dropAccents removes combining marks of the general block after a Latin or Greek
// letter of the decomposed text d.
func dropAccents(d string) string {
	var b strings.Builder
	b.Grow(len(d))
	foldable := false
	for _, r := range d {
		if r >= 0x300 && r <= 0x36f {
			if foldable {
				continue
			}
		} else {
			foldable = r < utf8.RuneSelf || unicode.In(r, unicode.Latin, unicode.Greek)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// plainLetter maps Latin letters whose stroke or hook is no combining mark, the
// apostrophes, and drops what is invisible inside a word.
func plainLetter(r rune) rune {
	switch r {
	case '’', '‘', 'ʼ', '＇':
		return '\''
	case 'ø':
		return 'o'
	case 'ł':
		return 'l'
	case 'đ', 'ð':
		return 'd'
	case 'ħ':
		return 'h'
	case 'ı':
		return 'i'
	case 'ς':
		return 'σ'
	case 0x00ad, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2060, 0xfeff, 0x0640:
		return -1
	}
	return r
}
