package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
)

// EmbedderSource gives the embedder of a space.
type EmbedderSource interface {
	For(ctx context.Context, s embed.Space) (embed.Embedder, error)
}

// Attacher embeds what waits for vectors from an external model and writes
// them as vectors.attached events. An embedder that is away stops nothing but
// itself: the records are found by text, and it tries again.
type Attacher struct {
	writer *Writer
	source EmbedderSource
	wake   chan struct{}
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// unembeddable are versions that have no vector in their namespace's space. They
	// stay pending, and must not stand in front of others. Owned by run.
	unembeddable map[projections.PendingDoc]bool
	spaces       map[events.ID]embed.Space // that unembeddable is about
}

const (
	attachBatch    = 64 // records in one round of a namespace
	attachRetryMin = time.Second
	attachRetryMax = time.Minute
)

// NewAttacher starts the attacher; Close stops it.
func NewAttacher(writer *Writer, source EmbedderSource) *Attacher {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Attacher{writer: writer, source: source, wake: make(chan struct{}, 1), cancel: cancel, unembeddable: map[projections.PendingDoc]bool{}, spaces: map[events.ID]embed.Space{}}
	a.wg.Add(1)
	go a.run(ctx)
	a.Wake()
	return a
}

// Wake says that something may wait for vectors.
func (a *Attacher) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Close stops the attacher and waits for it.
func (a *Attacher) Close() {
	a.cancel()
	a.wg.Wait()
}

func (a *Attacher) run(ctx context.Context) {
	defer a.wg.Done()
	retry := attachRetryMin
	for {
		more, err := a.round(ctx)
		var pause <-chan time.Time
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.writer.opt.Logger.Warn("vectors are pending", "err", err, "retry", retry)
			pause = time.After(retry)
			retry = min(2*retry, attachRetryMax)
		case more:
			retry = attachRetryMin
			continue
		default:
			retry = attachRetryMin
		}
		if err != nil {
			select {
			case <-pause:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
	}
}

// round serves one batch of each namespace and reports whether there is more.
func (a *Attacher) round(ctx context.Context) (more bool, err error) {
	v := a.writer.opt.State.View()
	list, err := v.Namespaces()
	if err = errors.Join(err, v.Close()); err != nil {
		return false, err
	}
	for _, ns := range list {
		if v.NamespaceTotals(ns.ID).Pending == 0 {
			continue
		}
		m, e := a.namespace(ctx, ns)
		more = more || m
		err = errors.Join(err, e)
	}
	return more, err
}

func (a *Attacher) namespace(ctx context.Context, ns projections.NamespaceInfo) (more bool, err error) {
	work, space, err := a.collect(ns)
	if err != nil || len(work) == 0 {
		return false, err
	}
	// Everything taken is attached or unembeddable afterwards, so this ends.
	more = len(work) == attachBatch
	e, err := a.source.For(ctx, space)
	if err != nil {
		return false, fmt.Errorf("namespace %s: %w", ns.Name, err)
	}
	var docs []projections.PendingDoc
	var drafts []*draft
	var failed error
	for _, w := range work {
		d, err := a.writer.embedOne(ctx, e, space, w)
		if errors.Is(err, embed.ErrBadInput) || settings.IsErased(err) {
			a.unembeddable[w.doc] = true // it is found by text
			continue
		}
		if err != nil {
			failed = fmt.Errorf("namespace %s: %w", ns.Name, err)
			break // what was embedded so far is not thrown away
		}
		docs, drafts = append(docs, w.doc), append(drafts, d)
	}
	return more, errors.Join(failed, a.submit(ctx, ns.ID, docs, drafts))
}

// submit writes the events and waits for them. A version whose vectors the fold
// would not have is not tried again.
func (a *Attacher) submit(ctx context.Context, ns events.ID, docs []projections.PendingDoc, drafts []*draft) error {
	results, err := a.writer.attachAll(ctx, ns, drafts)
	for i, r := range results {
		if r.Outcome != projections.OutcomeApplied {
			a.unembeddable[docs[i]] = true
		}
	}
	return err
}

// collect opens a batch of versions that wait for vectors.
func (a *Attacher) collect(ns projections.NamespaceInfo) ([]pendingText, embed.Space, error) {
	v := a.writer.opt.State.View()
	defer v.Close()
	s, err := a.writer.opt.Book.Of(v, ns)
	if err != nil || !s.HasVectors() || embed.IsLocal(s.Space.Provider) {
		return nil, embed.Space{}, err
	}
	if had, ok := a.spaces[ns.ID]; ok && had != s.Space {
		clear(a.unembeddable) // another model may have vectors for them
	}
	a.spaces[ns.ID] = s.Space
	pending, err := v.Pending(ns.ID, settings.KeyOf(s.Space), attachBatch+len(a.unembeddable))
	if err != nil {
		return nil, s.Space, err
	}
	var out []pendingText
	for _, p := range pending {
		if a.unembeddable[p] || len(out) == attachBatch {
			continue
		}
		w, err := a.writer.openText(v, ns.ID, s.Space, p)
		if err != nil {
			return nil, s.Space, err
		}
		out = append(out, w)
	}
	return out, s.Space, nil
}
