package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mneme/internal/eventlog"
	"mneme/internal/ingest"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// leader keeps a term running for as long as this replica leads its group. One
// goroutine decides when a term begins and ends; nobody else does.
type leader struct {
	group   Group
	workers []Worker
	// start opens the writer of a Raft term.
	start func(ctx context.Context, term uint64) (*ingest.Writer, error)
	room  *room           // says why no term begins on a full disk
	again <-chan struct{} // the state goes on after a halt
	log   *slog.Logger

	holds   chan *hold
	quit    chan struct{}
	quitCtx context.Context // bounds how long the last writer may take; set before quit
	stop    sync.Once
	done    chan struct{}

	mu       sync.Mutex
	writer   *ingest.Writer // the open one, or nil
	failed   error          // why the last term has not begun, unless one has since
	diverged *eventlog.DivergedError
	changed  chan struct{} // closed and replaced when writer, failed or the leadership change
}

// hold keeps the replica without a writer.
type hold struct {
	ctx         context.Context
	begun, over chan struct{}
}

func newLeader(group Group, room *room, again <-chan struct{}, log *slog.Logger, start func(context.Context, uint64) (*ingest.Writer, error)) *leader {
	return &leader{group: group, room: room, again: again, log: log, start: start, holds: make(chan *hold), quit: make(chan struct{}),
		done: make(chan struct{}), changed: make(chan struct{})}
}

// How long the leader waits before it begins a term again that ended by itself.
const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
)

// run follows the leadership of the group until the leader is stopped.
func (l *leader) run() {
	defer close(l.done)
	changes := l.group.Leadership()
	var leads uint64 // the Raft term that this replica leads; 0 = none
	var now *term
	var pausing <-chan time.Time
	for pause := pauseMin; ; {
		// A term that Raft has left already is over, too: the news is on its way.
		if now == nil && pausing == nil && leads != 0 && leads == l.group.Term() {
			now = l.begin(leads)
		}
		select {
		case c, ok := <-changes:
			if !ok {
				changes = nil
			}
			before := leads
			if leads = leadsNow(c, leads); leads != before {
				now, pausing, pause = now.abandon(), nil, pauseMin // what the last term met says nothing of this one
				l.forgetFailure()
			}
			l.wake() // another replica may lead
		case <-now.ended():
			if now.opened {
				pause = pauseMin
			}
			now, pausing, pause = nil, time.After(pause), min(2*pause, pauseMax)
		case <-pausing:
			pausing = nil
		case <-l.again:
			l.forgetFailure()
			if pause = pauseMin; now == nil {
				pausing = time.After(pause)
			}
		case h := <-l.holds:
			now = now.close(h.ctx)
			l.forgetFailure()
			close(h.begun)
			select {
			case <-h.over:
				pausing, pause = nil, pauseMin
			case <-l.quit:
				return
			}
		case <-l.quit:
			now.close(l.quitCtx)
			return
		}
	}
}

// leadsNow is the term that this replica leads after a change; c is zero when
// the group is closed.
func leadsNow(c raftfsm.Leadership, leads uint64) uint64 {
	switch c.Kind {
	case raftfsm.TermBegan:
		return c.Term
	case raftfsm.LeaderKnown:
		return leads
	}
	return 0
}

func (l *leader) begin(number uint64) *term {
	ctx, cancel := context.WithCancel(context.Background())
	t := &term{leader: l, number: number, cancel: cancel, done: make(chan struct{})}
	go t.run(ctx)
	return t
}

// ended is closed when a term has ended; nil is none.
func (t *term) ended() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.done
}

// close ends a term in good order: what was admitted is written. It returns nil,
// for there is no term then.
func (t *term) close(ctx context.Context) *term {
	if t != nil {
		t.end(func(w *ingest.Writer) { _ = w.Close(ctx) })
	}
	return nil
}

// abandon ends a term that this replica leads no longer.
func (t *term) abandon() *term {
	if t != nil {
		t.end(func(w *ingest.Writer) { w.Abandon(errNotLeading) })
	}
	return nil
}

