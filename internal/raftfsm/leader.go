package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// Leadership is one change of who leads the group, as this replica sees it.
type Leadership struct {
	Kind LeadershipKind
	Term uint64
	// LeaderID and LeaderAddr name the leader; empty if nobody is known to lead.
	LeaderID, LeaderAddr string
}

// LeadershipKind says what changed.
type LeadershipKind int

const (
	// TermBegan: this replica leads Term and has applied everything that earlier
	// terms committed.
	TermBegan LeadershipKind = iota + 1
	// TermEnded: this replica leads Term no longer. It follows each TermBegan
	// before the next one comes.
	TermEnded
	// LeaderKnown: another replica leads Term, or nobody is known to.
	LeaderKnown
)

func (k LeadershipKind) String() string {
	switch k {
	case TermBegan:
		return "term began"
	case TermEnded:
		return "term ended"
	case LeaderKnown:
		return "leader known"
	default:
		return fmt.Sprintf("LeadershipKind(%d)", int(k))
	}
}

// leadership follows raft's transitions. A term counts as begun when a marker
// of that term has been applied here: then everything that earlier terms
// committed has been applied too. It is safe for concurrent use.
type leadership struct {
	mu      sync.Mutex
	seen    bool          // raft has told something
	changes atomic.Uint64 // how often another leader became known, or a term began here
	elected uint64        // the term that this replica was elected in; 0 when not leading
	begun   uint64        // the begun term; 0 when not leading
	other   Leadership    // the last LeaderKnown
	queue   []Leadership  // what the owner has not taken yet
	changed chan struct{} // closed and replaced at each change of elected or begun
	pending chan struct{} // the queue is not empty
	out     chan Leadership
}

func newLeadership() *leadership {
	return &leadership{changed: make(chan struct{}), pending: make(chan struct{}, 1), out: make(chan Leadership)}
}

// observeState takes raft's new state. term is that of an election just won.
func (l *leadership) observeState(leads bool, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = true
	if l.begun != 0 {
		l.pushLocked(Leadership{Kind: TermEnded, Term: l.begun})
	}
	l.elected, l.begun = 0, 0
	if leads {
		l.elected = term
	}
	l.wakeLocked()
}

// observeLeader takes who leads, other than this replica.
func (l *leadership) observeLeader(term uint64, id, addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = true
	l.knownLocked(Leadership{Kind: LeaderKnown, Term: term, LeaderID: id, LeaderAddr: addr})
}

// catchUp tells what raft became before it was observed.
func (l *leadership) catchUp(look func() (leads bool, now Leadership)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen {
		return // newer, and in order
	}
	if leads, now := look(); leads {
		l.elected = now.Term
		l.wakeLocked()
	} else if now.LeaderID != "" {
		l.knownLocked(now)
	}
}

func (l *leadership) knownLocked(now Leadership) {
	if now == l.other || (now.LeaderID == "" && l.other.LeaderID == "") {
		return
	}
	l.other = now
	if now.LeaderID != "" {
		l.changes.Add(1)
	}
	l.pushLocked(now)
}

// begin notes that a marker of term has been applied.
func (l *leadership) begin(term uint64, self Leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.elected != term || l.begun != 0 {
		return
	}
	l.begun, l.other = term, Leadership{}
	l.changes.Add(1)
	l.pushLocked(self)
	l.wakeLocked()
}

func (l *leadership) pushLocked(c Leadership) {
	l.queue = append(l.queue, c)
	select {
	case l.pending <- struct{}{}:
	default:
	}
}

// wake has who waits for a term look again.
func (l *leadership) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *leadership) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *leadership) get() (elected, begun uint64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.elected, l.begun, l.changed
}

// deliver hands the queue to the owner, in order, until ctx ends.
func (l *leadership) deliver(ctx context.Context) {
	defer close(l.out)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.pending:
		}
		l.mu.Lock()
		queue := l.queue
		l.queue = nil
		l.mu.Unlock()
		for _, c := range queue {
			select {
			case l.out <- c:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Leadership delivers each change of who leads, in order and without gaps, from
// Open on; one that nobody has taken yet waits. It is for one receiver. Close
// closes it, which also ends a term that this replica leads.
func (g *Group) Leadership() <-chan Leadership { return g.leads.out }

// observeRaft makes raft tell its transitions. The filter runs in raft's own
// goroutine at each of them, when the term is still the transition's; a channel
// could lose one or block raft.
func (g *Group) observeRaft() {
	self := raft.ServerID(g.opt.ID)
	g.raft.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		switch x := o.Data.(type) {
		case raft.RaftState:
			g.leads.observeState(x == raft.Leader, o.Raft.CurrentTerm())
		case raft.LeaderObservation:
			if x.LeaderID != self {
				g.leads.observeLeader(o.Raft.CurrentTerm(), string(x.LeaderID), string(x.LeaderAddr))
			}
		}
		return false
	}))
	g.leads.catchUp(func() (bool, Leadership) {
		addr, id := g.raft.LeaderWithID()
		return g.raft.State() == raft.Leader,
			Leadership{Kind: LeaderKnown, Term: g.raft.CurrentTerm(), LeaderID: string(id), LeaderAddr: string(addr)}
	})
}

