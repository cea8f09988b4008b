package embed

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// remoteVersion counts how vectors of servers are made here (prefix, request,
// normalisation). Raise it if equal names would give other vectors.
const remoteVersion = 1

// wire is one provider's protocol.
type wire interface {
	// request returns the path below the base URL and the body to send as JSON.
	// want is the size to ask for, 0 to ask for none.
	request(model string, p Purpose, texts []string, want int) (path string, body any)
	// answer decodes a 200. The vectors are in the order of the texts.
	answer(body []byte, texts int) ([]vector, error)
	// failure reads the error body of another status.
	failure(body []byte) failure
	// authorise returns the header that carries the key.
	authorise(key string) (name, value string)
}

// remote is an embedder behind HTTP. It owns no goroutine between calls.
type remote struct {
	cfg  Config // resolved
	wire wire
	link *link

	space Space // Dimensions is 0 until known, then fixed

	life context.Context // ends with Close
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // Add only under mu while open
}

func openRemote(ctx context.Context, cfg Config, opt Options) (Embedder, error) {
	cfg = cfg.resolve()
	r := &remote{cfg: cfg, wire: newWire(cfg), space: Space{
		Provider:       cfg.Provider,
		Model:          cfg.Model,
		DocumentPrefix: cfg.Prefixes.Document,
		QueryPrefix:    cfg.Prefixes.Query,
		Normalised:     true,
		Version:        remoteVersion,
		Dimensions:     cfg.knownDimensions(),
	}}
	r.link = newLink(cfg, r.wire, opt)
	r.life, r.stop = context.WithCancel(context.Background())
	if inClear(cfg) {
		opt.Logger.Warn("API key travels unencrypted", "provider", cfg.Provider, "endpoint", cfg.BaseURL)
	}
	if err := r.settle(ctx); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("open embedder: %w", err)
	}
	return r, nil
}

func newWire(cfg Config) wire {
	switch cfg.Provider {
	case ProviderOllama:
		return ollamaWire{}
	case ProviderGemini:
		return geminiWire{}
	default:
		return openAIWire{encoding: cfg.Encoding}
	}
}

// knownDimensions returns the size of vectors as far as it is known without asking.
func (c Config) knownDimensions() int {
	d, _ := providerDefaults(c.Provider)
	switch {
	case c.space.Dimensions != 0:
		return c.space.Dimensions
	case c.Dimensions != 0:
		return c.Dimensions
	case d.needsKey && c.BaseURL == d.baseURL:
		return nativeDimensions(c.Model)
	}
	return 0
}

// settle fixes the space: by an answer, if its size is not known.
func (r *remote) settle(ctx context.Context) error {
	if r.space.Dimensions == 0 {
		probe, err := r.Embed(ctx, Document, []string{"dimensions"})
		if err != nil {
			return err
		}
		r.space.Dimensions = len(probe[0])
	}
	return r.cfg.checkSpace(r.space)
}

func (r *remote) Space() Space { return r.space }

func (r *remote) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.calls.Done()
	if err := checkTexts(r.cfg.Provider, p, texts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()

	prefix := r.space.prefix(p)
	inputs := texts
	if prefix != "" {
		inputs = make([]string, len(texts))
		for i, text := range texts {
			inputs[i] = prefix + text
		}
	}
	out := make([][]float32, len(texts))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(r.cfg.Concurrency)
	for _, s := range r.cfg.limits().plan(inputs) {
		if gctx.Err() != nil {
			break
		}
		group.Go(func() error { return r.embedSpan(gctx, p, inputs, out, s) })
	}
	err := group.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && r.life.Err() != nil {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// embedSpan fills out[s]. A request that is too large, or that one of its texts
// spoils, is cut in halves until the text to blame stands alone: then the error
// names it, and the caller can go on without it.
func (r *remote) embedSpan(ctx context.Context, p Purpose, inputs []string, out [][]float32, s span) error {
	vectors, err := r.link.embed(ctx, p, inputs[s.from:s.to], r.cfg.Dimensions, r.space.Dimensions)
	if err == nil {
		copy(out[s.from:s.to], vectors)
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	n := s.to - s.from
	if e.split && n > 1 {
		middle := s.from + n/2
		if err := r.embedSpan(ctx, p, inputs, out, span{s.from, middle}); err != nil {
			return err
		}
		return r.embedSpan(ctx, p, inputs, out, span{middle, s.to})
	}
	if e.Index >= 0 {
		e.Index += s.from
	} else if n == 1 && e.split {
		e.Index = s.from
	}
	return err
}

// enter registers a call, so that Close can wait for it.
func (r *remote) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.calls.Add(1)
	return nil
}

func (r *remote) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.calls.Wait()
	r.link.close()
	return nil
}
