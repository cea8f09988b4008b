package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"mneme/internal/embed"
)

// embedders opens each space's embedder once.
type embedders struct {
	source embedderSource // of models outside this process; nil = they are opened here
	cfg    embed.Config
	env    embed.Lookup
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]embed.Embedder
}

// cacheBytes bounds what each embedder remembers.
const cacheBytes = 32 << 20

func newEmbedders(cfg Config) *embedders {
	env := cfg.Environment
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return &embedders{source: cfg.Parts.Embedders, cfg: cfg.Embedder, env: env, log: cfg.Logger, open: map[string]embed.Embedder{}}
}

// embedderSource gives the embedder of a space.
type embedderSource interface {
	For(ctx context.Context, s embed.Space) (embed.Embedder, error)
}

// For returns the embedder of a space, opening it at its first use.
func (e *embedders) For(ctx context.Context, s embed.Space) (embed.Embedder, error) {
	if e.source != nil && !embed.IsBuiltin(s.Provider) {
		return e.source.For(ctx, s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if have := e.open[s.ID()]; have != nil {
		return have, nil
	}
	made, err := embed.Open(ctx, e.cfg.ForSpace(s).WithEnvironment(e.env), embed.Options{Logger: e.log})
	if err != nil {
		return nil, err
	}
	if !embed.IsBuiltin(s.Provider) {
		made = embed.Cached(made, cacheBytes)
	}
	e.open[s.ID()] = made
	return made, nil
}

// choose opens the embedder that a new namespace asks for and returns its
// space; the zero space for none.
func (e *embedders) choose(ctx context.Context, cfg embed.Config) (embed.Space, error) {
	made, err := embed.Open(ctx, cfg.WithEnvironment(e.env), embed.Options{Logger: e.log})
	if errors.Is(err, embed.ErrNone) {
		return embed.Space{}, nil
	}
	if err != nil {
		return embed.Space{}, err
	}
	s := made.Space()
	return s, made.Close()
}

func (e *embedders) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, m := range e.open {
		errs = append(errs, m.Close())
	}
	e.open = map[string]embed.Embedder{}
	return errors.Join(errs...)
}
