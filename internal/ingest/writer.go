package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/derive"
	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/settings"
	"mneme/memory"
)

// Proposer agrees on commands. *raftfsm.Group is one.
type Proposer interface {
	Propose(ctx context.Context, data []byte) *raftfsm.Future
}

// Place is a shard among the others of a node.
type Place struct {
	Shard uint16
	// Shards is how many shards there are, over which the writer of the first one spreads
	// namespaces; 0 is 1.
	Shards int
	// Directory is the state of the first shard on this node, where that is another one:
	// what it does not know, or knows to be deleted, is not written to.
	Directory *projections.State
}

// Options of a writer. All but the clock and limits are required.
type Options struct {
	Place
	Stream   eventlog.Stream
	Group    Proposer
	Term     uint64 // Raft term of this leadership
	State    *projections.State
	Keys     *keyring.Keyring
	Settings *settings.Cache
	Now      func() time.Time
	// Clock is the process's, for the writers of all shards and terms; nil = one of Now, for
	// this writer alone.
	Clock  *Clock
	Rand   io.Reader
	Logger *slog.Logger
	// Current confirms that the writer of this term leads and its state holds all that was
	// accepted; nil = it is so. It is asked before an answer that rests on the state is told.
	// Those who ask at the same time should share the answer.
	Current func(ctx context.Context) error
	// Refuse says why writes are to be refused now; nil = they are not.
	Refuse func() *memory.Error

	// Ref is what Stream is. One with an epoch above the state's was written from
	// the state, and its first round opens that epoch. Zero: what the state knows.
	Ref events.StreamRef
	// Diverged, if not nil, is a divergence that is known: nothing is written.
	Diverged *eventlog.DivergedError
	// Counters count on from the writers of earlier terms; nil = they begin anew.
	Counters *Counters
	// Took is told how long each step of a frame took, and the span of a recorded request whose
	// frame it is, or one that does nothing; nil = nobody asks. It must not wait.
	Took func(Step, time.Duration, trace.Span)

	// QueueLimit is how many events may wait for a frame. It is asked whenever some are to be
	// queued, and must not wait; nil = DefaultQueueItems.
	QueueLimit    func() int
	MaxQueueBytes int // of what waits; 0 = a default
	MaxFrameBytes int // 0 = events.MaxFrameBytes
}

// DefaultQueueItems is how many events may wait for a frame where Options do not say.
const DefaultQueueItems = 20_000

const (
	defaultQueueBytes = 64 << 20
	maxFrameItems     = 2000
)

