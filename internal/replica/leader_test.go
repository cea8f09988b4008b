package replica

import (
	"context"
	"errors"
	"testing"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/eventlog/eventlogtest"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Open waited until the node led: a follower could not start, and nobody could
// read from it.
func TestFollowerServesReadsWithoutLeading(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	if loads, _ := r.views.seen(); loads != 1 {
		t.Errorf("%d loads", loads)
	}
	v := r.State().View()
	if list := v.Namespaces(); len(list) != 0 {
		t.Errorf("%v", list)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	_, err := r.Writer()
	if e := memory.AsError(err); err == nil || e.Code != memory.CodeUnavailable || e.RetryAfter == 0 || r.Leads() {
		t.Errorf("a follower writes: %v", err)
	}
	if err := r.Linear(t.Context()); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a follower's read is linearizable: %v", err)
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.WaitWriter(short); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s.stream.Messages()[1] != nil {
		t.Error("a follower wrote to the log")
	}
	r.lead()
	r.namespace("team")
	r.mustCapture("now it leads")
	if n := receive(t, "the worker", r.worker.posted); n != r.stage.Term() || !r.Leads() {
		t.Errorf("the worker runs in term %d, the term is %d", n, r.stage.Term())
	}
}

// A lost term stops its writer and its workers before the next ones start, and
// each term has them once.
func TestWorkersRunOncePerTerm(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	for range 3 {
		w := r.lead()
		term := r.stage.Term()
		if got := receive(t, "the worker", r.worker.posted); got != term || w.Term() != term {
			t.Fatalf("worker of %d, writer of %d in term %d", got, w.Term(), term)
		}
		r.stage.lose()
		// The leader hears nothing more before the term has ended.
		r.stage.changes <- raftfsm.Leadership{Kind: raftfsm.LeaderKnown, Term: term, LeaderID: "n2"}
		select {
		case got := <-r.worker.relieved:
			if got != term {
				t.Errorf("the worker of term %d ended in term %d", got, term)
			}
		default:
			t.Fatal("the term is over and its worker is not")
		}
		select {
		case <-w.Ended():
		default:
			t.Error("the term is over and its writer is not")
		}
		if _, err := r.Writer(); err == nil {
			t.Error("the writer of a lost term is handed out")
		}
	}
	if len(r.worker.posted) != 0 {
		t.Error("a worker ran twice in a term")
	}
}

// TestTermEndedBeforeItsWorkers: a term did not wait for workers that take their
// time to end, so they ran on beside a writer that was given up, and beside those of
// the next term.
func TestTermEndedBeforeItsWorkers(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	r.worker.leaving, r.worker.leave = make(chan struct{}), make(chan struct{})
	w := r.lead()
	receive(t, "the worker", r.worker.posted)
	r.stage.lose()
	receive(t, "the worker to be asked", r.worker.leaving)
	select { // the one wait of this test: nothing says that something has not happened
	case r.stage.changes <- raftfsm.Leadership{Kind: raftfsm.LeaderKnown, Term: r.stage.Term(), LeaderID: "n2"}:
		t.Error("the term is over and its worker is not")
	case <-w.Ended():
		t.Error("the writer was given up under its worker")
	case <-time.After(100 * time.Millisecond):
	}
	close(r.worker.leave)
	receive(t, "the worker's end", r.worker.relieved)
	receive(t, "the writer's end", w.Ended())
	r.worker.leaving = nil
}

// A term that was lost while its writer opened, say because its first frame waits to
// be applied, begins no work.
func TestTermLostWhileItsWriterOpens(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	asked := make(chan struct{}, 1)
	unanswered := func(context.Context, []byte) *raftfsm.Future {
		select {
		case asked <- struct{}{}:
		default:
		}
		f, _ := raftfsm.NewFuture()
		return f
	}
	r.stage.propose.Store(&unanswered)
	r.stage.begin()
	receive(t, "the writer that opens", asked)
	r.stage.lose()
	r.stage.propose.Store(nil)
	r.lead()
	if got := receive(t, "the worker", r.worker.posted); got != r.stage.Term() || len(r.worker.posted) != 0 {
		t.Errorf("a worker of term %d, and %d more", got, len(r.worker.posted))
	}
}

// After a Raft group gave up its leadership for a moment, say on a full disk,
// nothing could be written until the node was started again.
func TestWriterThatEndsIsFollowedByTheNext(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	over := r.lead()
	r.namespace("team")
	r.mustCapture("before")
	refused := func(context.Context, []byte) *raftfsm.Future {
		f, resolve := raftfsm.NewFuture()
		resolve(nil, 0, raftfsm.ErrNotLeader)
		return f
	}
	r.stage.propose.Store(&refused)
	if err := r.capture("during"); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
		t.Fatalf("the term is over: %v", err)
	}
	r.stage.propose.Store(nil)
	receive(t, "the first worker", r.worker.posted)
	receive(t, "its end", r.worker.relieved)
	receive(t, "the next worker", r.worker.posted)
	if w := r.awaitWriter(); w == over {
		t.Error("the writer that ended is handed out")
	}
	r.mustCapture("after")
	s.sameAsLog(r.State())
}

// The next term must not forget that log and state disagree.
func TestNextTermKeepsTheDivergence(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	over := r.lead()
	r.namespace("team")
	d := &eventlog.DivergedError{Kind: eventlog.KindHash, Detail: "found by the scrub", Hint: "repair"}
	over.SetDiverged(d)
	r.stage.lose()
	if err := r.capture("between the terms"); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("%v", err)
	}
	if w := r.lead(); w == over || w.Diverged() != d || r.Diverged() != d {
		t.Errorf("the next term has %v", w.Diverged())
	}
	if err := r.capture("x"); memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("%v", err)
	}
	// A repair ends it.
	err := r.WithoutWriter(t.Context(), func() error {
		if _, err := r.Writer(); err == nil || r.worker.inside.Load() != 0 {
			t.Error("there is a writer, or a worker")
		}
		r.SetDiverged(nil)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.awaitWriter()
	r.mustCapture("repaired")
}

// A leader that met its successor's frame in the log stopped writing, and kept the
// Raft group to itself for ever.
func TestDeposedWriterGivesUpLeadership(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	w := r.lead()
	r.namespace("team")
	theirs := s.foreign(r.State().Cursor(), r.stage.Term()+5)
	s.stream.SecondWriter(func(uint64) []byte { return theirs })
	s.stream.Inject(eventlogtest.FaultSecondWriter)
	if err := r.capture("too late"); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
		t.Fatal(err)
	}
	receive(t, "the leadership to be given up", r.stage.given)
	if deposed := (*ingest.DeposedError)(nil); !errors.As(w.Err(), &deposed) {
		t.Errorf("the writer ended with %v", w.Err())
	}
	// As long as Raft does not know better it is tried again, and given up again.
	receive(t, "the leadership to be given up again", r.stage.given)
	r.stage.lose()
	r.stage.term.Add(10)
	r.lead()
	r.mustCapture("behind it")
	s.sameAsLog(r.State())
}

