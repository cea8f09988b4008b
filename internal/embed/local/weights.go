package local

import (
	"strconv"
	"strings"
)

// readWeights reads and packs the weights, which have PyTorch's names:
// embeddings.*, encoder.layer.N.*. A pooler and heads are left out.
func readWeights(f *files, c config) (*bert, error) {
	tensors, err := f.tensors(func(name string) bool {
		name = bareTensor(name)
		return strings.HasPrefix(name, "embeddings.") && !strings.HasSuffix(name, "position_ids") || strings.HasPrefix(name, "encoder.layer.")
	})
	if err != nil {
		return nil, err
	}
	t := &taker{tensors: map[string]tensor{}}
	for name, v := range tensors {
		t.tensors[bareTensor(name)] = v
	}
	b := &bert{
		hidden: c.Hidden, heads: c.Heads, inner: c.Inner, epsilon: c.Epsilon,
		words:     t.take("embeddings.word_embeddings.weight", c.Vocabulary, c.Hidden),
		positions: t.take("embeddings.position_embeddings.weight", c.Positions, c.Hidden),
		norm:      t.scaling("embeddings.LayerNorm", c.Hidden),
		gate:      newGate(c.Activation), kernels: pickKernels(),
	}
	if kinds := t.take("embeddings.token_type_embeddings.weight", c.Kinds, c.Hidden); kinds != nil {
		b.kind = kinds[:c.Hidden:c.Hidden]
	}
	for i := range c.Layers {
		b.layers = append(b.layers, t.layer(i, c))
	}
	if t.err != nil {
		return nil, t.err
	}
	for _, name := range sortedNames(t.tensors) {
		// What is left would have been part of another computation.
		return nil, wrong(weightsFile, "tensor %q has no place in a BERT of %d layers", clip(name), c.Layers)
	}
	return b, nil
}

// bareTensor strips what some writers put before names, and reads LayerNorm's
// names of before 2019.
func bareTensor(name string) string {
	for _, prefix := range []string{"bert.", "model.", "0.auto_model."} {
		name = strings.TrimPrefix(name, prefix)
	}
	if s, ok := strings.CutSuffix(name, "LayerNorm.gamma"); ok {
		return s + "LayerNorm.weight"
	}
	if s, ok := strings.CutSuffix(name, "LayerNorm.beta"); ok {
		return s + "LayerNorm.bias"
	}
	return name
}

// taker hands out tensors by name and shape and keeps the first thing that is wrong.
type taker struct {
	tensors map[string]tensor
	err     error
}

// take removes a tensor from the map; nil if it is missing or of another shape.
func (t *taker) take(name string, shape ...int) []float32 {
	v, ok := t.tensors[name]
	delete(t.tensors, name)
	same := len(v.shape) == len(shape)
	for i := 0; same && i < len(shape); i++ {
		same = v.shape[i] == shape[i]
	}
	switch {
	case t.err != nil:
		return nil
	case !ok:
		t.err = wrong(weightsFile, "tensor %q is missing", name)
		return nil
	case !same:
		t.err = wrong(weightsFile, "tensor %q has the shape %v, and %s says %v", name, v.shape, configFile, shape)
		return nil
	case !isFinite(v.data):
		t.err = &Error{File: weightsFile, Detail: "tensor \"" + name + "\" holds a number that is not finite", Hint: "copy or download it again"}
		return nil
	}
	return v.data
}

func (t *taker) scaling(name string, n int) scaling {
	return scaling{weight: t.take(name+".weight", n), bias: t.take(name+".bias", n)}
}

// linear packs layers that have the same input side by side.
func (t *taker) linear(k, each int, names ...string) matrix {
	weights, bias := make([]float32, 0, len(names)*each*k), make([]float32, 0, len(names)*each)
	for _, name := range names {
		weights = append(weights, t.take(name+".weight", each, k)...)
		bias = append(bias, t.take(name+".bias", each)...)
	}
	if t.err != nil {
		return matrix{}
	}
	return pack(weights, bias, k, len(names)*each)
}

func (t *taker) layer(i int, c config) layer {
	in := "encoder.layer." + strconv.Itoa(i) + "."
	attention := in + "attention.self."
	return layer{
		qkv:            t.linear(c.Hidden, c.Hidden, attention+"query", attention+"key", attention+"value"),
		out:            t.linear(c.Hidden, c.Hidden, in+"attention.output.dense"),
		attentionNorm:  t.scaling(in+"attention.output.LayerNorm", c.Hidden),
		widen:          t.linear(c.Hidden, c.Inner, in+"intermediate.dense"),
		narrow:         t.linear(c.Inner, c.Hidden, in+"output.dense"),
		feedForwardEnd: t.scaling(in+"output.LayerNorm", c.Hidden),
	}
}
