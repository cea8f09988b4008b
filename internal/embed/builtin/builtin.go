// Package builtin embeds text without any model: signed feature hashing of words,
// of character n-grams and of Chinese, Japanese and Korean characters into
// a fixed number of dimensions (Weinberger et al. 2009, "Feature Hashing for
// Large Scale Multitask Learning", section 2; the n-grams of words follow
// Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information",
// section 3.2, with hashes in the place of learned vectors).
//
// It knows no synonyms: texts are near if they share words, parts of words or
// characters. It is the embedder that is always there.
//
// Invariants: Embed is a function of its text, of Version and of
// text.AnalyzerVersion alone. It uses integers only, so every processor gives the
// same bytes and they may enter replicated state.
//
// Not its job: chunking, storing, comparing; models and networks.
package builtin

import (
	"math"
	"math/bits"
	"sync"

	"mneme/internal/text"
)

const (
	// Dimensions is the length of a vector.
	Dimensions = 384
	// Version numbers the features, weights and hashes. Any change to the bytes of any
	// vector needs a new number.
	Version = 1
	// Name names the embedder as a model.
	Name = "hash"
	// Scale is the length of a vector, up to rounding.
	Scale = 127
)

// Embed writes the vector of the texts, one after the other with white space between
// them, to dst, whose length must be Dimensions: Scale times the unit vector, rounded.
// Texts without any word give the zero vector. It keeps nothing of dst and may be
// called from many goroutines at once.
func Embed(dst []int8, texts ...text.Analysis) {
	if len(dst) != Dimensions {
		panic("builtin: Embed needs a vector of Dimensions")
	}
	var sums [Dimensions]int64
	Sums(sums[:], texts...)
	Quantise(dst, sums[:])
}

// embedders keeps embedders for reuse: they are too large to be on the stack.
var embedders = sync.Pool{New: func() any { return new(embedder) }}

// Sums adds the weighted features of texts to sums, hashed into as many dimensions as
// it has: what Embed scales and rounds, for another model to have a part of it.
func Sums(sums []int64, texts ...text.Analysis) {
	e := embedders.Get().(*embedder)
	defer embedders.Put(e)
	e.sums = sums
	e.table.init()
	for _, t := range texts {
		e.collect(t.Words)
	}
	e.accumulate()
}

// Float writes q, scaled to length 1, to dst, for searching in memory. Both have
// one length; the zero vector stays zero. The float values are for scores only
// and never enter replicated state.
func Float(dst []float32, q []int8) {
	if len(dst) != len(q) {
		panic("builtin: Float needs two vectors of one length")
	}
	sum := 0
	for _, v := range q {
		sum += int(v) * int(v)
	}
	if sum == 0 {
		clear(dst)
		return
	}
	length := math.Sqrt(float64(sum))
	for i, v := range q {
		dst[i] = float32(float64(v) / length)
	}
}

// Quantise writes sums to dst, scaled to length Scale and rounded half away from zero;
// both have one length. Sums of zeros stay zero.
func Quantise(dst []int8, sums []int64) {
	top := uint64(0)
	for _, v := range sums {
		top |= uint64(max(v, -v))
	}
	// 24 bits a dimension: times Scale they fit in 32, where division is quick.
	shift := max(0, bits.Len64(top)-24)
	sum := uint64(0)
	for _, v := range sums {
		v = max(v, -v) >> shift
		sum += uint64(v * v)
	}
	if sum == 0 {
		clear(dst)
		return
	}
	length := uint32(Root(sum))
	for i, v := range sums {
		n := int32((uint32(max(v, -v)>>shift)*Scale + length/2) / length)
		if v < 0 {
			n = -n
		}
		dst[i] = int8(n)
	}
}

// Root returns the integer square root of x, rounded down (Newton's iteration from
// above).
func Root(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	r := uint64(1) << ((bits.Len64(x) + 1) / 2)
	for {
		n := (r + x/r) / 2
		if n >= r {
			return r
		}
		r = n
	}
}
