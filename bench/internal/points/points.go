// Package points draws the vectors that benchmarks of indexes run on.
//
// Its job: unit vectors in clusters, as models spread them, or of real texts; the same
// for the same seed, in memory or in a file; and others to ask with. Not its job: what
// the right answers are.
package points

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
)

// Kinds of vectors.
const (
	Clusters = "clusters" // around random centres
	Model    = "model"    // as a model of language spreads them
	Texts    = "texts"    // of real texts, asked for by parts of others
)

// Kinds lists them.
var Kinds = []string{Clusters, Model, Texts}

// Options of New.
type Options struct {
	Seed     uint64
	Dim      int
	Count    int      // that will be drawn, queries not counted
	Queries  int      // that will be drawn
	Clusters int      // centres
	Noise    float64  // length of the noise around a centre of length 1
	Texts    []string // where texts come from, as corpus.Options.Sources says
}

// Source draws vectors. One goroutine uses it.
type Source struct {
	About string // for people
	next  func() []float32
	query func() []float32
}

// New makes a source. Vectors of texts are those of the built-in model: any other Dim
// than its own, or too few texts on this machine, is an error.
func New(ctx context.Context, kind string, opt Options) (*Source, error) {
	rng := rand.New(rand.NewPCG(opt.Seed, 1))
	switch kind {
	case Clusters:
		next := clustered(rng, opt.Dim, opt.Clusters, opt.Noise)
		return &Source{About: fmt.Sprintf("unit vectors in %d clusters, noise %.3g", opt.Clusters, opt.Noise), next: next, query: next}, nil
	case Model:
		next := modelled(rng, opt.Dim)
		return &Source{About: "unit vectors of topics within topics, beside a direction that all share, their variance by a power law", next: next, query: next}, nil
	case Texts:
		return ofTexts(ctx, opt)
	}
	return nil, fmt.Errorf("unknown kind %q of vectors; there are %s", kind, strings.Join(Kinds, ", "))
}

// Take draws n vectors.
func (s *Source) Take(n int) [][]float32 { return take(s.next, n) }

// TakeQueries draws n vectors to ask with.
func (s *Source) TakeQueries(n int) [][]float32 { return take(s.query, n) }

func take(next func() []float32, n int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = next()
	}
	return out
}

// Write draws n vectors into a file, one after the other as little-endian
// float32, and replaces what was there.
func (s *Source) Write(path string, n int) error { return write(s.next, path, n) }

// WriteQueries is Write for vectors to ask with.
func (s *Source) WriteQueries(path string, n int) error { return write(s.query, path, n) }

func write(next func() []float32, path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write vectors: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	var row []byte
	for range n {
		row = row[:0]
		for _, x := range next() {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
		}
		if _, err := w.Write(row); err != nil {
			return fmt.Errorf("write vectors: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write vectors: %w", err)
	}
	return nil
}

// clustered draws around centres: a centre plus Gaussian noise of the given expected
// length, projected to the sphere.
func clustered(rng *rand.Rand, dim, clusters int, noise float64) func() []float32 {
	var centres [][]float32
	for range clusters {
		centres = append(centres, unit(gauss(rng, dim, 1)))
	}
	return func() []float32 {
		v := gauss(rng, dim, noise/math.Sqrt(float64(dim)))
		for j, x := range centres[rng.IntN(len(centres))] {
			v[j] += x
		}
		return unit(v)
	}
}

// Constants of modelled: vectors of models of language have a common direction and few
// strong ones (cosines of unrelated texts lie around 0.3, not 0), and texts are about
// topics, of which some have very many.
const (
	common    = 0.55 // length of the direction that all share
	decay     = 0.5  // the j-th direction has the deviation j^-decay
	topicLen  = 0.6  // of a topic's centre, beside the noise of 1 of a vector
	topics    = 200
	subTopics = 20 // of each topic
	skew      = 1.1
)

func modelled(rng *rand.Rand, dim int) func() []float32 {
	deviation, length := make([]float64, dim), 0.0
	for j := range deviation {
		deviation[j] = math.Pow(float64(j+1), -decay)
		length += deviation[j] * deviation[j]
	}
	for j := range deviation {
		deviation[j] /= math.Sqrt(length)
	}
	rng.Shuffle(dim, func(i, j int) { deviation[i], deviation[j] = deviation[j], deviation[i] })
	draw := func(length float64, to []float32) {
		for j := range to {
			to[j] += float32(rng.NormFloat64() * deviation[j] * length)
		}
	}
	shared := unit(gauss(rng, dim, 1))
	centres := make([][]float32, topics*subTopics)
	for t := range topics {
		topic := make([]float32, dim)
		draw(topicLen, topic)
		for s := range subTopics {
			centre := append([]float32{}, topic...)
			draw(topicLen, centre)
			centres[t*subTopics+s] = centre
		}
	}
	rng.Shuffle(len(centres), func(i, j int) { centres[i], centres[j] = centres[j], centres[i] })
	often := rand.NewZipf(rng, skew, 10, uint64(len(centres)-1))
	return func() []float32 {
		v := append([]float32{}, centres[often.Uint64()]...)
		draw(1, v)
		for j := range v {
			v[j] += common * shared[j]
		}
		return unit(v)
	}
}

func gauss(rng *rand.Rand, dim int, sigma float64) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64() * sigma)
	}
	return v
}

// unit scales v to length 1, in place.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	length := math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return v
}
