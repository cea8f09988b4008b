package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/index/vector"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/query/rank"
	"mneme/internal/settings"
	"mneme/memory"
)

// Options of Views. State, Keys and Settings are required.
type Options struct {
	State    *projections.State
	Keys     *keyring.Keyring
	Settings *settings.Cache
	// Vector says how sets are searched and graphs built; its Logger, Pace and
	// Exact are set here. Without an engine it is vector.EngineMneme.
	Vector vector.Options
	// Linear waits until the state holds everything acknowledged before the
	// call; nil = linearizable reads are not supported.
	Linear func(ctx context.Context) error
	// Lacks says that the state does not hold yet what it held before the start, so
	// that it must not be read; nil = it does.
	Lacks    func() *memory.Error
	Logger   *slog.Logger
	FS       vfs.FS // for GraphDir; nil = the system's
	GraphDir string // where graphs are kept for the next Load; "" = nowhere
	Shard    uint16
}

// Views is what the reads of one shard open. It is safe for concurrent use.
// Call Load once before serving.
type Views struct {
	opt           Options
	watch         watch
	vectors       *vectors
	conversations atomic.Pointer[conversationView]
	words         *vocabularies
	knowledge     *knowledge

	loadMu  sync.Mutex // one Load, Close or save of graphs at a time
	applyMu sync.Mutex // OnApply against the swap of a Load; guards the fields below
	loading bool
	backlog []*projections.Applied // applied while a Load builds
	closed  bool

	wg   sync.WaitGroup // keepGraphs
	stop chan struct{}  // closed by Close
}

// New returns views without vectors; Load opens them.
func New(opt Options) (*Views, error) {
	if opt.State == nil || opt.Keys == nil || opt.Settings == nil {
		return nil, errors.New("views: State, Keys and Settings are required")
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.FS == nil {
		opt.FS = vfs.Default
	}
	if opt.Vector.Engine == "" {
		opt.Vector.Engine = vector.EngineMneme
	}
	vectors, err := newVectors(&opt)
	if err != nil {
		return nil, fmt.Errorf("views: %w", err)
	}
	s := &Views{opt: opt, vectors: vectors, words: newVocabularies(opt.State), knowledge: newKnowledge(opt.State, graphCacheBytes), stop: make(chan struct{})}
	s.conversations.Store(newConversationView())
	if opt.GraphDir != "" {
		s.wg.Go(s.keepGraphs)
	}
	return s, nil
}

// OnApply takes over what a batch of commands changed: new vectors are found
// by the next search, dead ones by none. It is called by the applying
// goroutine and waits for nobody but a Load's last step.
func (s *Views) OnApply(a *projections.Applied) {
	s.vectors.pace.applied(len(a.Vectors))
	s.applyMu.Lock()
	if s.loading {
		s.backlog = append(s.backlog, a)
	}
	s.words.apply(a)
	s.knowledge.apply(a)
	if !s.closed {
		s.conversations.Load().apply(a)
		s.vectors.apply(s.vectors.current(), a)
	}
	s.applyMu.Unlock()
	s.watch.set(a.Cursor)
}

// Load opens all vectors of the present state, takes over saved graphs and reads
// the order of conversations. It is called at start and after the state was
// swapped. It builds beside, and searches go on with the old memory until it
// swaps last.
func (s *Views) Load(ctx context.Context) error {
	s.loadMu.Lock()
	defer s.loadMu.Unlock()
	s.applyMu.Lock()
	if s.closed {
		s.applyMu.Unlock()
		return Stopping()
	}
	s.loading, s.backlog = true, nil
	s.applyMu.Unlock()
	s.vectors.pace.load(true)
	defer s.vectors.pace.load(false)

	// Whatever is applied after this view opens is in the backlog.
	view := s.opt.State.View()
	at := view.Cursor()
	var conversations *conversationView
	var cerr error
	var reading sync.WaitGroup
	reading.Go(func() { conversations, cerr = loadConversations(ctx, view) })
	next, err := s.vectors.load(ctx, view)
	reading.Wait()
	err = errors.Join(err, cerr, view.Close())

	s.applyMu.Lock()
	backlog := s.backlog
	s.loading, s.backlog = false, nil
	if err != nil {
		s.applyMu.Unlock()
		next.close()
		return fmt.Errorf("load vectors: %w", err)
	}
	for _, a := range backlog {
		conversations.apply(a)
		s.vectors.apply(next, a)
		at = a.Cursor
	}
	s.conversations.Store(conversations)
	old := s.vectors.view.Swap(next)
	s.applyMu.Unlock()
	s.words.drop(at.Seq)
	s.knowledge.drop(at.Seq)
	s.watch.set(at)
	old.close()
	return nil
}

// Close stops the builders and, with a GraphDir, saves the graphs: links and
// VectorIDs only. Views must be closed before. It may be called twice.
func (s *Views) Close() error {
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
	s.words.close()
	err := s.vectors.close()
	s.wg.Wait()
	return err
}

// keepEvery is how often a node looks whether graphs are worth saving.
const keepEvery = time.Minute

// keepGraphs saves graphs that have grown, so that a node that was killed does
// not build them anew. It runs until Close.
func (s *Views) keepGraphs() {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.keepGrown()
		}
	}
}

