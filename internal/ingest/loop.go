package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/eventlog"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/internal/spans"
	"mneme/memory"
)

// loop drives a round: it carries out what the round says and brings back the
// answers. Everything that blocks or knows the time is here.
type loop struct {
	stream eventlog.Stream
	group  Proposer
	state  *projections.State
	round  *round
	wake   <-chan struct{}

	inputs  chan input
	futures chan proposed
	took    func(Step, time.Duration, trace.Span)
	begun   time.Time
	first   chan error    // whether the first round opened
	giveUp  chan error    // capacity 1: the owner waits no longer
	done    chan struct{} // closed when everything owed was answered
	wg      sync.WaitGroup

	mu  sync.Mutex
	why error
}

// proposed is a command that Raft has yet to answer.
type proposed struct {
	*raftfsm.Future
	at       time.Time
	watchers watchers
}

// At most one answer of the log and maxPending of Raft, with those of a term
// that ended, are under way: posting an input never blocks.
const maxInputs = 4 * maxPending

func newLoop(opt Options, r *round, wake <-chan struct{}) *loop {
	return &loop{stream: opt.Stream, group: opt.Group, state: opt.State, round: r, wake: wake,
		inputs: make(chan input, maxInputs), futures: make(chan proposed, maxInputs), took: opt.Took, begun: time.Now(),
		first: make(chan error, 1), giveUp: make(chan error, 1), done: make(chan struct{})}
}

// run steps until nothing is owed and nothing more can come.
func (l *loop) run(ctx context.Context, in input) {
	ctx, cancel := context.WithCancel(ctx)
	l.wg.Go(func() { l.answers(ctx) })
	defer func() {
		cancel()
		close(l.futures)
		l.wg.Wait()
		l.say(errEndedEarly)
		l.round.horizon.close(memory.Errorf(memory.CodeUnavailable, "the writer was closed"))
		close(l.done)
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		for _, out := range l.round.step(time.Since(l.begun), in) {
			l.execute(ctx, out)
		}
		if l.round.finished() {
			return
		}
		var err error
		if in, err = l.next(timer); err != nil {
			cancel() // an append under way gives up, too
			in = abandon{err}
		}
	}
}

var errEndedEarly = errors.New("it was closed before it opened")

// next waits for an input.
func (l *loop) next(timer *time.Timer) (input, error) {
	select {
	case in := <-l.inputs:
		return in, nil
	case err := <-l.giveUp:
		return nil, err
	default:
	}
	if l.round.ready() {
		return work{}, nil
	}
	var due <-chan time.Time
	if at, ok := l.round.wake(); ok {
		timer.Reset(at - time.Since(l.begun))
		due = timer.C
	}
	select {
	case in := <-l.inputs:
		return in, nil
	case err := <-l.giveUp:
		return nil, err
	case <-l.wake:
	case <-due:
	}
	return work{}, nil
}

func (l *loop) execute(ctx context.Context, out output) {
	switch out := out.(type) {
	case sendFrame:
		l.wg.Go(func() {
			began := time.Now()
			err := l.stream.Append(ctx, out.data, out.last)
			ended := time.Now()
			l.took(StepAppend, ended.Sub(began), out.watchers.first())
			if !out.again {
				l.tell(out.watchers, spans.Queue, time.Time{}, began)
			}
			l.tell(out.watchers, spans.Append, began, ended)
			l.inputs <- appended{out.sending, err}
		})
	case readLog:
		l.wg.Go(func() { l.inputs <- survey(ctx, l.stream, l.state, out) })
	case propose:
		began := time.Now()
		l.futures <- proposed{l.group.Propose(ctx, out.command), began, out.watchers}
	case opened, stopped:
		l.say(nil)
	case stalled:
		l.say(out.err)
	case ended:
		l.mu.Lock()
		l.why = out.err
		l.mu.Unlock()
		l.say(out.err)
	}
}

// answers brings back Raft's answers in order.
func (l *loop) answers(ctx context.Context) {
	for f := range l.futures {
		res, _, err := f.Wait(ctx)
		ended := time.Now()
		l.took(StepApply, ended.Sub(f.at), f.watchers.first())
		if err == nil {
			l.tell(f.watchers, spans.Agree, f.at, f.Agreed())
			l.tell(f.watchers, spans.Apply, f.Agreed(), ended)
		}
		l.inputs <- applied{res, err}
	}
}

// say tells Start what became of the first round.
func (l *loop) say(err error) {
	select {
	case l.first <- err:
	default:
	}
}

func (l *loop) awaitOpen(ctx context.Context) error {
	select {
	case err := <-l.first:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abandon ends the loop at once and waits for it.
func (l *loop) abandon(err error) {
	select {
	case l.giveUp <- err:
	default:
	}
	<-l.done
}

func (l *loop) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

var errEnough = errors.New("enough")

// survey reads what the log holds behind a sequence, at most surveyBytes or
// surveyItems of it.
func survey(ctx context.Context, stream eventlog.Stream, state *projections.State, q readLog) surveyed {
	info, err := stream.Info(ctx)
	if err != nil {
		return surveyed{err: err}
	}
	out := surveyed{last: info.Last, leader: info.Leader, passing: info.Passing}
	if q.check {
		v := state.View()
		if out.err = errors.Join(CheckLog(ctx, stream, v), v.Close()); out.err != nil {
			return out
		}
	}
	switch {
	case q.identity != "" && info.Identity != q.identity:
		out.err = diverged(eventlog.KindIdentity, 0, "the stream was created again: identity "+info.Identity+", was "+q.identity)
	case info.Last < q.after:
		out.err = diverged(eventlog.KindSuffixLost, info.Last+1, "the log is shorter than what was written to it")
	}
	if out.err != nil || info.Last == q.after {
		return out
	}
	size := 0
	err = stream.Read(ctx, q.after+1, info.Last, func(m eventlog.Message) error {
		out.messages = append(out.messages, m)
		if size += len(m.Data); size >= surveyBytes || len(out.messages) >= surveyItems {
			return errEnough
		}
		return nil
	})
	var gap *eventlog.GapError
	switch {
	case errors.As(err, &gap):
		out.err = diverged(eventlog.KindGap, gap.Want, gap.Error())
	case !errors.Is(err, errEnough):
		out.err = err
	}
	return out
}

func diverged(kind string, seq uint64, detail string) *eventlog.DivergedError {
	return &eventlog.DivergedError{Kind: kind, Seq: seq, Detail: detail,
		Hint: "memctl log verify shows the extent; memctl log repair writes the missing messages again from state"}
}
