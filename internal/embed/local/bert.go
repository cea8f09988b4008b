package local

import "math"

// bert is an encoder of BERT's architecture (Devlin et al. 2018, after Vaswani
// et al. 2017): embeddings, then layers of self-attention and a feed-forward
// net, each followed by residual and layer normalisation. It is read-only.
type bert struct {
	hidden, heads, inner int
	epsilon              float64

	words, positions, kind []float32 // kind is that of a single sentence
	norm                   scaling
	layers                 []layer
	gate                   *gate
	kernels                kernelSet
}

type scaling struct{ weight, bias []float32 }

type layer struct {
	qkv, out       matrix // queries, keys and values side by side
	attentionNorm  scaling
	widen, narrow  matrix
	feedForwardEnd scaling
}

// span is a half-open range of rows: the tokens of one text.
type span struct{ from, to int }

// scratch holds the numbers of one run. It grows to the largest run; one
// goroutine uses it at a time.
type scratch struct {
	tokens []int32
	spans  []span

	x, y    []float32 // [rows][hidden]
	qkv     []float32 // [rows][3·hidden]
	wide    []float32 // [rows][inner]
	scores  []float32 // [rows of a text][its tokens, padded to panels]
	keys    []float32 // packed, of one head of one text
	values  []float32 // packed, of one head of one text
	sums    []float32 // [rows of a text][head, padded to panels]
	zero    []float32 // bias of what has none
	edge    []float32
	queries []float32 // [rows of a text][head]
}

func grow(v *[]float32, n int) []float32 {
	if cap(*v) < n {
		*v = make([]float32, n)
	}
	*v = (*v)[:n]
	return *v
}

// run computes the last hidden states of s.tokens, whose texts are s.spans:
// [rows][hidden], valid until the next run.
func (b *bert) run(s *scratch) []float32 {
	rows := padRows(len(s.tokens))
	x, y := grow(&s.x, rows*b.hidden), grow(&s.y, rows*b.hidden)
	qkv, wide := grow(&s.qkv, rows*3*b.hidden), grow(&s.wide, rows*b.inner)
	edge := grow(&s.edge, 2*rowStep*panel)
	b.embed(s, x)
	for i := range b.layers {
		l := &b.layers[i]
		multiply(b.kernels, l.qkv, x, b.hidden, qkv, 3*b.hidden, rows, edge)
		for _, t := range s.spans {
			b.attend(s, t, qkv, y)
		}
		// The queries' room is free again and as wide as is needed.
		mixed := qkv[:rows*b.hidden]
		multiply(b.kernels, l.out, y, b.hidden, mixed, b.hidden, rows, edge)
		b.normalise(x, mixed, l.attentionNorm, len(s.tokens))
		multiply(b.kernels, l.widen, x, b.hidden, wide, b.inner, rows, edge)
		b.gate.apply(wide[:len(s.tokens)*b.inner])
		multiply(b.kernels, l.narrow, wide, b.inner, y, b.hidden, rows, edge)
		b.normalise(x, y, l.feedForwardEnd, len(s.tokens))
	}
	return x[:len(s.tokens)*b.hidden]
}

// embed fills x with the sums of the tokens' embeddings. Rows of the padding
// are zero, not what an earlier run left, which may be slow to compute with.
func (b *bert) embed(s *scratch, x []float32) {
	h := b.hidden
	clear(x[len(s.tokens)*h:])
	for _, t := range s.spans {
		for i := t.from; i < t.to; i++ {
			row, id, at := x[i*h:(i+1)*h], int(s.tokens[i]), i-t.from
			word, position := b.words[id*h:(id+1)*h], b.positions[at*h:(at+1)*h]
			for j := range row {
				row[j] = word[j] + b.kind[j]
			}
			layerNorm(row, position, b.norm.weight, b.norm.bias, b.epsilon)
		}
	}
}

func (b *bert) normalise(x, residual []float32, n scaling, rows int) {
	h := b.hidden
	for i := range rows {
		layerNorm(x[i*h:(i+1)*h], residual[i*h:(i+1)*h], n.weight, n.bias, b.epsilon)
	}
}

// attend computes softmax(Q·Kᵀ/√d)·V of one text, head by head, into its rows
// of y.
func (b *bert) attend(s *scratch, t span, qkv, y []float32) {
	n, d, stride := t.to-t.from, b.hidden/b.heads, 3*b.hidden
	rows, width := padRows(n), panels(n)*panel
	scores, keys := grow(&s.scores, rows*width), grow(&s.keys, width*d)
	values, sums := grow(&s.values, panels(d)*panel*n), grow(&s.sums, rows*panels(d)*panel)
	zero := grow(&s.zero, max(width, panels(d)*panel))
	scale := float32(1 / math.Sqrt(float64(d)))
	clear(keys)
	clear(values)
	clear(scores)
	for head := range b.heads {
		q, k, v := qkv[t.from*stride+head*d:], qkv[t.from*stride+b.hidden+head*d:], qkv[t.from*stride+2*b.hidden+head*d:]
		for i := range n {
			for j := range d {
				keys[i/panel*panel*d+j*panel+i%panel] = k[i*stride+j]
				values[j/panel*panel*n+i*panel+j%panel] = v[i*stride+j]
			}
		}
		// The last rows of q may lie outside qkv: a copy is padded.
		queries := s.padQueries(q, n, d, stride)
		multiply(b.kernels, matrix{k: d, n: width, packed: keys, bias: zero}, queries, d, scores, width, rows, s.edge)
		for i := range n {
			softmax(scores[i*width:i*width+n], scale)
		}
		multiply(b.kernels, matrix{k: n, n: panels(d) * panel, packed: values, bias: zero}, scores, width, sums, panels(d)*panel, rows, s.edge)
		for i := range n {
			copy(y[(t.from+i)*b.hidden+head*d:][:d], sums[i*panels(d)*panel:])
		}
	}
}

// padQueries copies n rows of d numbers, stride apart, and pads them with zeros.
func (s *scratch) padQueries(q []float32, n, d, stride int) []float32 {
	out := grow(&s.queries, padRows(n)*d)
	clear(out[n*d:])
	for i := range n {
		copy(out[i*d:(i+1)*d], q[i*stride:])
	}
	return out
}
