package embed

import (
	"context"
	"sync/atomic"

	"mneme/internal/embed/builtin"
)

// builtinModel is the name of the model that is compiled in.
const builtinModel = builtin.Name

func builtinSpace() Space {
	return Space{
		Provider:   ProviderBuiltin,
		Model:      builtinModel,
		Dimensions: builtin.Dimensions,
		Normalised: true,
		Version:    builtin.Version,
	}
}

// compiledIn adapts the built-in model. It holds nothing.
type compiledIn struct{ closed atomic.Bool }

func (l *compiledIn) Space() Space { return builtinSpace() }

func (l *compiledIn) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	if l.closed.Load() {
		return nil, ErrClosed
	}
	if err := checkTexts(ProviderBuiltin, p, texts); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	quantised := make([]int8, builtin.Dimensions)
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		builtin.Embed(text, quantised)
		v := make([]float32, builtin.Dimensions)
		builtin.Float(v, quantised)
		if err := normalise(v); err != nil {
			return nil, &Error{Kind: ErrBadInput, Provider: ProviderBuiltin, Model: builtinModel, Index: i, Detail: "text has nothing to embed"}
		}
		out[i] = v
	}
	return out, nil
}

func (l *compiledIn) Close() error {
	l.closed.Store(true)
	return nil
}
