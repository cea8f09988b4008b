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

// Options of a shard's writing side. All but the clock and limits are required.
type Options struct {
	Shard  uint16
	Stream eventlog.Stream
	Group  Proposer
	Term   uint64 // Raft term of this leadership
	State  *projections.State
	Keys   *keyring.Keyring
	Book   *settings.Book
	Now    func() time.Time
	Rand   io.Reader
	Logger *slog.Logger
	// Refuse says why writes are to be refused now; nil = they are not.
	Refuse func() *memory.Error

	// RaiseEpoch begins a new epoch of the log: it was repaired from state.
	RaiseEpoch bool

	MaxQueueItems, MaxQueueBytes int // what may wait; 0 = defaults
	MaxFrameBytes                int // 0 = events.MaxFrameBytes
}

// maxClockLag is how far the clock may stand behind the last event.
const maxClockLag = 60 * time.Second

// Shard is the leader's writing side of one shard. It is safe for concurrent
// use. Start it once, close it once.
type Shard struct {
	opt     Options
	queue   *queue
	deriver *derive.Deriver
	writer  *eventlog.Writer
	ids     *events.IDSource

	frames   chan *frame    // decided and sealed, to be appended
	proposed chan *proposal // appended and proposed, to be answered
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	inFlight map[string]*draft // by what they must not share
	flying   int               // drafts between decision and answer
	idle     chan struct{}     // closed when flying reaches 0; nil while idle
	sealedAt int64             // last time given out

	adopted  atomic.Uint64 // how often messages came into the state past admission
	diverged atomic.Pointer[eventlog.DivergedError]
	broken   atomic.Pointer[memory.Error] // why nothing can be written until a restart
	brokenCh chan struct{}                // closed once broken is set
	counters Counters

	// subjects is held from making a subject's key until its key.created is
	// queued, so that nothing sealed under the key gets into the log before it.
	subjects  sync.Mutex
	announced map[keyring.KeyID]*draft // key.created that were queued and are not known to be in the log
}

// Counters count what the shard did since it started.
type Counters struct {
	Frames, Events, Duplicates, Conflicts, Adopted atomic.Uint64
}

const (
	defaultQueueItems = 20_000
	defaultQueueBytes = 64 << 20
	maxFrameItems     = 2000
)

// Start catches the state up with the log, begins the term and opens admission.
func Start(ctx context.Context, opt Options) (*Shard, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.MaxQueueItems == 0 {
		opt.MaxQueueItems = defaultQueueItems
	}
	if opt.MaxQueueBytes == 0 {
		opt.MaxQueueBytes = defaultQueueBytes
	}
	if opt.MaxFrameBytes == 0 {
		opt.MaxFrameBytes = events.MaxFrameBytes
	}
	s := &Shard{opt: opt, queue: newQueue(opt.MaxQueueItems, opt.MaxQueueBytes), ids: events.NewIDSource(opt.Now, opt.Rand),
		frames: make(chan *frame, 1), proposed: make(chan *proposal, 16), inFlight: map[string]*draft{}, announced: map[keyring.KeyID]*draft{}, brokenCh: make(chan struct{})}
	v := opt.State.View()
	deriver, err := derive.New(opt.Keys, v)
	if err != nil {
		return nil, fmt.Errorf("start shard %d: %w", opt.Shard, closeAfter(v, err))
	}
	if err := v.Close(); err != nil {
		return nil, err
	}
	s.deriver = deriver
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.wg.Add(3)
	go s.decideLoop(run)
	go s.appendLoop(run)
	go s.answerLoop(run)
	return s, nil
}

func closeAfter(c io.Closer, err error) error {
	_ = c.Close()
	return err
}

// Close stops admission, writes what was admitted, and stops. Past ctx what
// still waits is refused.
func (s *Shard) Close(ctx context.Context) error {
	s.queue.close()
	done := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.fail(s.queue.drop(), memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))
		s.cancel()
		<-done
	}
	s.cancel()
	// A frame that was cut short may have given its drafts back to a queue that
	// nobody takes from any more.
	s.fail(s.queue.drop(), memory.Errorf(memory.CodeUnavailable, "the node is shutting down"))
	return nil
}

// Pause stops writing after what is in flight has been applied. The returned
// function goes on. Admission continues until the queue is full.
func (s *Shard) Pause(ctx context.Context) (resume func(), err error) {
	s.queue.pause()
	// First what was taken and is not yet decided, then what is in flight.
	if err := errors.Join(s.queue.settled(ctx), s.drain(ctx)); err != nil {
		s.queue.resume()
		return nil, err
	}
	return sync.OnceFunc(s.queue.resume), nil
}

// drain waits until nothing is in flight.
func (s *Shard) drain(ctx context.Context) error {
	for {
		s.mu.Lock()
		idle := s.idle
		s.mu.Unlock()
		if idle == nil {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Shard) takeOff(drafts []*draft) {
	if len(drafts) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flying == 0 {
		s.idle = make(chan struct{})
	}
	s.flying += len(drafts)
	for _, d := range drafts {
		for _, k := range d.keysInFlight() {
			s.inFlight[k] = d
		}
	}
}

func (s *Shard) land(drafts []*draft) {
	if len(drafts) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range drafts {
		for _, k := range d.keysInFlight() {
			if s.inFlight[k] == d {
				delete(s.inFlight, k)
			}
		}
	}
	if s.flying -= len(drafts); s.flying == 0 {
		close(s.idle)
		s.idle = nil
	}
}

// refusal says why nothing can be admitted now.
func (s *Shard) refusal() *memory.Error {
	if d := s.diverged.Load(); d != nil {
		return memory.Errorf(memory.CodeLogDiverged, "writes are stopped: %v", d).WithHint("%s", d.Hint)
	}
	if e := s.broken.Load(); e != nil {
		return e
	}
	if s.opt.Refuse != nil {
		if e := s.opt.Refuse(); e != nil {
			return e
		}
	}
	s.mu.Lock()
	last := s.sealedAt
	s.mu.Unlock()
	if lag := time.Duration(last - s.opt.Now().UnixNano()); lag > maxClockLag {
		err := memory.Errorf(memory.CodeUnavailable, "the clock stands %s behind the last event", lag.Round(time.Second)).
			WithHint("set the clock right; writes go on when it has caught up")
		err.RetryAfter = lag
		return err
	}
	return nil
}

// Diverged returns why writes are stopped, or nil.
func (s *Shard) Diverged() *eventlog.DivergedError { return s.diverged.Load() }

// SetDiverged stops writes: log and state disagree.
func (s *Shard) SetDiverged(d *eventlog.DivergedError) { s.diverged.Store(d) }

// Counters returns the shard's counters.
func (s *Shard) Counters() *Counters { return &s.counters }

// QueueDepth is what waits for a frame.
func (s *Shard) QueueDepth() (items, bytes int) { return s.queue.depth() }

func (s *Shard) fail(drafts []*draft, err error) {
	for _, d := range drafts {
		d.finish(projections.EventResult{}, err)
	}
}
