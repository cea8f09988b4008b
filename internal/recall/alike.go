package recall

import (
	"math"
	"slices"
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

// wordsOf counts words in small letters. A sign that may change what a text says belongs to the word at
// which it stands, or to the next one: C++ is not C#, -5 not 5, and > 30 s not < 30 s. What only parts
// texts, such as a comma or a bracket, belongs to none.
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
	text := append([]rune(strings.ToLower(s)), 0)
	for i, r := range text[:len(text)-1] {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			word = append(word, r)
			end()
		case wordly(r), sign(word, r, text[i+1]):
			word = append(word, r)
		case unicode.IsSpace(r) && !slices.ContainsFunc(word, wordly): // a sign by itself
		default:
			end()
		}
	}
	end()
	return all
}

func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// sign reports whether a character that is no letter belongs to the word that it stands behind, or to
// one that begins with it.
func sign(word []rune, r, next rune) bool {
	last := rune(0)
	if len(word) > 0 {
		last = word[len(word)-1]
	}
	switch r {
	case '#', '%', '‰', '＃', '％':
		return true
	case '-', '–', '－': // -5, and --force, but not well-kept
		return !wordly(last) || !wordly(next)
	case '.': // 1.5, and .env
		return wordly(next)
	case '!': // !ready, and !=
		return !wordly(last) && wordly(next) || next == '='
	case ',', ':', '/': // 1,5, and 10:30
		return unicode.IsDigit(last) && unicode.IsDigit(next)
	case '\'', '’': // can't
		return unicode.IsLetter(last) && unicode.IsLetter(next)
	}
	return unicode.In(r, unicode.Sm, unicode.Sc, unicode.So)
}
