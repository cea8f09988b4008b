package query

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"mneme/internal/embed"
	index "mneme/internal/index/text"
	"mneme/internal/keyring"
	"mneme/internal/query/views"
	"mneme/internal/settings"
)

// EmbedderSource gives the embedder of a space, opened or used again. Errors
// are those of package embed.
type EmbedderSource interface {
	For(ctx context.Context, s embed.Space) (embed.Embedder, error)
}

// Options of a Service. Views, Keys and Settings are required.
type Options struct {
	Views    *views.Views
	Keys     *keyring.Keyring
	Settings *settings.Cache
	// Embedders serves spaces of models outside this process; nil = there are none.
	Embedders EmbedderSource
	Now       func() time.Time // nil = time.Now; for took_ms and for what "last week" means
	Logger    *slog.Logger
	Slow      *Slow // which searches are logged; nil = none
	// About is what a line of the log says of the request of a context; nil = nothing.
	About func(context.Context) []slog.Attr
}

// Service answers the reads of one shard. It is safe for concurrent use.
type Service struct {
	opt   Options
	texts index.Searcher
	pool  sync.Pool // *buffers
}

// about is what a line of the log says of the request of a context.
func (s *Service) about(ctx context.Context) []slog.Attr {
	if s.opt.About == nil {
		return nil
	}
	return s.opt.About(ctx)
}

// New returns a service.
func New(opt Options) (*Service, error) {
	if opt.Views == nil || opt.Keys == nil || opt.Settings == nil {
		return nil, errors.New("query: Views, Keys and Settings are required")
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Slow == nil {
		opt.Slow = &Slow{}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Service{opt: opt}
	s.pool.New = func() any { return newBuffers() }
	return s, nil
}