// Whoever waits for a writer that cannot open is told why, and it is tried again.
func TestWaitingForAWriterThatCannotOpen(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	s.stream.Offline(1)
	r.stage.begin()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.WaitWriter(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("%v", err)
	}
	if _, err := r.Writer(); err != nil { // it may be open by now
		if e := memory.AsError(err); e.Code != memory.CodeUnavailable {
			t.Error(err)
		}
	}
	if got := receive(t, "the next attempt", r.worker.posted); got != r.stage.Term() {
		t.Errorf("worker of term %d", got)
	}
}

// TestWaitingForATermOfAReplicaThatFollows had no end as long as it did so. While nobody else is known to lead it waits.
func TestWaitingForATermOfAReplicaThatFollows(t *testing.T) {
	r := newShelf(t).open(t.TempDir())
	asked, waited := make(chan struct{}, 10), make(chan error, 1)
	go func() {
		waited <- r.leader.wait(t.Context(), func() error {
			defer func() { asked <- struct{}{} }()
			return r.othersLead()
		})
	}()
	receive(t, "the question who leads", asked)
	r.stage.other.Store(true)
	r.stage.changes <- raftfsm.Leadership{Kind: raftfsm.LeaderKnown, Term: r.stage.Term(), LeaderID: "n2"}
	if err := receive(t, "the end", waited); !errors.Is(err, raftfsm.ErrNotLeader) {
		t.Error(err)
	}
	if err := r.WaitTerm(t.Context()); !errors.Is(err, raftfsm.ErrNotLeader) {
		t.Error(err)
	}
	r.stage.other.Store(false)
	r.stage.begin()
	if err := r.WaitTerm(t.Context()); err != nil {
		t.Error(err)
	}
}

// A linearizable read waited for what Raft had committed. What was accepted is in
// the log before Raft hears of it: the read missed it.
func TestLinearizableReadSeesWhatWasAccepted(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	// The writer's term has to be Raft's.
	r.stage.term.Add(^uint64(0))
	w := r.lead()
	r.namespace("team")
	hold := make(chan struct{})
	held := func(ctx context.Context, data []byte) *raftfsm.Future {
		if rg, err := projections.DecodeRange(data); err == nil && len(rg.Frames) > 0 {
			<-hold
		}
		return r.stage.Group.Propose(ctx, data)
	}
	r.stage.propose.Store(&held)
	res, err := w.Capture(t.Context(), "team", []ingest.Item{{Capture: memory.Capture{Agent: "a", Text: "it was accepted"}}}, memory.WaitAccepted)
	if err != nil || res.Results[0].Error != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.Linear(short); err == nil {
		t.Error("the read does not wait for what was accepted")
	}
	close(hold)
	if err := r.Linear(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.sameAsLog(r.State())
}

// What was admitted is written before the replica stops.
func TestStopWritesWhatWasAdmitted(t *testing.T) {
	s := newShelf(t)
	r := s.open(t.TempDir())
	w := r.lead()
	r.namespace("team")
	resume, err := w.Pause(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { got <- r.capture("waits in the queue") }()
	for n := 0; n == 0; n, _ = w.QueueDepth() {
	}
	stopped := make(chan struct{})
	go func() { r.Stop(t.Context()); close(stopped) }()
	resume()
	if err := receive(t, "the capture", got); err != nil {
		t.Error(err)
	}
	receive(t, "the end", stopped)
	if err := r.WaitWriter(t.Context()); !errors.Is(err, raftfsm.ErrClosed) {
		t.Error(err)
	}
	if err := r.WithoutWriter(t.Context(), nil); !errors.Is(err, raftfsm.ErrClosed) {
		t.Error(err)
	}
}
