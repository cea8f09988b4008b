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
func Alike(a, b string) float64 { return NewWords(a).Alike(b) }

// Words are those of a text that is compared with several.
type Words struct {
	times map[string]*[2]float64 // a word, or a pair: how often it stands in the text, and in the other one
	sum   float64                // of the squares of the former
}

// NewWords counts the words of a text, and their pairs.
func NewWords(text string) *Words {
	w := &Words{times: map[string]*[2]float64{}}
	pairs(text, func(pair []byte) {
		n := w.times[string(pair)]
		if n == nil {
			n = new([2]float64)
			w.times[string(pair)] = n
		}
		n[0]++
	})
	for _, n := range w.times {
		w.sum += n[0] * n[0]
	}
	return w
}

// Alike is Alike of the text and another one. It is not safe for concurrent use.
func (w *Words) Alike(text string) float64 {
	for _, n := range w.times {
		n[1] = 0
	}
	others := map[string]float64{}
	pairs(text, func(pair []byte) {
		if n := w.times[string(pair)]; n != nil {
			n[1]++
		} else {
			others[string(pair)]++
		}
	})
	var dot, sum float64
	for _, n := range w.times {
		dot += n[0] * n[1]
		sum += n[1] * n[1]
	}
	for _, n := range others {
		sum += n * n
	}
	if dot == 0 {
		return 0
	}
	return dot / math.Sqrt(w.sum*sum)
}

// pairs yields the words, and pairs of words, of a text, in memory that is used again.
func pairs(text string, yield func(pair []byte)) {
	before := ""
	var pair []byte
	for _, w := range wordsOf(text) {
		pair = append(append(append(pair[:0], before...), ' '), w...)
		yield(pair)
		yield(pair[len(before)+1:])
		before = w
	}
}

// SaysSame reports whether two texts say the same but for how they are set.
func SaysSame(a, b string) bool { return gist(a) == gist(b) }

// gist is what a text says but for how it is set: its words in their order, or the text where it has none.
// Texts that differ in more may be each other's opposite, however alike they are: by a "not" of
// any language, a number, or two names that change places.
func gist(s string) string {
	if words := wordsOf(s); len(words) > 0 {
		return strings.Join(words, " ")
	}
	return s
}

// wordsOf are the words in small letters, in order. A sign that may change what a text says belongs to the word at
// which it stands, or to the next one: C++ is not C#, -5 not 5, and > 30 s not < 30 s; a question mark
// is a word. What only parts texts, such as a comma or a bracket, belongs to none.
func wordsOf(s string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, string(word))
			word = word[:0]
		}
	}
	text := append([]rune(strings.ToLower(s)), 0)
	for i, r := range text[:len(text)-1] {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana), slices.Contains(asks, r):
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

// asks are question marks.
var asks = []rune{'?', '？', '؟'}

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
