package text

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/unicode/norm"
)

// unicode analyses src[i:end], a field with characters outside ASCII.
func (a *analyzer) unicode(i, end int) {
	for i < end && !a.done {
		r, _ := utf8.DecodeRuneInString(a.src[i:end])
		j := i
		if isGram(r) {
			for j < end {
				r, n := utf8.DecodeRuneInString(a.src[j:end])
				if !isGram(r) && !extends(r) {
					break
				}
				j += n
			}
			a.grams(i, j)
		} else {
			for j < end {
				r, n := utf8.DecodeRuneInString(a.src[j:end])
				if isGram(r) {
					break
				}
				j += n
			}
			a.mixed(i, j)
		}
		i = j
	}
}

// mixed analyses src[i:end], which has no script without spaces. ASCII segments in
// a row go the ASCII way together, so that identifiers are seen.
func (a *analyzer) mixed(i, end int) {
	asciiFrom := -1
	segments := words.FromString(a.src[i:end])
	for segments.Next() && !a.done {
		from, to := i+segments.Start(), i+segments.End()
		seg := a.src[from:to]
		if isASCII(seg) {
			if asciiFrom < 0 {
				asciiFrom = from
			}
			continue
		}
		if asciiFrom >= 0 {
			a.ascii(asciiFrom, from)
			asciiFrom = -1
		}
		a.segment(seg, from, to)
	}
	if asciiFrom >= 0 && !a.done {
		a.ascii(asciiFrom, end)
	}
}

// segment emits one word of Annex 29 that is not ASCII.
func (a *analyzer) segment(seg string, from, to int) {
	hasWord, joined := false, false
	for _, r := range seg {
		hasWord = hasWord || unicode.IsLetter(r) || unicode.IsNumber(r)
		joined = joined || r == '.' || r == '_' || r == ':'
	}
	switch {
	case hasWord && joined:
		a.joined(seg, from, to)
	case hasWord:
		l := lookup(seg)
		a.emit(l.term, l.folded, l.kind, from, to)
		a.pos++
	default:
		if e := emoji(seg); e != "" {
			a.emit(e, e, KindEmoji, from, to)
			a.pos++
		}
	}
}

// joined emits a word with inner points, colons or underscores whole and by part.
func (a *analyzer) joined(seg string, from, to int) {
	if len(seg) <= maxWhole {
		name := Fold(seg)
		a.emit(name, name, KindWhole, from, to)
	}
	for i := 0; i < len(seg); {
		j := i
		for j < len(seg) && seg[j] != '.' && seg[j] != '_' && seg[j] != ':' {
			j++
		}
		if j > i {
			l := lookup(seg[i:j])
			a.emit(l.term, l.folded, l.kind, from+i, from+j)
			a.pos++
		}
		i = j + 1
	}
}

// grams emits overlapping pairs of the characters in src[i:end], or the one there
// is. Digits right before make a pair with the first character, and a date if it
// counts years, months or days.
func (a *analyzer) grams(i, end int) {
	first := gramEnd(a.src, i, end)
	unit := gram(a.src[i:first])
	counted := a.numEnd == i && i > 0
	if counted {
		a.counted(unit, i, first)
	}
	if first >= end {
		if !counted {
			a.emit(unit, unit, KindGram, i, end)
			a.pos++
		}
		return
	}
	for prev, from, at := unit, i, first; at < end && !a.done; {
		to := gramEnd(a.src, at, end)
		next := gram(a.src[at:to])
		pair := a.src[from:to]
		if len(pair) != len(prev)+len(next) || pair[:len(prev)] != prev || pair[len(prev):] != next {
			pair = prev + next
		}
		a.emit(pair, pair, KindGram, from, to)
		a.pos++
		prev, from, at = next, at, to
	}
}

