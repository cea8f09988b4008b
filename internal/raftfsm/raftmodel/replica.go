package raftmodel

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/raftfsm"
)

// leadershipQueue is how many changes of leadership may wait to be read.
const leadershipQueue = 1 << 12

// modelLeap is how far the terms of a log begun anew lie beyond the known ones.
const modelLeap = 1024

// Replica is one replica of a model. Its calls are a Group's and answer at once;
// futures are answered by the model's steps.
type Replica struct {
	m       *Model
	id      int
	machine raftfsm.Machine
	leads   chan raftfsm.Leadership
	down    bool

	// On stable storage at once.
	term uint64
	vote int
	// On stable storage up to synced.
	base   entry // the last entry that the snapshot holds
	snap   snapshot
	log    []entry
	synced uint64

	role            role
	lead            int
	votes           map[int]bool
	next, match     []uint64
	commit, applied uint64
	begun           bool // leads, and the term's marker is applied
	pending         map[uint64]func(any, uint64, error)
	halted          error
}

// start is what a process does with the log that it finds.
func (r *Replica) start(machine raftfsm.Machine) {
	r.machine, r.down, r.role, r.lead, r.halted = machine, false, follower, -1, nil
	r.pending = map[uint64]func(any, uint64, error){}
	if r.term == 0 {
		r.vote = -1
	}
	index, term := machine.AppliedIndex()
	if len(r.m.opt.Machines) == 1 && index > r.last() { // a log behind its state begins anew there
		r.base, r.log = entry{index: index, term: term, chain: link(0, entry{index: index, term: term})}, nil
		r.term = max(r.term, term) + modelLeap
		r.m.truth.begun(r)
	}
	r.commit, r.applied, r.synced = r.base.index, r.base.index, r.last()
}

// ID names the replica.
func (r *Replica) ID() string { return fmt.Sprintf("n%d", r.id) }

// Term returns the replica's term.
func (r *Replica) Term() uint64 { return r.term }

// Applied returns how far the replica has come, markers included.
func (r *Replica) Applied() uint64 { return r.applied }

// Halted returns why the replica applies nothing more, or nil.
func (r *Replica) Halted() error { return r.halted }

// Leadership is Group.Leadership; the simulation must read it now and then.
func (r *Replica) Leadership() <-chan raftfsm.Leadership { return r.leads }

// Propose is Group.Propose.
func (r *Replica) Propose(_ context.Context, data []byte) *raftfsm.Future {
	f, resolve := raftfsm.NewFuture()
	switch {
	case r.down:
		resolve(nil, 0, fmt.Errorf("raft model: %w: %w", raftfsm.ErrRefused, raftfsm.ErrClosed))
	case r.halted != nil:
		resolve(nil, 0, fmt.Errorf("raft model: %w: %w", raftfsm.ErrRefused, r.halted))
	case r.role != leader:
		resolve(nil, 0, fmt.Errorf("raft model: %w", raftfsm.ErrNotLeader))
	default:
		r.add(entry{index: r.last() + 1, term: r.term, data: data})
		r.pending[r.last()] = resolve
		r.advance()
	}
	return f
}

// LinearizableIndex is Group.LinearizableIndex. Its round of heartbeats takes no
// time: it succeeds if a majority can be heard and nobody there knows a later term.
func (r *Replica) LinearizableIndex(context.Context) (uint64, error) {
	if r.halted != nil {
		return 0, r.halted
	}
	if r.down || !r.begun || r.reach() < r.m.quorum() {
		return 0, fmt.Errorf("raft model: linearizable index: %w", raftfsm.ErrNotLeader)
	}
	agree := 0
	for _, other := range r.m.replicas {
		if r.hears(other) && other.term <= r.term {
			agree++
		}
	}
	if agree < r.m.quorum() {
		return 0, fmt.Errorf("raft model: linearizable index: %w", raftfsm.ErrNotLeader)
	}
	for _, other := range r.m.replicas {
		if r.hears(other) && other.id != r.id && other.term <= r.term { // a heartbeat is heard
			other.observe(r.term, r.id)
		}
	}
	return r.commit, nil
}

