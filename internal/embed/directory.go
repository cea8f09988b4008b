package embed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"mneme/internal/embed/local"
)

const (
	// directoryVersion counts how vectors of local models are made at an equal
	// digest. Raise it if the same files would give other vectors.
	directoryVersion = 1
	// digestDigits of the model's SHA-256 are in the space's name: 128 bits.
	digestDigits = 32
)

// directory is an embedder that runs a model from files. It owns no goroutine
// between calls. At most as many texts run at once as there are workers, over
// all calls.
type directory struct {
	dir     string
	space   Space
	workers chan *local.Worker // full when nothing runs

	life context.Context // ends with Close
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // Add only under mu while open
}

// validateDirectory refuses settings that a local model would ignore.
func (c Config) validateDirectory() error {
	switch {
	case c.Dir == "":
		e := configError(ProviderLocal, "no directory of a model")
		e.Model, e.Hint = c.Model, "start the node with --local-model DIR"
		return e
	case c.BaseURL != "":
		return configError(ProviderLocal, "a local model has no base URL")
	case !c.APIKey.IsZero():
		return configError(ProviderLocal, "a local model takes no API key")
	case c.Encoding != "":
		return configError(ProviderLocal, "encoding exists only in the OpenAI protocol")
	}
	return nil
}

// openDirectory loads the model, which takes as long as reading its files.
func openDirectory(ctx context.Context, cfg Config) (Embedder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	model, err := local.Open(cfg.Dir)
	if err != nil {
		return nil, directoryError(cfg.Dir, err)
	}
	d := &directory{dir: cfg.Dir}
	if d.space, err = cfg.directorySpace(model); err != nil {
		return nil, err
	}
	lanes := min(runtime.GOMAXPROCS(0), maxConcurrency)
	if cfg.Concurrency > 0 {
		lanes = min(lanes, cfg.Concurrency)
	}
	d.workers = make(chan *local.Worker, lanes)
	for range lanes {
		d.workers <- model.NewWorker()
	}
	d.life, d.stop = context.WithCancel(context.Background())
	return d, nil
}

// directoryError passes on what is wrong with the files.
func directoryError(dir string, err error) error {
	out := &Error{Kind: ErrNoModel, Provider: ProviderLocal, Endpoint: dir, Index: -1, Detail: err.Error()}
	var e *local.Error
	if errors.As(err, &e) {
		out.Hint = e.Hint
	}
	return out
}

// directorySpace returns the space of the model: its name is NAME@DIGEST, so
// that other weights or another tokenizer are another space whatever they are
// called. When a space is asked for, the digest decides and its name is kept:
// nodes may have the model in directories of different names.
func (c Config) directorySpace(m *local.Model) (Space, error) {
	name, digest := printable(m.Name()), m.Digest()[:digestDigits]
	if asked, askedDigest, _ := strings.Cut(c.Model, "@"); c.Model != "" {
		if askedDigest != "" && askedDigest != digest || askedDigest == "" && !strings.EqualFold(bareModel(asked), bareModel(name)) {
			return Space{}, &Error{Kind: ErrNoModel, Provider: ProviderLocal, Endpoint: c.Dir, Model: c.Model, Index: -1,
				Detail: fmt.Sprintf("the model here is %s@%s, not %s", name, digest, c.Model),
				Hint:   "start the node with the directory of that model, or switch the namespace to this one"}
		}
		name = asked
	}
	if c.Dimensions != 0 && c.Dimensions != m.Dimensions() {
		return Space{}, &Error{Kind: ErrConfig, Provider: ProviderLocal, Endpoint: c.Dir, Index: -1,
			Detail: fmt.Sprintf("vectors of %s have %d dimensions, not %d", name, m.Dimensions(), c.Dimensions)}
	}
	prefixes := c.Prefixes
	if prefixes == nil {
		known, _ := KnownPrefixes(name)
		prefixes = &known
	}
	s := Space{
		Provider: ProviderLocal, Model: name + "@" + digest, Dimensions: m.Dimensions(),
		DocumentPrefix: prefixes.Document, QueryPrefix: prefixes.Query,
		Normalised: true, Version: directoryVersion,
	}
	return s, c.checkSpace(s)
}

// printable makes a name of a directory's, which may hold anything.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if isControl(r) || r == '@' {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if over := len(name) - (maxModelName - digestDigits - 1); over > 0 {
		name = strings.ToValidUTF8(name[:len(name)-over], "")
	}
	return name
}

func (d *directory) Space() Space { return d.space }

func (d *directory) Embed(ctx context.Context, p Purpose, texts []string) ([][]float32, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.calls.Done()
	if err := checkTexts(ProviderLocal, p, texts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()

	prefix := d.space.prefix(p)
	out := make([][]float32, len(texts))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(d.workers))
	for _, s := range d.share(len(texts)) {
		group.Go(func() error { return d.embedSpan(gctx, prefix, texts, out, s) })
	}
	err := group.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && d.life.Err() != nil {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// share cuts n texts into spans: small enough that all workers have some, large
// enough that short texts run together.
func (d *directory) share(n int) []span {
	const most = 16
	size := min(max(1, (n+cap(d.workers)-1)/cap(d.workers)), most)
	var spans []span
	for from := 0; from < n; from += size {
		spans = append(spans, span{from, min(from+size, n)})
	}
	return spans
}

// embedSpan fills out[s], run by run. A run is not interrupted; it is at most
// one long text or a few short ones.
func (d *directory) embedSpan(ctx context.Context, prefix string, texts []string, out [][]float32, s span) error {
	var worker *local.Worker
	select {
	case worker = <-d.workers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { d.workers <- worker }()
	for at := s.from; at < s.to; {
		if err := ctx.Err(); err != nil {
			return err
		}
		vectors, err := worker.Embed(prefix, texts[at:s.to])
		if err != nil {
			return &Error{Kind: ErrBadInput, Provider: ProviderLocal, Model: d.space.Model, Index: at, Detail: err.Error()}
		}
		for _, v := range vectors {
			if err := normalise(v); err != nil {
				return &Error{Kind: ErrBadAnswer, Provider: ProviderLocal, Endpoint: d.dir, Model: d.space.Model, Index: at,
					Detail: err.Error(), Hint: "the model's weights give no usable vector"}
			}
			out[at] = v
			at++
		}
	}
	return nil
}

// enter registers a call, so that Close can wait for it.
func (d *directory) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.calls.Add(1)
	return nil
}

func (d *directory) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.calls.Wait()
	for range len(d.workers) {
		<-d.workers // the weights go with the last worker
	}
	return nil
}
