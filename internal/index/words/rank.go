package words

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

func sortMatches(m []Match) {
	slices.SortFunc(m, func(a, b Match) int { return strings.Compare(a.Term, b.Term) })
}

// Strangeness says how unlike a term is to a word that edits lead to, among terms of
// as many edits: 0 for slips of the hand and words that sound alike, more if the
// first letter is another one.
func Strangeness(word, term string) int {
	out := 1
	if swapped(word, term) || besideOnKeyboard(word, term) || Sound(word) == Sound(term) {
		out = 0
	}
	a, _ := utf8.DecodeRuneInString(word)
	b, _ := utf8.DecodeRuneInString(term)
	if a != b {
		out += 2
	}
	return out
}

// differing cuts what two words have in common at both ends.
func differing(a, b string) (string, string) {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			break
		}
		a, b = a[n:], b[m:]
	}
	for a != "" && b != "" {
		x, n := utf8.DecodeLastRuneInString(a)
		y, m := utf8.DecodeLastRuneInString(b)
		if x != y {
			break
		}
		a, b = a[:len(a)-n], b[:len(b)-m]
	}
	return a, b
}

// swapped reports whether two neighbours are swapped.
func swapped(a, b string) bool {
	a, b = differing(a, b)
	if len(a) != len(b) || utf8.RuneCountInString(a) != 2 {
		return false
	}
	_, n := utf8.DecodeRuneInString(a)
	return a[:n] == b[len(b)-n:] && a[n:] == b[:len(b)-n]
}

// keyboard has the rows of the keys in order; each key has those of the next row
// half a key further right.
var keyboard = [...]string{"1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm"}

// besideOnKeyboard reports whether one letter is replaced by one whose key lies
// beside its own.
func besideOnKeyboard(a, b string) bool {
	a, b = differing(a, b)
	if len(a) != 1 || len(b) != 1 {
		return false
	}
	ra, ca := key(a[0])
	rb, cb := key(b[0])
	if ra < 0 || rb < 0 {
		return false
	}
	if ra > rb {
		ra, ca, rb, cb = rb, cb, ra, ca
	}
	switch rb - ra {
	case 0:
		return cb-ca == 1 || ca-cb == 1
	case 1:
		return cb == ca || cb == ca-1
	}
	return false
}

func key(c byte) (row, column int) {
	for row, keys := range keyboard {
		if i := strings.IndexByte(keys, c); i >= 0 {
			return row, i
		}
	}
	return -1, 0
}

// sounds are replaced from left to right, the first that fits.
var sounds = [...]struct{ from, to string }{
	{"sch", "x"}, {"tch", "x"}, {"ough", "f"}, {"ph", "f"}, {"gh", ""}, {"wh", "w"}, {"sh", "x"}, {"ch", "x"}, {"th", "t"}, {"ck", "k"}, {"dg", "j"}, {"qu", "k"},
	{"ce", "s"}, {"ci", "s"}, {"cy", "s"}, {"c", "k"}, {"q", "k"}, {"x", "ks"}, {"z", "s"}, {"v", "f"}, {"ge", "j"}, {"gi", "j"}, {"gy", "j"},
	{"d", "t"}, {"b", "p"},
}

// Sound is a short key that words share which sound alike in English: consonants by
// their kind, without repeats, and vowels only in front, all as one. It is coarse on
// purpose: it orders words that are near anyway. Of letters beyond ASCII it keeps all.
func Sound(word string) string {
	for _, silent := range [...]string{"kn", "wr", "gn", "ps"} {
		if strings.HasPrefix(word, silent) {
			word = word[1:]
			break
		}
	}
	out := make([]byte, 0, len(word))
	add := func(s string) {
		for i := range len(s) {
			if len(out) == 0 || out[len(out)-1] != s[i] {
				out = append(out, s[i])
			}
		}
	}
next:
	for i := 0; i < len(word); {
		for _, s := range sounds {
			if strings.HasPrefix(word[i:], s.from) {
				add(s.to)
				if i += len(s.from); len(s.from) == 2 && s.from[1] != 'h' && strings.IndexByte("eiy", s.from[1]) >= 0 {
					i-- // the vowel is one of its own
				}
				continue next
			}
		}
		switch c := word[i]; {
		case strings.IndexByte("aeiouyhw", c) < 0:
			add(word[i : i+1])
		case i == 0:
			add("a")
		}
		i++
	}
	return string(out)
}

// Split is a word as two known ones.
type Split struct{ First, Second string }

// MinSplit is the least number of characters of each half of a split word.
const MinSplit = 3

// maxSplit bounds the bytes of a word that is split, and with them the work.
const maxSplit = 64

// Splits appends the pairs of terms that a word is glued of, by where it is cut. term
// gives the term of a half, "" if it has none.
func (v *Vocabulary) Splits(dst []Split, word string, term func(half string) string) []Split {
	if len(word) > maxSplit {
		return dst
	}
	n, at := utf8.RuneCountInString(word), 0
	for i := range word {
		if at >= MinSplit && n-at >= MinSplit {
			a, b := term(word[:i]), term(word[i:])
			if a != "" && b != "" && v.Has(a) && v.Has(b) {
				dst = append(dst, Split{a, b})
			}
		}
		at++
	}
	return dst
}

// CompareLikeness orders terms that one word may have been meant for when nothing
// else tells them apart: the nearer in length first, then by their bytes.
func CompareLikeness(word, a, b string) int {
	off := func(t string) int {
		d := len(t) - len(word)
		return max(d, -d)
	}
	return cmp.Or(cmp.Compare(off(a), off(b)), strings.Compare(a, b))
}