// keepGrown saves the graphs that have grown. It steps back for a Load and for Close.
func (s *Views) keepGrown() {
	if !s.loadMu.TryLock() {
		return
	}
	defer s.loadMu.Unlock()
	s.vectors.graphs.saveGrown(s.vectors.current())
}

// DropGraphs removes the files of graphs whose set is not there any more; what
// is dropped while it runs is left for the next call.
func (s *Views) DropGraphs() error {
	s.loadMu.Lock() // against a save or a Load that knows the set still
	defer s.loadMu.Unlock()
	return s.vectors.graphs.removeOthers(s.Sets())
}

// VectorStatus names the engine and the worst that its guard found in any set.
func (s *Views) VectorStatus() memory.VectorStatus {
	out := memory.VectorStatus{Engine: string(s.opt.Vector.Engine), RecallGuard: memory.GuardStatus{State: string(vector.GuardNone)}}
	rank := map[vector.GuardState]int{vector.GuardNone: 0, vector.GuardOK: 1, vector.GuardTripped: 2}
	worst := vector.GuardNone
	for _, set := range s.Sets() {
		st := set.Stats()
		g := &out.RecallGuard
		if rank[st.Guard] > rank[worst] || st.Guard == worst && st.Guard != vector.GuardNone && st.Recall < g.Recall {
			worst = st.Guard
			g.State, g.Recall = string(st.Guard), st.Recall
		}
	}
	return out
}

// Vectors returns the vectors of a partition in a space; nil if there are none.
func (s *Views) Vectors(partition uint32, space projections.SpaceKey) *VectorSet {
	return s.vectors.current().get(setKey{partition, space})
}

// Sets lists the vector sets by partition.
func (s *Views) Sets() []*VectorSet { return s.vectors.current().all() }

// Conversations returns the order of a partition's conversations; nil if nothing
// was ever written to it.
func (s *Views) Conversations(partition uint32) *rank.Conversations {
	return s.conversations.Load().get(partition)
}

// State opens a snapshot of the state that no capability restricts. The caller
// closes it and shows of it only what a capability allows. Errors: Options.Lacks.
func (s *Views) State() (*projections.View, error) {
	if s.opt.Lacks != nil {
		if err := s.opt.Lacks(); err != nil {
			return nil, err
		}
	}
	return s.opt.State.View(), nil
}

// Moved returns where the memory stands, a channel that closes when that
// changes, and whether the views were closed.
func (s *Views) Moved() (at projections.Cursor, moved <-chan struct{}, closed bool) {
	return s.watch.now()
}