func (o *Options) setDefaults() {
	if o.Clock == nil {
		o.Clock = NewClock(o.Now, nil)
	}
	if o.Now == nil {
		o.Now = o.Clock.wall
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.QueueLimit == nil {
		o.QueueLimit = func() int { return DefaultQueueItems }
	}
	if o.MaxQueueBytes == 0 {
		o.MaxQueueBytes = defaultQueueBytes
	}
	if o.MaxFrameBytes == 0 {
		o.MaxFrameBytes = events.MaxFrameBytes
	}
	if o.Counters == nil {
		o.Counters = &Counters{}
	}
	if o.Took == nil {
		o.Took = func(Step, time.Duration, trace.Span) {}
	}
}

// Writer is the leader's writing side of one shard for one Raft term. It is safe
// for concurrent use. Start it once, close it once; the next term has another.
type Writer struct {
	opt      Options
	queue    *queue
	flight   *inFlight
	horizon  *horizon
	refusals *refusals
	times    *times
	ids      *events.IDSource
	keys     announcements
	// erasing is held while keys end, and shared while drafts are made and queued.
	erasing sync.RWMutex
	loop    *loop
}

// Counters count what the writers of a shard did, over all terms that they are given to.
type Counters struct {
	Terms, Frames, Events, Duplicates, Conflicts, Adopted atomic.Uint64
}

// Step is what becomes of a frame outside the writer.
type Step int

const (
	StepAppend Step = iota // the log takes it, synced
	StepApply              // Raft agrees on it and this replica applies it
)

// count notes what became of an event that changed nothing.
func (c *Counters) count(o projections.Outcome) {
	switch o {
	case projections.OutcomeDuplicate:
		c.Duplicates.Add(1)
	case projections.OutcomeConflict:
		c.Conflicts.Add(1)
	}
}

// Start catches the state up with the log, begins the term and opens admission.
// Where log and state disagree it returns a writer that refuses writes. An error
// is a *DeposedError or one of Raft if the term is over.
func Start(ctx context.Context, opt Options) (*Writer, error) {
	w, r := newWriter(opt)
	w.opt.Counters.Terms.Add(1)
	w.loop = newLoop(w.opt, r, w.queue.wake)
	first := input(work{})
	if opt.Diverged != nil {
		first = damaged{opt.Diverged}
	}
	go w.loop.run(context.WithoutCancel(ctx), first)
	if err := w.loop.awaitOpen(ctx); err != nil {
		w.loop.abandon(err)
		return nil, fmt.Errorf("begin term %d of shard %d: %w", opt.Term, opt.Shard, err)
	}
	return w, nil
}

// newWriter makes a writer and the round that somebody has to drive.
func newWriter(opt Options) (*Writer, *round) {
	opt.setDefaults()
	opt.Logger = opt.Logger.With("term", opt.Term)
	w := &Writer{opt: opt, queue: newQueue(opt.QueueLimit, opt.MaxQueueBytes), flight: newInFlight(), horizon: &horizon{},
		times: &times{clock: opt.Clock}, ids: events.NewIDSource(opt.Now, opt.Rand), keys: announcements{byKey: map[keyring.KeyID]*draft{}}}
	w.refusals = &refusals{times: w.times, outer: opt.Refuse}
	w.times.follow(opt.State.Cursor().SealedAt)
	seq := &sequencer{shard: opt.Shard, state: opt.State, directory: opt.Directory, keys: opt.Keys, queue: w.queue, flight: w.flight, refusals: w.refusals, times: w.times,
		counters: opt.Counters, log: opt.Logger, maxBytes: opt.MaxFrameBytes}
	return w, &round{shard: opt.Shard, term: opt.Term, preamble: preamble{stream: opt.Ref}, state: opt.State, seq: seq, horizon: w.horizon, ids: w.ids, log: opt.Logger,
		newDerive: func() (*derive.Deriver, error) {
			v := opt.State.View()
			d, err := derive.New(opt.Keys, v)
			return d, errors.Join(err, v.Close())
		}}
}

// Ended is closed when the term is over: the writer takes nothing any more and
// has answered everything it owed. Err says why; nil after a Close.
func (w *Writer) Ended() <-chan struct{} { return w.loop.done }

// Err says why the term is over: a *DeposedError, or an error of Raft.
func (w *Writer) Err() error { return w.loop.err() }

// Close stops admission, writes what was admitted, and stops. Past ctx what
// still waits is refused.
func (w *Writer) Close(ctx context.Context) error {
	w.queue.close()
	select {
	case <-w.loop.done:
	case <-ctx.Done():
		w.loop.abandon(fmt.Errorf("the node is shutting down: %w", ctx.Err()))
	}
	return nil
}

// Abandon stops at once: what waits is refused, and of what is in flight nobody
// can say any more that it was applied.
func (w *Writer) Abandon(why error) {
	w.queue.close()
	w.loop.abandon(why)
}

// Pause stops writing after what is in flight has been applied. The returned
// function goes on. Admission continues until the queue is full.
func (w *Writer) Pause(ctx context.Context) (resume func(), err error) {
	w.queue.pause()
	// First what was taken and is not yet decided, then what is in flight.
	if err := errors.Join(w.queue.settled(ctx), w.flight.drain(ctx)); err != nil {
		w.queue.resume()
		return nil, err
	}
	return sync.OnceFunc(w.queue.resume), nil
}

// AcceptClock lets writing go on with the clock as it stands: an operator says
// that it is right. It returns why writes are refused all the same where the clock
// stands behind the last event.
func (w *Writer) AcceptClock() error { return w.times.accept() }

// Diverged returns why writes are stopped, or nil.
func (w *Writer) Diverged() *eventlog.DivergedError { return w.refusals.divergence() }

// SetDiverged stops writes: log and state disagree.
func (w *Writer) SetDiverged(d *eventlog.DivergedError) { w.refusals.setDiverged(d) }

// Term is the Raft term that the writer writes for.
func (w *Writer) Term() uint64 { return w.opt.Term }

// Settled waits until the state holds every event that this writer or one before
// it said is in the log before the call. It is an error that the round does not
// open.
func (w *Writer) Settled(ctx context.Context) error { return w.horizon.reach(ctx) }

// Counters returns what the writer counts in.
func (w *Writer) Counters() *Counters { return w.opt.Counters }

// QueueDepth is what waits for a frame.
func (w *Writer) QueueDepth() (items, bytes int) { return w.queue.depth() }

// Check compares log and state: identity, ends, gaps, lost messages, hashes of
// the last frames.
func (w *Writer) Check(ctx context.Context) error {
	v := w.opt.State.View()
	defer v.Close()
	return CheckLog(ctx, w.opt.Stream, v)
}
