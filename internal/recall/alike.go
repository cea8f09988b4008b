package recall

import (
	"math"
	"strings"
	"unicode"
)

// Nearly is the similarity from which two texts say the same.
const Nearly = 0.95

// Alike is the cosine of the words, and pairs of words, of two texts, as often as they stand
// in each; a Chinese character is a word.
func Alike(a, b string) float64 { return wordsOf(a).alike(wordsOf(b)) }

// words is how often each word, and each pair of words, stands in a text.
type words map[string]float64

func (x words) alike(y words) float64 {
	var dot, xx, yy float64
	for w, n := range x {
		dot += n * y[w]
		xx += n * n
	}
	for _, n := range y {
		yy += n * n
	}
	if dot == 0 {
		return 0
	}
	return dot / math.Sqrt(xx*yy)
}

// covers reports whether a text says all that another one says, in nearly the same words: a word that
// only the other has, such as a name, a number or a "not", may be what it is there for.
func (x words) covers(y words) bool {
	if x.alike(y) < Nearly {
		return false
	}
	for w := range y {
		if !strings.Contains(w, " ") && x[w] == 0 {
			return false
		}
	}
	return true
}

func wordsOf(s string) words {
	all := words{}
	before, word := "", []rune{}
	end := func() {
		if len(word) > 0 {
			all[string(word)]++
			all[before+" "+string(word)]++
			before, word = string(word), word[:0]
		}
	}
	for _, r := range strings.ToLower(s) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			word = append(word, r)
			end()
		case unicode.IsLetter(r), unicode.IsDigit(r):
			word = append(word, r)
		default:
			end()
		}
	}
	end()
	return all
}
