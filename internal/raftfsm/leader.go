package raftfsm

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// leadership follows raft's transitions. A term counts as begun when a marker
// of that term has been applied here: then everything that earlier terms
// committed has been applied too.
type leadership struct {
	mu      sync.Mutex
	term    uint64        // the begun term; 0 when not leading
	changed chan struct{} // closed and replaced at each change
	out     chan bool     // newest transition, for the owner
}

func newLeadership() *leadership {
	return &leadership{changed: make(chan struct{}), out: make(chan bool, 1)}
}

func (l *leadership) set(term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == term {
		return
	}
	l.term = term
	close(l.changed)
	l.changed = make(chan struct{})
	select { // only the newest transition counts
	case <-l.out:
	default:
	}
	l.out <- term != 0
}

func (l *leadership) get() (term uint64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term, l.changed
}

// watchLeadership runs until ctx ends.
func (g *Group) watchLeadership(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case leads := <-g.raft.LeaderCh():
			g.leads.set(0)
			if leads {
				g.beginTerm(ctx)
			}
		}
	}
}

func (g *Group) beginTerm(ctx context.Context) {
	term := g.raft.CurrentTerm()
	_, index, err := g.proposer.propose(ctx, raft.Log{Extensions: markerExtension}).Wait(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		g.log.Warn("term has not begun", "term", term, "error", err)
	case err == nil && g.raft.CurrentTerm() == term && g.raft.State() == raft.Leader:
		g.log.Debug("term has begun", "term", term, "index", index)
		g.leads.set(term)
	}
}

// verifier shares one round of heartbeats among the readers that came before
// the round began. A reader that comes during a round waits for the next one:
// the running round says nothing about the time after its heartbeats left.
type verifier struct {
	verify func() error

	mu   sync.Mutex
	next *verifyRound // collects readers; nil if none wait
	wake chan struct{}
}

type verifyRound struct {
	done chan struct{}
	err  error
}

func newVerifier(verify func() error) *verifier {
	return &verifier{verify: verify, wake: make(chan struct{}, 1)}
}

// run serves rounds until ctx ends.
func (v *verifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			v.take().finish(ErrClosed)
			return
		case <-v.wake:
			if round := v.take(); round != nil {
				round.finish(v.verify())
			}
		}
	}
}

func (v *verifier) take() *verifyRound {
	v.mu.Lock()
	defer v.mu.Unlock()
	round := v.next
	v.next = nil
	return round
}

func (r *verifyRound) finish(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
}

// join waits for a round that begins after the call.
func (v *verifier) join(ctx context.Context) error {
	v.mu.Lock()
	if v.next == nil {
		v.next = &verifyRound{done: make(chan struct{})}
	}
	round := v.next
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
	select {
	case <-round.done:
		return round.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// VerifyLeader asks a quorum whether this replica still leads. Calls that come
// together share a round. Errors: ErrNotLeader, ErrClosed, ctx's.
func (g *Group) VerifyLeader(ctx context.Context) error {
	end, err := g.begin("verify leader")
	if err != nil {
		return err
	}
	defer end()
	return raftErr("verify leader", g.verifier.join(ctx))
}

// LinearizableIndex returns an index such that a read of a state at or behind it
// (see WaitApplied) sees everything that was acknowledged before the call. It
// waits until this term's first entry is applied. Dissertation of Ongaro,
// section 6.4. Errors: ErrNotLeader, ErrHalted, ErrClosed, ctx's.
func (g *Group) LinearizableIndex(ctx context.Context) (uint64, error) {
	end, err := g.begin("linearizable index")
	if err != nil {
		return 0, err
	}
	defer end()
	term, err := g.begunTerm(ctx, false)
	if err != nil {
		return 0, fmt.Errorf("raftfsm linearizable index: %w", err)
	}
	index := g.raft.CommitIndex()
	if err := g.verifier.join(ctx); err != nil {
		return 0, raftErr("linearizable index", err)
	}
	if g.raft.CurrentTerm() != term {
		return 0, fmt.Errorf("raftfsm linearizable index: %w: term %d is over", ErrNotLeader, term)
	}
	return index, nil
}

// begunTerm waits until this replica leads and its term has begun. With elect
// it also waits while another replica leads.
func (g *Group) begunTerm(ctx context.Context, elect bool) (uint64, error) {
	for {
		if err := g.fsm.progress.haltedErr(); err != nil {
			return 0, err
		}
		term, changed := g.leads.get()
		leads := g.raft.State() == raft.Leader
		if leads && term != 0 && term == g.raft.CurrentTerm() {
			return term, nil
		}
		if !leads && !elect {
			return 0, ErrNotLeader
		}
		select {
		case <-changed:
		case <-g.fsm.progress.haltCh:
		case <-g.closing:
			return 0, ErrClosed
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// WaitLeader waits until this replica leads and has applied everything that was
// committed before its term. Errors: ErrHalted, ErrClosed, ctx's.
func (g *Group) WaitLeader(ctx context.Context) error {
	end, err := g.begin("wait leader")
	if err != nil {
		return err
	}
	defer end()
	if _, err := g.begunTerm(ctx, true); err != nil {
		return fmt.Errorf("raftfsm wait leader: %w", err)
	}
	return nil
}

// LeaderCh delivers the newest transition: true when this replica leads and its
// term has begun, false when it does so no longer. It is never closed and holds
// one value; it is for one receiver.
func (g *Group) LeaderCh() <-chan bool { return g.leads.out }

// IsLeader tells whether this replica believes that it leads. Its term may not
// have begun yet.
func (g *Group) IsLeader() bool { return g.raft.State() == raft.Leader }

// Leader returns the leader as far as it is known here, else empty strings.
func (g *Group) Leader() (id, addr string) {
	a, i := g.raft.LeaderWithID()
	return string(i), string(a)
}

// Term returns the current Raft term.
func (g *Group) Term() uint64 { return g.raft.CurrentTerm() }
