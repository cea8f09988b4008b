package builtin

import (
	"math/bits"
	"unicode/utf8"

	"mneme/internal/text"
)

// The weights of the features; a plain English word is 1024. They were set on pairs
// of sentences judged for similarity and on questions to long chats.
const (
	weightWord    = 1024
	weightCommon  = 716
	weightStop    = 100
	weightNumber  = 1700
	weightWhole   = 512
	weightEmoji   = 1024
	weightPair    = 716  // two characters of a script without spaces
	weightOne     = 1300 // one such character
	weightOneStop = 225
	weightDull    = 100 // a pair with a function character
)

// In how many dimensions a feature is written, each with a sign of its own. More
// than one makes it less likely that two features collide in all; the length
// a feature has in the sum is its weight times the root of this number.
const (
	dimsWord      = 4
	dimsCharacter = 2
)

// gramWeights are the shares, in 1/1024 of the word's weight, of all its n-grams of
// length 3, 4 and 5 together (as a vector's length: n grams have 1/sqrt(n) each).
var gramWeights = [...]int64{3: 274, 4: 350, 5: 700}

// inverseRoots holds 256/sqrt(n).
var inverseRoots = [...]int64{0, 256, 181, 148, 128, 114, 105, 97, 91, 85, 81, 77, 74, 71, 68, 66,
	64, 62, 60, 59, 57, 56, 55, 53, 52, 51, 50, 49, 48, 48, 47, 46, 45}

// frequencies holds 256 (1 + ln n), the weight of a feature that comes n times; more
// count as the last.
var frequencies = [...]int64{0, 256, 433, 537, 611, 668, 715, 754, 788, 818, 845, 870, 892, 913, 932, 949, 966}

// maxWordGrams is the longest word, in bytes, that has n-grams.
const maxWordGrams = 40

// Namespaces of hashed features.
const (
	spaceTerm  = 'w'
	spaceOne   = 'c'
	spaceGrams = 'g'
)

// feature is something counted in a text: a term, a character, or, if word is not
// empty, the n-grams of that word.
type feature struct {
	hash   uint64
	weight int64
	count  int32
	dims   int32
	word   string
}

// embedder gathers the features of one text and adds them up.
type embedder struct {
	table table
	sums  []int64
}

// collect gathers the features of a text's words.
func (e *embedder) collect(words []text.Word) {
	lastEnd := 0 // the characters before it are counted already
	for _, w := range words {
		switch w.Kind {
		case text.KindGram:
			e.characters(w, lastEnd)
			lastEnd = w.End
		case text.KindStop:
			e.term(w.Term, weightStop, dimsWord)
		case text.KindWhole:
			e.term(w.Term, weightWhole, dimsWord)
		case text.KindNumber:
			e.term(w.Term, weightNumber, dimsWord)
		case text.KindEmoji:
			e.term(w.Term, weightEmoji, dimsWord)
		default:
			weight := int64(weightWord)
			if isCommon(w.Term) {
				weight = weightCommon
			}
			e.term(w.Term, weight, dimsWord)
			if len(w.Folded) <= maxWordGrams {
				e.table.add(feature{hash: hash(spaceGrams, w.Folded), weight: weight, word: w.Folded})
			}
		}
	}
}

func (e *embedder) term(term string, weight int64, dims int) {
	e.table.add(feature{hash: hash(spaceTerm, term), weight: weight, dims: int32(dims)})
}

// characters adds a pair of characters and those of them that begin at or after
// from, which no pair before has had.
func (e *embedder) characters(w text.Word, from int) {
	dull := 0
	for i := 0; i < len(w.Term); {
		r, n := utf8.DecodeRuneInString(w.Term[i:])
		weight := int64(weightOne)
		if isFunctionCharacter(r) {
			weight = weightOneStop
			dull++
		}
		if i > 0 || w.Start >= from {
			e.table.add(feature{hash: hash(spaceOne, w.Term[i:i+n]), weight: weight, dims: dimsCharacter})
		}
		i += n
	}
	switch dull {
	case 0:
		e.term(w.Term, weightPair, dimsCharacter)
	default:
		e.term(w.Term, int64(weightDull/dull), dimsCharacter)
	}
}

// accumulate adds each feature to its dimensions, with its signs. Integers add up
// the same in any order.
func (e *embedder) accumulate() {
	for _, f := range e.table.features {
		value := f.weight * frequencies[min(int(f.count), len(frequencies)-1)]
		if f.word != "" {
			e.wordGrams(f.word, value)
			continue
		}
		for h := f.hash; f.dims > 0; f.dims-- {
			e.put(h, value)
			h = mix(h + 0x9e3779b97f4a7c15)
		}
	}
}

// put adds value to the dimension of h, with its sign.
func (e *embedder) put(h uint64, value int64) {
	dim, _ := bits.Mul64(h, uint64(len(e.sums)))
	sign := int64(h&1)*-2 + 1
	e.sums[dim] += sign * value
}

// wordGrams adds the character n-grams of a word between marks for its ends.
func (e *embedder) wordGrams(word string, value int64) {
	var buf [maxWordGrams + 2]byte
	buf[0] = '^'
	n := 1 + copy(buf[1:], word)
	buf[n] = '$'
	b := buf[:n+1]
	var each [len(gramWeights)]int64
	for n := 3; n < len(each) && n <= len(b); n++ {
		each[n] = value * gramWeights[n] / 1024 * inverseRoots[min(len(b)-n+1, len(inverseRoots)-1)] / 256
	}
	for i := 0; i+3 <= len(b); i++ {
		h := fnv(fnv(fnvStart, b[i]), b[i+1])
		for n := 3; n < len(each) && i+n <= len(b); n++ {
			h = fnv(h, b[i+n-1])
			e.put(mix(h), each[n])
		}
	}
}

const fnvStart = 14695981039346656037

// fnv is one step of FNV-1a.
func fnv(h uint64, c byte) uint64 { return (h ^ uint64(c)) * 1099511628211 }

// hash is FNV-1a of the namespace and the bytes, mixed.
func hash(space byte, s string) uint64 {
	h := fnv(fnvStart, space)
	for i := 0; i < len(s); i++ {
		h = fnv(h, s[i])
	}
	return mix(h)
}

// mix is the finaliser of SplitMix64 (Steele et al. 2014).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
