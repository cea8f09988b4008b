package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/embed"
	"mneme/internal/events"
	index "mneme/internal/index/text"
	"mneme/internal/index/vector"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// EmbedderSource gives the embedder of a space, opened or used again. Errors
// are those of package embed.
type EmbedderSource interface {
	For(ctx context.Context, s embed.Space) (embed.Embedder, error)
}

// Options of a Service. State, Keys and Book are required.
type Options struct {
	State *projections.State
	Keys  *keyring.Keyring
	Book  *settings.Book
	// Embedders serves spaces of models outside this process; nil = there are none.
	Embedders EmbedderSource
	Engine    vector.Engine // "" = vector.EngineMneme
	// Linear waits until the state holds everything acknowledged before the
	// call; nil = linearizable reads are not supported.
	Linear   func(ctx context.Context) error
	Now      func() time.Time // nil = time.Now; for took_ms and for what "last week" means
	Logger   *slog.Logger
	FS       vfs.FS // for GraphDir; nil = the system's
	GraphDir string // where graphs are kept for the next Load, see keepGraphs; "" = nowhere
	Shard    uint16
}

// Service answers the reads of one shard. It is safe for concurrent use. Call
// Load once before serving.
type Service struct {
	opt   Options
	watch watch
	texts index.Searcher
	pool  sync.Pool // *scratch

	pace      pace
	vectorOpt vector.Options
	vectors   atomic.Pointer[vectorView]
	contexts  atomic.Pointer[contextView]

	loadMu  sync.Mutex // one Load or Close at a time
	applyMu sync.Mutex // OnApply against the swap of a Load; guards the fields below
	loading bool
	backlog []*projections.Applied // applied while a Load builds
	closed  bool

	wg   sync.WaitGroup // closing of dropped sets, keepGraphs
	stop chan struct{}  // closed by Close
}

// New returns a service without vectors; Load opens them.
func New(opt Options) (*Service, error) {
	if opt.State == nil || opt.Keys == nil || opt.Book == nil {
		return nil, errors.New("query: State, Keys and Book are required")
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.FS == nil {
		opt.FS = vfs.Default
	}
	if opt.Engine == "" {
		opt.Engine = vector.EngineMneme
	}
	s := &Service{opt: opt, pace: pace{now: time.Now}, stop: make(chan struct{})}
	s.vectorOpt = vector.Options{Engine: opt.Engine, Logger: opt.Logger, Pace: s.pace.rest}
	probe, err := vector.NewSet(1, s.vectorOpt)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if err := probe.Close(); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	s.pool.New = func() any { return newScratch() }
	s.vectors.Store(newVectorView())
	s.contexts.Store(newContextView())
	if opt.GraphDir != "" {
		s.wg.Go(s.keepGraphs)
	}
	return s, nil
}

// OnApply takes over what a batch of commands changed: new vectors are found
// by the next search, dead ones by none. It is called by the applying
// goroutine and waits for nobody but a Load's last step.
func (s *Service) OnApply(a *projections.Applied) {
	s.pace.applied(len(a.Vectors))
	s.applyMu.Lock()
	if s.loading {
		s.backlog = append(s.backlog, a)
	}
	if !s.closed {
		s.contexts.Load().apply(a)
		s.applyTo(s.vectors.Load(), a)
	}
	s.applyMu.Unlock()
	s.watch.set(a.Cursor)
}

// Load opens all vectors of the present state, takes over saved graphs and
// reads who stands around whom. It
// is called at start and after the state was swapped: it builds beside, and
// searches go on with the old view until it swaps last.
func (s *Service) Load(ctx context.Context) error {
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	s.applyMu.Lock()
	if s.closed {
		s.applyMu.Unlock()
		return errClosed()
	}
	s.loading, s.backlog = true, nil
	s.applyMu.Unlock()
	s.pace.load(true)
	defer s.pace.load(false)

	// Whatever is applied after this view opens is in the backlog.
	view := s.opt.State.View()
	at := view.Cursor()
	around, err := s.buildContext(ctx, view)
	next, verr := s.build(ctx, view)
	err = errors.Join(err, verr, view.Close())

	s.applyMu.Lock()
	backlog := s.backlog
	s.loading, s.backlog = false, nil
	if err != nil {
		s.applyMu.Unlock()
		next.close()
		return fmt.Errorf("load vectors: %w", err)
	}
	for _, a := range backlog {
		around.apply(a)
		s.applyTo(next, a)
		at = a.Cursor
	}
	s.contexts.Store(around)
	old := s.vectors.Swap(next)
	s.applyMu.Unlock()
	s.watch.set(at)
	old.close()
	return nil
}

// Close stops the builders and, with a GraphDir, saves the graphs: links and
// VectorIDs only. Readers must be closed before. It may be called twice.
func (s *Service) Close() error {
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	s.applyMu.Lock()
	was := s.closed
	s.closed = true
	s.applyMu.Unlock()
	if was {
		return nil
	}
	close(s.stop)
	s.watch.close()
	v := s.vectors.Load()
	err := s.saveGraphs(v)
	v.close()
	s.wg.Wait()
	return err
}

// VectorStatus names the engine and the worst that its guard found in any set.
func (s *Service) VectorStatus() memory.VectorStatus {
	out := memory.VectorStatus{Engine: string(s.opt.Engine), RecallGuard: memory.GuardStatus{State: string(vector.GuardNone)}}
	rank := map[vector.GuardState]int{vector.GuardNone: 0, vector.GuardOK: 1, vector.GuardTripped: 2}
	worst := vector.GuardNone
	for _, set := range s.vectors.Load().all() {
		st := set.set.Stats()
		g := &out.RecallGuard
		if rank[st.Guard] > rank[worst] || st.Guard == worst && st.Guard != vector.GuardNone && st.Recall < g.Recall {
			worst = st.Guard
			g.State, g.Recall = string(st.Guard), st.Recall
		}
	}
	return out
}

func errClosed() error {
	return memory.Errorf(memory.CodeUnavailable, "the node is shutting down")
}

// failed gives an error of a read its public form: cancelled and late requests
// are timeouts, typed errors stay, the rest is internal.
func failed(op string, err error) error {
	var typed *memory.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return memory.Errorf(memory.CodeTimeout, "%s was not finished in time", op).WithCause(err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

func noRecord(id string) error {
	return memory.Errorf(memory.CodeNotFound, "there is no record %q", clip(id))
}

func clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}

var zeroID events.ID
