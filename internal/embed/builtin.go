package embed

import (
	"context"
	"sync/atomic"

	"mneme/internal/embed/builtin"
	"mneme/internal/embed/static"
	"mneme/internal/text"
)

// Names of the built-in models.
const (
	ModelStatic = static.Name  // knows meaning; the default
	ModelHash   = builtin.Name // hashes words and parts of words
)

// BuiltinModel is a model that ships in the binary. Its vectors are a function of
// the text alone, in integers, so that they may enter replicated state.
type BuiltinModel struct {
	Space Space
	embed func(dst []int8, texts ...text.Analysis)
	reads func(text.Analysis) bool // nil = any text alike
}

// builtinModels are all of them, the default first. Each stays as long as
// there may be namespaces with its space.
func builtinModels() [2]BuiltinModel {
	space := func(model string, dimensions, version int) Space {
		return Space{Provider: ProviderBuiltin, Model: model, Dimensions: dimensions, Normalised: true, Version: version}
	}
	return [...]BuiltinModel{
		{space(static.Name, static.Dimensions, static.Version), static.Embed, static.Reads},
		{space(builtin.Name, builtin.Dimensions, builtin.Version), builtin.Embed, nil},
	}
}

// Builtin returns the built-in model that makes vectors of space s; false if this
// release has none.
func Builtin(s Space) (BuiltinModel, bool) {
	for _, m := range builtinModels() {
		if m.Space == s {
			return m, true
		}
	}
	return BuiltinModel{}, false
}

// builtinByName returns the built-in model of that name; no name is the default.
func builtinByName(name string) (BuiltinModel, bool) {
	for _, m := range builtinModels() {
		if name == "" || m.Space.Model == name {
			return m, true
		}
	}
	return BuiltinModel{}, false
}

// Embed writes the vector of texts, one after the other with white space between
// them, to dst, whose length must be the space's dimensions: builtin.Scale times the
// unit vector, rounded, or zero if the model finds nothing in them. It may be called
// concurrently.
func (m BuiltinModel) Embed(dst []int8, texts ...text.Analysis) { m.embed(dst, texts...) }

// Reads reports whether the model knows most words of a text, so that its vector says more of it
// than how it is spelt.
func (m BuiltinModel) Reads(s string) bool { return m.reads == nil || m.reads(text.NewAnalysis(s)) }

// Vector returns the vector of a text with length 1, for searching in memory; false
// if the model finds nothing in the text.
func (m BuiltinModel) Vector(s string) ([]float32, bool) {
	q := make([]int8, m.Space.Dimensions)
	m.embed(q, text.NewAnalysis(s))
	v := make([]float32, len(q))
	builtin.Float(v, q)
	for _, x := range q {
		if x != 0 {
			return v, true
		}
	}
	return v, false
}

// builtinEmbedder adapts a built-in model. It holds nothing.
type builtinEmbedder struct {
	model  BuiltinModel
	closed atomic.Bool
}

func (l *builtinEmbedder) Space() Space { return l.model.Space }

func (l *builtinEmbedder) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	if l.closed.Load() {
		return nil, ErrClosed
	}
	if err := checkTexts(ProviderBuiltin, p, texts); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, ok := l.model.Vector(text)
		if !ok || normalise(v) != nil {
			return nil, &Error{Kind: ErrBadInput, Provider: ProviderBuiltin, Model: l.model.Space.Model, Index: i, Detail: "text has nothing to embed"}
		}
		out[i] = v
	}
	return out, nil
}

func (l *builtinEmbedder) Close() error {
	l.closed.Store(true)
	return nil
}

// Ordinary reports whether a term of the analyzer is a word that people write often:
// whether the built-in model has learnt it.
func Ordinary(term string) bool { return static.Known(term) }
