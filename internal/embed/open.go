package embed

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"
)

// Clock is time as this package uses it.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier with the context's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// Options are what an embedder gets from its surroundings. The zero value works.
type Options struct {
	// HTTPClient sends the requests; a copy is used that follows no redirects,
	// since they would carry texts and keys elsewhere. Nil gives a client of the
	// embedder's own, without proxy.
	HTTPClient *http.Client
	// Clock is for pauses between attempts. The circuit breaker keeps its own time.
	Clock Clock
	// Logger gets a line for each attempt that is repeated, at level debug.
	Logger *slog.Logger
	// Rand returns numbers in [0,1) for the jitter of pauses. It is called concurrently.
	Rand func() float64
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return o
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Open returns the embedder that the configuration asks for.
//
// ProviderNone gives nil and ErrNone. A server is asked only if the size of its
// vectors is not known yet (neither configured, nor from ForSpace, nor a hosted
// model of known size): then the error may be any that Embed returns, and Open
// may be tried again later.
func Open(ctx context.Context, cfg Config, opt Options) (Embedder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	switch provider := canonicalProvider(cfg.Provider); provider {
	case ProviderNone:
		return nil, ErrNone
	case ProviderBuiltin:
		model, _ := builtinByName(cfg.Model) // Validate has seen the name
		if err := cfg.checkSpace(model.Space); err != nil {
			return nil, err
		}
		return &builtinEmbedder{model: model}, nil
	case ProviderLocal:
		return openDirectory(ctx, cfg)
	default:
		return openRemote(ctx, cfg, opt.withDefaults())
	}
}

// checkSpace refuses to open another space than the one ForSpace asked for.
func (c Config) checkSpace(got Space) error {
	if c.space == (Space{}) || c.space == got {
		return nil
	}
	return &Error{
		Kind: ErrConfig, Provider: got.Provider, Model: got.Model, Index: -1,
		Detail: fmt.Sprintf("space %s is wanted, this version makes %s", c.space, got),
		Hint:   "switch the namespace to the new space",
	}
}