// markerRetry is how long a leader waits before it offers the marker of its term
// again (raft may have refused it during a transfer that then failed).
const markerRetry = 20 * time.Millisecond

// beginTerms runs until ctx ends.
func (g *Group) beginTerms(ctx context.Context) {
	for {
		elected, begun, changed := g.leads.get()
		var again <-chan time.Time
		if elected != 0 && begun == 0 && g.Halted() == nil && !g.beginTerm(ctx, elected) {
			again = time.After(markerRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

// beginTerm sends a marker through the log and tells whether it came back.
func (g *Group) beginTerm(ctx context.Context, term uint64) bool {
	_, index, err := g.proposer.propose(ctx, raft.Log{Extensions: markerExtension}).Wait(ctx)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("term has not begun", "term", term, "error", err)
		}
		return false
	}
	g.log.Debug("term has begun", "term", term, "index", index)
	addr := string(g.opt.Transport.LocalAddr())
	g.leads.begin(term, Leadership{Kind: TermBegan, Term: term, LeaderID: g.opt.ID, LeaderAddr: addr})
	return true
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
	return ReadIndex(ctx, groupReads{g})
}

// ReadSource is a replica as a linearizable read asks it.
type ReadSource interface {
	// BegunTerm is the term that this replica leads and of which it has applied the
	// first entry. Errors: ErrNotLeader, and what ends the replica.
	BegunTerm(ctx context.Context) (uint64, error)
	CommitIndex() uint64
	// VerifyLeader returns once a majority has said, after the call, that this
	// replica leads. Errors: ErrNotLeader, and what ends the replica.
	VerifyLeader(ctx context.Context) error
	CurrentTerm() uint64
}

// ReadIndex is the rule of LinearizableIndex. The commit index is taken before a
// majority is asked: what is committed later was not acknowledged before the call.
func ReadIndex(ctx context.Context, s ReadSource) (uint64, error) {
	term, err := s.BegunTerm(ctx)
	if err != nil {
		return 0, fmt.Errorf("raftfsm linearizable index: %w", err)
	}
	index := s.CommitIndex()
	if err := s.VerifyLeader(ctx); err != nil {
		return 0, err
	}
	if s.CurrentTerm() != term {
		return 0, fmt.Errorf("raftfsm linearizable index: %w: term %d is over", ErrNotLeader, term)
	}
	return index, nil
}

// groupReads is a group as a ReadSource.
type groupReads struct{ g *Group }

func (r groupReads) BegunTerm(ctx context.Context) (uint64, error) { return r.g.begunTerm(ctx, false) }

func (r groupReads) CommitIndex() uint64 { return r.g.raft.CommitIndex() }

func (r groupReads) CurrentTerm() uint64 { return r.g.raft.CurrentTerm() }

func (r groupReads) VerifyLeader(ctx context.Context) error {
	err := r.g.verifier.join(ctx)
	if errors.Is(err, raft.ErrLeadershipLost) {
		return fmt.Errorf("raftfsm linearizable index: %w: %w", ErrNotLeader, err)
	}
	if err != nil {
		return raftErr("linearizable index", err)
	}
	return nil
}

// begunTerm waits until this replica leads and its term has begun. With elect
// it also waits while another replica leads.
func (g *Group) begunTerm(ctx context.Context, elect bool) (uint64, error) {
	for {
		if err := g.fsm.progress.haltedErr(); err != nil {
			return 0, err
		}
		_, term, changed := g.leads.get()
		leads := g.raft.State() == raft.Leader
		if leads && term != 0 && term == g.raft.CurrentTerm() {
			return term, nil
		}
		if !leads && !elect {
			return 0, ErrNotLeader
		}
		select {
		case <-changed:
		case <-g.fsm.progress.haltedCh():
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

// Leader returns the leader as far as it is known here, else empty strings.
func (g *Group) Leader() (id, addr string) {
	a, i := g.raft.LeaderWithID()
	return string(i), string(a)
}

// Term returns the current Raft term.
func (g *Group) Term() uint64 { return g.raft.CurrentTerm() }