// publish makes a writer the open one. Where log and state were found to disagree
// it refuses writes from the start.
func (l *leader) publish(w *ingest.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.diverged != nil && w.Diverged() == nil {
		w.SetDiverged(l.diverged)
	}
	l.writer, l.failed = w, nil
	l.wakeLocked()
}

// withdraw ends what publish began. The next term must not forget what this one
// found out.
func (l *leader) withdraw(w *ingest.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := w.Diverged(); d != nil {
		l.diverged = d
	}
	l.writer = nil
	l.wakeLocked()
}

// notBegun notes why a term could not begin, and says it unless that is what was said before.
func (l *leader) notBegun(term uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil || l.failed.Error() != err.Error() {
		l.log.Error("the term has not begun", "term", term, "err", err)
	}
	l.failed = err
	l.wakeLocked()
}

func (l *leader) forgetFailure() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = nil
}

func (l *leader) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *leader) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// now returns the open writer, or why there is none as far as that is known, and
// a channel that is closed when that changes.
func (l *leader) now() (w *ingest.Writer, failed error, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer, l.failed, l.changed
}

// wait waits until a writer is open. It is an error that the term could not
// begin, but for its being over already, that applying waits for room, and what
// gone says, which is asked again when the leadership changes.
func (l *leader) wait(ctx context.Context, gone func() error) error {
	for {
		w, failed, changed := l.now()
		full, room := l.room.now()
		switch {
		case w != nil:
			return nil
		case failed != nil && !errors.Is(failed, raftfsm.ErrNotLeader):
			return failed
		case full != nil:
			return noSpace(full)
		}
		if err := gone(); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-room:
		case <-l.group.HaltedCh():
			if halted := l.group.Halted(); halted != nil { // else it goes on
				return halted
			}
		case <-l.done:
			return raftfsm.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// without runs f while there is no writer. Terms begin again afterwards.
func (l *leader) without(ctx context.Context, f func() error) error {
	h := &hold{ctx: ctx, begun: make(chan struct{}), over: make(chan struct{})}
	select {
	case l.holds <- h:
	case <-l.done:
		return raftfsm.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	<-h.begun
	defer close(h.over)
	return f()
}

// close ends the present term: past ctx what still waits is refused.
func (l *leader) close(ctx context.Context) {
	l.stop.Do(func() {
		l.quitCtx = ctx
		close(l.quit)
	})
	<-l.done
}

// divergence is how log and state disagree, or nil.
func (l *leader) divergence() *eventlog.DivergedError {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer != nil {
		if d := l.writer.Diverged(); d != nil {
			return d
		}
	}
	return l.diverged
}

// setDivergence stops writes, now and in terms to come; nil lets the next term
// begin without.
func (l *leader) setDivergence(d *eventlog.DivergedError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.diverged = d
	if d != nil && l.writer != nil {
		l.writer.SetDiverged(d)
	}
}

// refusal says why nothing can be written while no writer is open.
func (l *leader) refusal(shard uint16) *memory.Error {
	if d := l.divergence(); d != nil {
		return memory.Errorf(memory.CodeLogDiverged, "writes are stopped: %v", d).WithHint("%s", d.Hint)
	}
	if full, _ := l.room.now(); full != nil {
		return noSpace(full)
	}
	_, failed, _ := l.now()
	why := "its writer has not begun"
	if failed != nil {
		why = fmt.Sprintf("its writer could not begin: %v", failed)
	} else if id, _ := l.group.Leader(); id != "" {
		why = fmt.Sprintf("%s; the shard's leader is %s", why, id)
	}
	e := memory.Errorf(memory.CodeUnavailable, "shard %d takes no writes here for now: %s", shard, why).
		WithHint("nothing acknowledged is lost; send it again with the same id").WithCause(failed)
	e.RetryAfter = time.Second
	return e
}

// noSpace says that nothing is written because applying waits for room.
func noSpace(full error) *memory.Error {
	return memory.Errorf(memory.CodeNoSpace, "%v", full).WithHint("free some space; reads go on, nothing is lost").WithCause(full)
}
