package replica

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/internal/embed"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/settings"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is against hanging only.
const patience = 30 * time.Second

// shelf is what the replicas of a shard share: the log and the keys.
type shelf struct {
	t      testing.TB
	stream *eventlogtest.Fake
	keys   *keyring.Keyring
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	keys, err := keyring.Open(keyring.Options{Dir: t.TempDir(), AllowCreate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	return &shelf{t: t, stream: eventlogtest.NewFake(), keys: keys}
}

func (s *shelf) options(dir string) Options {
	return Options{ID: "n1", Dir: dir, Stream: s.stream, Keys: s.keys, Settings: settings.NewCache(s.keys)}
}

// rig is one replica with its views and a worker.
type rig struct {
	*Replica
	t      testing.TB
	stage  *stage
	views  *recorder
	worker *sentry
}

// open opens a replica whose leadership the test decides on.
func (s *shelf) open(dir string, change ...func(*Options)) *rig {
	s.t.Helper()
	r := &rig{t: s.t, views: newRecorder(), worker: newSentry()}
	opt := s.options(dir)
	opt.OpenGroup = func(o raftfsm.Options) (Group, error) {
		g, err := raftfsm.Open(o)
		if err != nil {
			return nil, err
		}
		r.stage = newStage(g)
		return r.stage, nil
	}
	for _, f := range change {
		f(&opt)
	}
	var err error
	if r.Replica, err = Open(s.t.Context(), opt); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(r.close)
	r.stage.awaitLeader(s.t)
	if err := r.Start(s.t.Context(), r.views, r.worker); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (r *rig) close() {
	if r.Replica == nil {
		return
	}
	if err := r.Replica.Close(); err != nil {
		r.t.Error(err)
	}
	if r.worker.inside.Load() != 0 {
		r.t.Error("a worker is left")
	}
	r.Replica = nil
}

// lead begins the next term and waits for its writer.
func (r *rig) lead() *ingest.Writer {
	r.t.Helper()
	r.stage.begin()
	return r.awaitWriter()
}

func (r *rig) awaitWriter() *ingest.Writer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := r.WaitWriter(ctx); err != nil {
		r.t.Fatal(err)
	}
	w, err := r.Writer()
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// stage is a Raft group of which the test says when it leads. Everything else is
// the group's.
type stage struct {
	Group
	changes chan raftfsm.Leadership
	term    atomic.Uint64
	propose atomic.Pointer[func(ctx context.Context, data []byte) *raftfsm.Future]
	given   chan struct{} // one for each time that the leadership was given up
	other   atomic.Bool   // n2 leads
}

func newStage(g Group) *stage {
	return &stage{Group: g, changes: make(chan raftfsm.Leadership), given: make(chan struct{}, 100)}
}

// awaitLeader waits until the group below can agree on commands.
func (s *stage) awaitLeader(t testing.TB) {
	t.Helper()
	for l := range s.Group.Leadership() {
		if l.Kind == raftfsm.TermBegan {
			s.term.Store(l.Term)
			return
		}
	}
	t.Fatal("nobody leads")
}

func (s *stage) Leadership() <-chan raftfsm.Leadership { return s.changes }
func (s *stage) Term() uint64                          { return s.term.Load() }

func (s *stage) Leader() (id, addr string) {
	if s.other.Load() {
		return "n2", "there"
	}
	return s.Group.Leader()
}

func (s *stage) begin() {
	s.changes <- raftfsm.Leadership{Kind: raftfsm.TermBegan, Term: s.term.Add(1)}
}

// lose returns when the replica has heard that it leads no more.
func (s *stage) lose() {
	s.changes <- raftfsm.Leadership{Kind: raftfsm.TermEnded, Term: s.term.Load()}
}

func (s *stage) Propose(ctx context.Context, data []byte) *raftfsm.Future {
	if f := s.propose.Load(); f != nil {
		return (*f)(ctx, data)
	}
	return s.Group.Propose(ctx, data)
}

func (s *stage) TransferLeadership(context.Context) error {
	s.given <- struct{}{}
	return nil
}

// recorder is views that note what they are told.
type recorder struct {
	mu      sync.Mutex
	loads   int
	applied []uint64 // sequences
	failed  error
	loading chan struct{} // each Load tells, and waits for let, if they are set
	let     chan struct{}
}

func newRecorder() *recorder { return &recorder{} }

func (v *recorder) OnApply(a *projections.Applied) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.applied = append(v.applied, a.Cursor.Seq)
}

func (v *recorder) Load(ctx context.Context) error {
	v.mu.Lock()
	loading, let, err := v.loading, v.let, v.failed
	v.loads++
	v.mu.Unlock()
	if loading != nil {
		loading <- struct{}{}
		select {
		case <-let:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func (v *recorder) seen() (loads int, applied []uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.loads, slices.Clone(v.applied)
}

// hold makes each Load wait from now on.
func (v *recorder) hold() (loading, let chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.loading, v.let = make(chan struct{}), make(chan struct{})
	return v.loading, v.let
}

// sentry is a worker that tells when it is posted and relieved.
type sentry struct {
	posted, relieved chan uint64 // the writer's term
	inside           atomic.Int32
	leaving, leave   chan struct{} // it tells that it was asked to end, and ends when leave is closed, if they are set
}

func newSentry() *sentry {
	return &sentry{posted: make(chan uint64, 100), relieved: make(chan uint64, 100)}
}

func (s *sentry) Work(ctx context.Context, w *ingest.Writer) {
	if s.inside.Add(1) != 1 {
		panic("two terms at once")
	}
	s.posted <- w.Term()
	<-ctx.Done()
	if s.leaving != nil {
		s.leaving <- struct{}{}
		<-s.leave
	}
	s.relieved <- w.Term()
	s.inside.Add(-1)
}

func receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

func (r *rig) namespace(name string) {
	r.t.Helper()
	if _, err := r.awaitWriter().CreateNamespace(r.t.Context(), name, nil, builtinSpace(r.t)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) capture(text string) error {
	w, err := r.Writer()
	if err != nil {
		return err
	}
	res, err := w.Capture(context.Background(), "team", []ingest.Item{{Capture: memory.Capture{Agent: "a", Text: text}}}, memory.WaitApplied)
	if err != nil {
		return err
	}
	if e := res.Results[0].Error; e != nil {
		return memory.Errorf(e.Code, "%s", e.Detail)
	}
	return nil
}

func (r *rig) mustCapture(text string) {
	r.t.Helper()
	if err := r.capture(text); err != nil {
		r.t.Fatal(err)
	}
}

func builtinSpace(t testing.TB) string {
	t.Helper()
	e, err := embed.Open(t.Context(), embed.Config{}, embed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return settings.EncodeSpace(e.Space())
}

func hashOf(t testing.TB, s *projections.State) (string, projections.Cursor) {
	t.Helper()
	v := s.View()
	defer v.Close()
	return v.Hash().String(), v.Cursor()
}

// sameAsLog folds the log into an empty state and compares.
func (s *shelf) sameAsLog(state *projections.State) {
	s.t.Helper()
	fresh, err := projections.Open(projections.Options{Dir: filepath.Join(s.t.TempDir(), "state")})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = replay(s.t.Context(), s.stream, s.keys, fresh, 0, nil)
	want, at := hashOf(s.t, fresh)
	if err = errors.Join(err, fresh.Close()); err != nil {
		s.t.Fatal(err)
	}
	if got, cur := hashOf(s.t, state); got != want || cur.Seq != at.Seq || cur.Chain != at.Chain {
		s.t.Fatalf("the log folds to %s at %d, the state is %s at %d", want, at.Seq, got, cur.Seq)
	}
}

// foreign is a frame of another term behind the log's end.
func (s *shelf) foreign(at projections.Cursor, term uint64) []byte {
	s.t.Helper()
	e := events.Envelope{Header: events.Header{Type: events.TypeLeaderBegan, Schema: events.TypeLeaderBegan.Schema(),
		Event: events.NewIDSource(time.Now, nil).New(), SealedAt: time.Now().UnixNano()}, Payload: events.Began{Term: term}.Encode()}
	e.OccurredAt = e.SealedAt
	inside := [][]byte{e.Encode()}
	f := events.Frame{Feature: events.FeatureOf(inside), Epoch: at.Epoch, Term: term, Seq: at.Seq + 1, Previous: at.Chain, Events: inside}
	return f.Encode()
}
