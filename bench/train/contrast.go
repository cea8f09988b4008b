package main

import (
	"log"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

// pair is two texts that belong together, as tokens.
type pair struct{ A, B []int32 }

// contrast tunes the vectors so that the sum of the tokens of a text is nearer to
// that of its partner than to those of the other pairs of a batch (InfoNCE, van den
// Oord et al. 2018, in both directions), by stochastic gradients with one adaptive
// rate a row (Adagrad).
type contrast struct {
	dims    int
	rows    []float32
	squares []float32 // sums of mean squared gradients, one a row
	options contrastOptions
	r       *rand.Rand
	// of one batch
	a, b            side
	scores          []float32
	byRow, byColumn []float32
	losses          []float64
}

type contrastOptions struct {
	batch       int
	epochs      int
	temperature float64
	rate        float64
	dropout     float64
	stretch     int     // neighbouring pairs that stay together
	cloze       float64 // share of the batches
}

// side is one of the two texts of each pair of a batch.
type side struct {
	ids     [][]int32
	keys    []uint64
	unit    []float32 // the texts' vectors, of length 1
	lengths []float32
	grad    []float32
}

// batch is some pairs of one group. Of a cloze batch both texts are made of the first
// one by leaving out tokens: which of its words tell a text from others is what a
// query of few words needs.
type batch struct {
	group string
	pairs []int
	cloze bool
}

func (c *contrast) train(groups map[string][]pair, repeat func(string) float64) {
	c.squares = make([]float32, len(c.rows)/c.dims)
	for epoch := range c.options.epochs {
		batches := c.batches(groups, repeat)
		loss, recent, n := 0.0, 0.0, 0
		for i, b := range batches {
			done := (float64(epoch) + float64(i)/float64(len(batches))) / float64(c.options.epochs)
			l := c.step(groups[b.group], b, float32(c.options.rate*max(0.05, 1-done)))
			loss, recent, n = loss+l, recent+l, n+1
			if n == 1000 {
				log.Printf("contrast: epoch %d, %d of %d batches, loss %.3f", epoch+1, i+1, len(batches), recent/float64(n))
				recent, n = 0, 0
			}
		}
		log.Printf("contrast: epoch %d, %d batches, loss %.3f", epoch+1, len(batches), loss/float64(max(1, len(batches))))
	}
}

// batches cuts the groups into batches of stretches of neighbouring pairs: those
// are of one document, and so the hardest to tell apart.
func (c *contrast) batches(groups map[string][]pair, repeat func(string) float64) []batch {
	var out []batch
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		n := int(float64(len(groups[name])) * repeat(name))
		var order []int
		for len(order) < n {
			stretches := (len(groups[name]) + c.options.stretch - 1) / c.options.stretch
			for _, s := range c.r.Perm(stretches) {
				for i := s * c.options.stretch; i < min((s+1)*c.options.stretch, len(groups[name])); i++ {
					order = append(order, i)
				}
			}
		}
		order = order[:n]
		for len(order) >= min(32, len(groups[name])) && len(order) > 1 {
			k := min(c.options.batch, len(order))
			out = append(out, batch{name, order[:k], c.r.Float64() < c.options.cloze})
			order = order[k:]
		}
	}
	c.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// step learns from one batch and returns its mean loss.
func (c *contrast) step(pairs []pair, b batch, rate float32) float64 {
	n := len(b.pairs)
	c.a.reset(n, c.dims)
	c.b.reset(n, c.dims)
	for i, k := range b.pairs {
		first, second, lost := pairs[k].A, pairs[k].B, c.options.dropout
		if b.cloze {
			second, lost = first, 0.5
		}
		c.a.set(i, first, c.thin(first, lost), c.rows, c.dims)
		c.b.set(i, second, c.thin(second, lost), c.rows, c.dims)
	}
	if cap(c.scores) < n*n {
		c.scores = make([]float32, n*n)
	}
	s := c.scores[:n*n]
	scale := float32(1 / c.options.temperature)
	spread(n, func(i int) {
		x := c.a.unit[i*c.dims:][:c.dims]
		for j := range n {
			s[i*n+j] = scale * dot(x, c.b.unit[j*c.dims:][:c.dims])
			if i != j && (c.a.keys[i] == c.a.keys[j] || c.b.keys[i] == c.b.keys[j] || c.a.keys[i] == c.b.keys[j]) {
				s[i*n+j] = float32(math.Inf(-1)) // the same text again is no negative
			}
		}
	})
	loss := c.softmax(s, n)
	spread(n, func(i int) {
		for j := range n {
			if g := s[i*n+j]; g > gradientFloor || g < -gradientFloor {
				axpy(g*scale, c.b.unit[j*c.dims:][:c.dims], c.a.grad[i*c.dims:][:c.dims])
			}
			if g := s[j*n+i]; g > gradientFloor || g < -gradientFloor {
				axpy(g*scale, c.a.unit[j*c.dims:][:c.dims], c.b.grad[i*c.dims:][:c.dims])
			}
		}
	})
	for i := range n {
		c.apply(&c.a, i, rate)
		c.apply(&c.b, i, rate)
	}
	return loss / float64(n)
}

// gradientFloor is what is too small to be added.
const gradientFloor = 2e-4

// softmax replaces the scores by the gradients of the loss, the mean of that by rows
// and that by columns, and returns the loss.
func (c *contrast) softmax(s []float32, n int) float64 {
	if cap(c.byRow) < n*n {
		c.byRow, c.byColumn, c.losses = make([]float32, n*n), make([]float32, n*n), make([]float64, n)
	}
	spread(n, func(i int) {
		row, column := c.byRow[i*n:][:n], c.byColumn[i*n:][:n]
		copy(row, s[i*n:])
		for j := range n {
			column[j] = s[j*n+i]
		}
		own := s[i*n+i]
		c.losses[i] = (shares(row, own) + shares(column, own)) / 2
	})
	loss := 0.0
	for i := range n {
		loss += c.losses[i]
		for j := range n {
			s[i*n+j] = (c.byRow[i*n+j] + c.byColumn[j*n+i]) / 2
		}
		s[i*n+i]--
	}
	return loss
}

// shares replaces scores by the softmax of them and returns the negative logarithm
// of the share that the score own has.
func shares(v []float32, own float32) float64 {
	top := float32(math.Inf(-1))
	for _, x := range v {
		top = max(top, x)
	}
	sum := 0.0
	for j, x := range v {
		e := float32(0)
		if x > top-20 {
			e = float32(math.Exp(float64(x - top)))
		}
		v[j] = e
		sum += float64(e)
	}
	inverse := float32(1 / sum)
	for j := range v {
		v[j] *= inverse
	}
	return math.Log(sum) - float64(own-top)
}

// spread calls f with 0..n-1, each once, on two processors. What f writes depends on
// its argument alone, so that the result does not depend on who was first.
func spread(n int, f func(int)) {
	var wg sync.WaitGroup
	for part := range 2 {
		wg.Go(func() {
			for i := part * n / 2; i < (part+1)*n/2; i++ {
				f(i)
			}
		})
	}
	wg.Wait()
}

// thin drops some tokens, so that no pair hangs on one of them.
func (c *contrast) thin(ids []int32, lost float64) []int32 {
	if lost == 0 || len(ids) < 3 {
		return ids
	}
	out := make([]int32, 0, len(ids))
	for _, id := range ids {
		if c.r.Float64() >= lost {
			out = append(out, id)
		}
	}
	if len(out) == 0 {
		return ids
	}
	return out
}

func (s *side) reset(n, dims int) {
	if len(s.ids) < n {
		s.ids, s.keys, s.lengths = make([][]int32, n), make([]uint64, n), make([]float32, n)
		s.unit, s.grad = make([]float32, n*dims), make([]float32, n*dims)
	}
	clear(s.unit[:n*dims])
	clear(s.grad[:n*dims])
}

// set makes text i the sum of the rows of ids; whole is the text before any were left
// out, to know it again.
func (s *side) set(i int, whole, ids []int32, rows []float32, dims int) {
	u := s.unit[i*dims:][:dims]
	key := uint64(len(whole))
	for _, id := range whole {
		key = key*0x9e3779b97f4a7c15 + uint64(id)
	}
	for _, id := range ids {
		axpy(1, rows[int(id)*dims:][:dims], u)
	}
	s.ids[i], s.keys[i] = ids, key
	length := float32(math.Sqrt(float64(dot(u, u)))) + 1e-9
	for k := range u {
		u[k] /= length
	}
	s.lengths[i] = length
}

// apply moves the rows of the tokens of text i against its gradient.
func (c *contrast) apply(s *side, i int, rate float32) {
	u, g := s.unit[i*c.dims:][:c.dims], s.grad[i*c.dims:][:c.dims]
	axpy(-dot(u, g), u, g) // the length of the vector does not count
	square := dot(g, g) / (s.lengths[i] * s.lengths[i])
	for _, id := range s.ids[i] {
		c.squares[id] += square / float32(c.dims)
		step := rate / (float32(math.Sqrt(float64(c.squares[id]))) + 1e-6) / s.lengths[i]
		axpy(-step, g, c.rows[int(id)*c.dims:][:c.dims])
	}
}