// WaitApplied is Group.WaitApplied; it lets the model go on.
func (r *Replica) WaitApplied(ctx context.Context, index uint64) error {
	for r.applied < index {
		switch err := r.m.Step(); {
		case err != nil:
			return err
		case r.halted != nil:
			return r.halted
		case r.down:
			return raftfsm.ErrClosed
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
	return nil
}

// Snapshot is Group.Snapshot: the log loses what the state has on stable storage.
func (r *Replica) Snapshot() error {
	if r.halted != nil {
		return r.halted
	}
	if r.down {
		return raftfsm.ErrClosed
	}
	if cursor, _ := r.machine.AppliedIndex(); cursor > r.applied {
		return raftfsm.ErrNotCaughtUp
	}
	if err := r.machine.Flush(); err != nil {
		return err
	}
	snap, err := r.m.checkpoint(r.machine)
	if err != nil {
		return err
	}
	end, _ := r.at(r.applied)
	r.log = append([]entry(nil), r.log[r.applied-r.base.index:]...)
	r.base, r.snap, r.synced = end, snap, max(r.synced, r.applied)
	return nil
}

// StepDown makes a leader a follower, as a lost heartbeat would.
func (r *Replica) StepDown() { r.stepDown() }

// Elect lets the replica stand for election, as a timeout would.
func (r *Replica) Elect() { r.campaign() }

// Crash ends the replica's process with a loss of power. A single voter loses
// the entries that were not synced.
func (r *Replica) Crash() {
	r.stepDown()
	r.down = true
	if r.synced < r.last() {
		r.m.truth.lose(r, r.synced)
		r.log = r.log[:r.synced-r.base.index]
	}
}

// Restart starts a crashed replica with what its machine has on stable storage,
// or with its snapshot if that is newer.
func (r *Replica) Restart(machine raftfsm.Machine) error {
	if cursor, _ := machine.AppliedIndex(); cursor < r.snap.cursor {
		if err := r.m.restore(machine, r.snap); err != nil {
			return fmt.Errorf("raft model: restart %s: %w", r.ID(), err)
		}
	}
	r.start(machine)
	return r.m.truth.err
}

func (r *Replica) hears(other *Replica) bool {
	return !other.down && (other == r || !r.m.cut[[2]int{r.id, other.id}])
}

// reach counts the replicas that can be heard, this one included.
func (r *Replica) reach() int {
	n := 0
	for _, other := range r.m.replicas {
		if r.hears(other) {
			n++
		}
	}
	return n
}

func (r *Replica) stepDown() {
	if r.begun {
		r.tell(raftfsm.Leadership{Kind: raftfsm.TermEnded, Term: r.term})
	}
	r.role, r.begun, r.votes, r.lead = follower, false, nil, -1
	for i := r.base.index + 1; i <= r.last(); i++ { // in order, so that runs repeat
		r.answer(i, nil, fmt.Errorf("raft model: %w", raftfsm.ErrUnknownOutcome))
	}
}

func (r *Replica) answer(index uint64, result any, err error) {
	if resolve := r.pending[index]; resolve != nil {
		delete(r.pending, index)
		resolve(result, index, err)
	}
}

func (r *Replica) tell(l raftfsm.Leadership) {
	select {
	case r.leads <- l:
	default:
		panic("raft model: nobody reads " + r.ID() + "'s changes of leadership")
	}
}

// applySome hands up to n committed entries to the machine, in one batch.
func (r *Replica) applySome(n int) {
	if r.down || r.halted != nil {
		return
	}
	cursor, _ := r.machine.AppliedIndex()
	end := min(r.applied+uint64(n), r.commit)
	var batch []raftfsm.Entry
	for i := r.applied + 1; i <= end; i++ {
		if e, _ := r.at(i); !e.marker && i > cursor {
			batch = append(batch, raftfsm.Entry{Index: e.index, Term: e.term, Data: e.data})
		}
	}
	results, err := r.callMachine(batch)
	if err != nil {
		r.halt(batch[0].Index, err)
		return
	}
	byIndex := map[uint64]any{}
	for i, e := range batch {
		byIndex[e.Index] = results[i]
	}
	for i := r.applied + 1; i <= end; i++ {
		r.applied = i
		e, _ := r.at(i)
		if e.marker && r.role == leader && e.term == r.term {
			r.begun = true
			r.tell(raftfsm.Leadership{Kind: raftfsm.TermBegan, Term: r.term, LeaderID: r.ID()})
		}
		r.answer(i, byIndex[i], nil)
	}
}

func (r *Replica) callMachine(batch []raftfsm.Entry) (results []any, err error) {
	if len(batch) == 0 {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	n := len(batch)
	if results, err = r.machine.Apply(batch); err == nil && len(results) != n {
		err = fmt.Errorf("machine gave %d results for %d entries", len(results), n)
	}
	return results, err
}

func (r *Replica) halt(index uint64, cause error) {
	if at := (*raftfsm.ApplyError)(nil); errors.As(cause, &at) {
		index = at.Index
	}
	r.halted = &raftfsm.HaltError{Index: index, Cause: cause}
	for i := r.base.index + 1; i <= r.last(); i++ {
		r.answer(i, nil, fmt.Errorf("raft model: %w: %w", raftfsm.ErrUnknownOutcome, r.halted))
	}
}

// install takes a snapshot that lies beyond what this replica has applied.
func (r *Replica) install(msg message) (uint64, bool) {
	end := msg.entries[0]
	cursor, _ := r.machine.AppliedIndex()
	if r.halted != nil || end.index <= r.applied {
		return r.applied, r.halted == nil
	}
	if msg.snap.cursor > cursor { // a state never goes back
		if err := r.m.restore(r.machine, msg.snap); err != nil {
			r.halt(end.index, err)
			return 0, false
		}
	}
	if have, ok := r.at(end.index); ok && have.term == end.term {
		r.log = append([]entry(nil), r.log[end.index-r.base.index:]...)
	} else {
		r.m.truth.replaced(r, end)
		r.log = nil
	}
	r.base, r.snap, r.applied, r.commit = end, msg.snap, end.index, max(r.commit, end.index)
	r.synced = r.last()
	return end.index, true
}
