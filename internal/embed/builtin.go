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

// local adapts the compiled-in model. It holds nothing.
type local struct{ closed atomic.Bool }

func (l *local) Space() Space { return builtinSpace() }

func (l *local) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
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

func (l *local) Close() error {
	l.closed.Store(true)
	return nil
}
