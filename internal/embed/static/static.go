// Package static embeds text by vectors of words that were learnt beforehand and
// are part of the program: what a text is about is the weighted sum of its words
// (Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"),
// here with vectors and weights tuned on pairs of texts that belong together. It
// knows English and Chinese, of software and of everyday life; docs/model-card.md
// says what it was trained on, and the program in the folder train makes the weights.
//
// A vector has two parts of fixed shares: the sum of the known words, and the hashed
// features of package builtin, so that identifiers, names and misspelt words, which
// no vocabulary has, count as well.
//
// Invariants: Embed is a function of its text, of Version and of
// text.AnalyzerVersion alone. It uses integers only, so every processor gives the
// same bytes and they may enter replicated state. Opening builds nothing: the
// weights are used in place.
//
// Not its job: chunking, storing, comparing; languages that it has not seen have
// the hashed part alone.
package static

import (
	_ "embed"
	"fmt"
	"math/bits"
	"sync"

	"mneme/internal/embed/builtin"
	"mneme/internal/embed/static/tokens"
	"mneme/internal/text"
)

const (
	// Dimensions is the length of a vector: semantic ones, then hashed ones.
	Dimensions = semantic + hashed
	// Version numbers the weights and everything else that a vector follows from.
	// Any change to the bytes of any vector needs a new number.
	Version = 1
	// Name names the embedder as a model.
	Name = "static-1"

	semantic = 192
	hashed   = 192
)

// The lengths of the two parts before the whole is scaled: what measured best over
// judged pairs of sentences and questions to long chats, of 0.8 to 3 to one.
const (
	semanticShare = 5
	hashedShare   = 6
)

//go:embed weights.bin
var weights []byte

// shipped is the model of the weights in the program.
var shipped = sync.OnceValue(func() *Model {
	m, err := Open(weights)
	if err != nil {
		panic(err) // a test opens them
	}
	return m
})

// Model is weights that can be used. It may be used concurrently.
type Model struct{ table table }

// Open uses weights in place: b must not change. It fails with ErrWeights if they are
// not of this package's form and size.
func Open(b []byte) (*Model, error) {
	t, err := parse(b)
	if err != nil {
		return nil, err
	}
	if t.dims != semantic {
		return nil, fmt.Errorf("%w: %d dimensions, not %d", ErrWeights, t.dims, semantic)
	}
	return &Model{table: t}, nil
}

// Embed writes the vector of the texts, one after the other with white space between
// them, to dst, whose length must be Dimensions: builtin.Scale times the unit vector,
// rounded. Texts without any word give the zero vector. It keeps nothing of dst and
// may be called from many goroutines at once.
func Embed(dst []int8, texts ...text.Analysis) { shipped().Embed(dst, texts...) }

// Known reports whether the program has a vector for a token: whether it is a stem or
// another word that texts of everyday life or of software hold often.
func Known(token string) bool { return shipped().table.find(Hash(token)) >= 0 }

// Reads reports whether a text is in a language that the program has seen, as far as that can be
// told, and it has vectors for most of the words, codes and function words aside: of a text in a language that it has not seen, or of names, a vector has
// the hashed part alone.
func Reads(a text.Analysis) bool {
	t := &shipped().table
	known := func(run string) bool { return t.find(Hash(run)) >= 0 }
	if a.Foreign() {
		return false
	}
	words, has := 0, 0
	tokens.Each(a, known, func(tok tokens.Token) {
		if tok.Kind == tokens.Word || tok.Kind == tokens.Run || tok.Kind == tokens.Character {
			words++
			if known(tok.Text) {
				has++
			}
		}
	})
	return words == 0 || 2*has > words
}

// Embed is the package's Embed with the weights of m.
func (m *Model) Embed(dst []int8, texts ...text.Analysis) {
	if len(dst) != Dimensions {
		panic("static: Embed needs a vector of Dimensions")
	}
	sums := sumsPool.Get().(*[Dimensions]int64)
	defer sumsPool.Put(sums)
	clear(sums[:])
	for _, t := range texts {
		m.add(t, sums[:semantic])
	}
	builtin.Sums(sums[semantic:], texts...)
	scale(sums[:semantic], semanticShare)
	scale(sums[semantic:], hashedShare)
	builtin.Quantise(dst, sums[:])
}

// sumsPool keeps sums for reuse: they are too large to be made for each text.
var sumsPool = sync.Pool{New: func() any { return new([Dimensions]int64) }}

// add adds the vectors of the known tokens of a text to sums.
func (m *Model) add(a text.Analysis, sums []int64) {
	to := (*[semantic]int64)(sums)
	known := func(run string) bool { return m.table.find(Hash(run)) >= 0 }
	tokens.Each(a, known, func(t tokens.Token) {
		row := m.table.find(Hash(t.Text))
		if row < 0 {
			return
		}
		addScaled(to, (*[semantic]byte)(m.table.vector(row)), m.table.scale(row))
	})
}

// addGo is addScaled on any processor. Four at a time take two thirds of the time of
// one at a time.
func addGo(sums *[semantic]int64, vector *[semantic]byte, scale int64) {
	for i := 0; i < semantic; i += 4 {
		sums[i] += scale * int64(int8(vector[i]))
		sums[i+1] += scale * int64(int8(vector[i+1]))
		sums[i+2] += scale * int64(int8(vector[i+2]))
		sums[i+3] += scale * int64(int8(vector[i+3]))
	}
}

// scale gives v the length share, in 2^20ths, or leaves it zero.
func scale(v []int64, share int64) {
	top := uint64(0)
	for _, x := range v {
		top |= uint64(max(x, -x))
	}
	// 24 bits a dimension: their squares add up in 64.
	down, up := max(0, bits.Len64(top)-24), max(0, 24-bits.Len64(top))
	sum := uint64(0)
	for i, x := range v {
		x = x >> down << up
		v[i] = x
		sum += uint64(x * x)
	}
	if sum == 0 {
		return
	}
	length := int64(builtin.Root(sum))
	for i, x := range v {
		v[i] = x * share << 20 / length
	}
}