// counted emits a number with the counter after it, and the month's name.
func (a *analyzer) counted(unit string, i, end int) {
	start := i - 1
	for start > 0 && isDigit(a.src[start-1]) {
		start--
	}
	pair := a.num + unit
	a.emit(pair, pair, KindGram, start, end)
	if unit == "月" || unit == "월" {
		if m := monthTerm(a.num); m != "" {
			a.emit(m, m, KindWord, start, end)
		}
	}
	a.pos++
}

// gramEnd returns the end of the character at i with the marks that follow it.
func gramEnd(s string, i, end int) int {
	_, n := utf8.DecodeRuneInString(s[i:end])
	i += n
	for i < end {
		r, n := utf8.DecodeRuneInString(s[i:end])
		if !extends(r) {
			return i
		}
		i += n
	}
	return i
}

// gram normalises one character with its marks.
func gram(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == len(s) && (r >= 0x3400 && r <= 0x9fff || r >= 0x3041 && r <= 0x30fe || r >= 0xac00 && r <= 0xd7a3) {
		return s
	}
	return norm.NFKC.String(s)
}

// extends reports whether r belongs to the character before it: marks, half-width
// voicing, the vowels and finals of decomposed Hangul.
func extends(r rune) bool {
	if r < 0x300 || r >= 0x3400 && r <= 0xfaff {
		return false
	}
	return r >= 0x1160 && r <= 0x11ff || r == 0xff9e || r == 0xff9f || unicode.In(r, unicode.Mn, unicode.Mc)
}

// IsGram reports whether a term is a bigram or a character of a script without spaces,
// and so perhaps not a word.
func IsGram(term string) bool {
	r, _ := utf8.DecodeRuneInString(term)
	return isGram(r)
}

// isGram reports whether r belongs to a script that is indexed by bigrams: Chinese,
// Japanese, Korean, Yi, Thai, Lao, Burmese, Khmer.
func isGram(r rune) bool {
	switch {
	case r < 0x0e01:
		return false
	case r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7ff, r >= 0x3400 && r <= 0x4dbf:
		return true
	case r <= 0x0e3a, r >= 0x0e40 && r <= 0x0e4e, // Thai
		r >= 0x0e80 && r <= 0x0ece,                                                         // Lao
		r >= 0x1000 && r <= 0x103f, r >= 0x1050 && r <= 0x108f, r >= 0x1100 && r <= 0x11ff, // Burmese, Jamo
		r >= 0x1780 && r <= 0x17d3,                             // Khmer
		r >= 0x3005 && r <= 0x3007, r >= 0x3041 && r <= 0x309f, // Hiragana
		r >= 0x30a1 && r <= 0x30ff && r != 0x30fb, // Katakana without the middle dot
		r >= 0x3105 && r <= 0x312f, r >= 0x3131 && r <= 0x318e, r >= 0x31a0 && r <= 0x31bf,
		r >= 0x31f0 && r <= 0x31ff, r >= 0xa000 && r <= 0xa48c, r >= 0xa960 && r <= 0xa97f,
		r >= 0xf900 && r <= 0xfaff, r >= 0xff66 && r <= 0xff9f, r >= 0xffa0 && r <= 0xffdc,
		r >= 0x1b000 && r <= 0x1b16f, r >= 0x20000 && r <= 0x3ffff:
		return true
	}
	return false
}

// emoji returns the emoji that seg holds, without variation selectors and skin
// tones, or "".
func emoji(seg string) string {
	r, n := utf8.DecodeRuneInString(seg)
	if !isEmoji(r) {
		return ""
	}
	if n == len(seg) {
		return seg
	}
	out := make([]rune, 0, 8)
	for _, r := range seg {
		if r != 0xfe0e && r != 0xfe0f && !(r >= 0x1f3fb && r <= 0x1f3ff) {
			out = append(out, r)
		}
	}
	return string(out)
}

func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2600 && r <= 0x27bf || r >= 0x2b00 && r <= 0x2bff ||
		r >= 0x231a && r <= 0x231b || r >= 0x23e9 && r <= 0x23fa
}
