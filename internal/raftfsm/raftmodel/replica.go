package raftmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/raftfsm"
)

// leadershipQueue is how many changes of leadership may wait to be read.
const leadershipQueue = 1 << 12

// modelLeap is how far the terms of a log begun anew lie beyond the known ones.
const modelLeap = 1024

// Replica is one replica of a model. Its calls are a Group's and answer at once;
// futures are answered by the model's steps.
type Replica struct {
	m     *Model
	id    int
	leads chan raftfsm.Leadership
	down  bool

	disk  *raftfsm.MemDisk // of entries, term and vote
	local *raftfsm.Local   // on it, and on the disk of the snapshots
	term  uint64
	base  entry // the last entry that the newest snapshot holds
	log   []entry

	role            role
	lead            int
	votes           map[int]bool
	next, match     []uint64
	commit, applied uint64
	begun           bool // leads, and the term's marker is applied
	pending         map[uint64]func(any, uint64, error)
	sendable        []byte // the newest snapshot, once it was sent
	halted          error
}

const localDir = "/raft"

// start is what a process does with what it finds on its disks.
func (r *Replica) start(machine raftfsm.Machine, fs vfs.FS) (err error) {
	r.down, r.role, r.lead, r.halted = false, follower, -1, nil
	r.pending = map[uint64]func(any, uint64, error){}
	if r.local, err = raftfsm.OpenLocal(machine, fs, localDir, r.disk); err != nil {
		return err
	}
	if r.term, err = r.local.Term(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	if len(r.m.opt.Machines) == 1 && misfit(r, machine) {
		if err := r.beginAnew(machine, fs); err != nil {
			return err
		}
	}
	r.commit, r.applied = r.base.index, r.base.index
	return nil
}

// load reads the log. What the newest snapshot holds is of no use any more, and
// neither is a log that does not join it: a crash came before it was removed.
func (r *Replica) load() error {
	index, term := r.local.Newest()
	r.base, r.log = entry{index: index, term: term, chain: r.m.truth.chains[[2]uint64{index, term}]}, nil
	entries, err := r.local.Entries()
	if err != nil || len(entries) == 0 {
		return err
	}
	last := entries[len(entries)-1].Index
	other := slices.ContainsFunc(entries, func(e raftfsm.LogEntry) bool { return e.Index == index && e.Term != term })
	if last < index || other {
		return r.local.Delete(entries[0].Index, last)
	}
	for _, e := range entries {
		if e.Index > index {
			next := entry{index: e.Index, term: e.Term, data: e.Data, marker: e.Marker}
			next.chain = link(r.lastEntry().chain, next)
			r.log = append(r.log, next)
		}
	}
	return nil
}

// misfit reports whether a log cannot be gone on with: it ends before the state, or its
// term was never written or is lost.
func misfit(r *Replica, machine raftfsm.Machine) bool {
	index, term := machine.AppliedIndex()
	return index > r.last() || r.term < max(term, r.lastEntry().term)
}

// beginAnew starts the log of a single voter at its state, where the old one does not
// fit. After an error the process does not start.
func (r *Replica) beginAnew(machine raftfsm.Machine, fs vfs.FS) (err error) {
	index, term := machine.AppliedIndex()
	known := max(r.term, term, r.lastEntry().term)
	r.disk = &raftfsm.MemDisk{NoSync: true, Fails: r.disk.Fails}
	if r.local, err = raftfsm.OpenLocal(machine, fs, localDir, r.disk); err != nil {
		return err
	}
	if at, _ := r.local.Newest(); at < index {
		if err := r.local.SnapshotAnew(); err != nil {
			return err
		}
	}
	index, term = r.local.Newest()
	r.base, r.log, r.term = entry{index: index, term: term, chain: link(0, entry{index: index, term: term})}, nil, known+modelLeap
	r.m.truth.begun(r)
	return r.local.Leap(r.term)
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
		if err := r.add(entry{index: r.last() + 1, term: r.term, data: data}); err != nil {
			resolve(nil, 0, fmt.Errorf("raft model: %w: %w", raftfsm.ErrUnknownOutcome, err))
			r.StepDown()
			return f
		}
		r.pending[r.last()] = resolve
		r.advance()
	}
	return f
}

// LinearizableIndex is Group.LinearizableIndex.
func (r *Replica) LinearizableIndex(ctx context.Context) (uint64, error) {
	return raftfsm.ReadIndex(ctx, reads{r})
}

// reads is a replica as a raftfsm.ReadSource.
type reads struct{ r *Replica }

func (s reads) BegunTerm(context.Context) (uint64, error) {
	switch {
	case s.r.halted != nil:
		return 0, s.r.halted
	case s.r.down || !s.r.begun:
		return 0, raftfsm.ErrNotLeader
	}
	return s.r.term, nil
}

func (s reads) CommitIndex() uint64 { return s.r.commit }

func (s reads) CurrentTerm() uint64 { return s.r.term }

// VerifyLeader is a round of heartbeats that takes no time: it succeeds if a
// majority can be heard and nobody there knows a later term.
func (s reads) VerifyLeader(context.Context) error {
	r, agree := s.r, 0
	for _, other := range r.m.replicas {
		if r.hears(other) && other.term <= r.term {
			agree++
		}
	}
	if agree < r.m.quorum() {
		return fmt.Errorf("raft model: verify leader: %w", raftfsm.ErrNotLeader)
	}
	for _, other := range r.m.replicas {
		if r.hears(other) && other.id != r.id && other.term <= r.term { // a heartbeat is heard
			other.observe(r.term, r.id)
		}
	}
	return nil
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
	if r.applied == r.base.index {
		return nil // there is nothing new
	}
	end, _ := r.at(r.applied)
	if err := r.local.Snapshot(end.index, end.term); err != nil {
		return err
	}
	_ = r.local.Delete(1, end.index) // what stays is dropped at the next start
	r.log = append([]entry(nil), r.log[end.index-r.base.index:]...)
	r.base, r.sendable = end, nil
	return nil
}

// Elect lets the replica stand for election, as a timeout would.
func (r *Replica) Elect() { r.campaign() }

// Crash ends the replica's process with a loss of power: its disks keep what was
// synced. A single voter loses the entries that were not, and every replica what
// it wrote after an error of the disk.
func (r *Replica) Crash() {
	r.StepDown()
	r.down = true
	r.disk.Crash()
	if kept, _ := r.disk.LastIndex(); len(r.m.replicas) == 1 && max(kept, r.base.index) < r.last() {
		r.m.truth.lose(r, max(kept, r.base.index))
	}
}

// DiskFailed reports whether the disk has failed since the process started.
func (r *Replica) DiskFailed() bool { return r.disk.Broken() }

// Restart starts a crashed replica with what its machine and its snapshots have on
// stable storage. raftfsm.ErrStorage means that the disk failed: the process ends, and
// may be started again.
func (r *Replica) Restart(machine raftfsm.Machine, fs vfs.FS) error {
	if err := r.start(machine, fs); err != nil {
		r.down = true
		r.disk.Crash()
		return fmt.Errorf("raft model: restart %s: %w", r.ID(), err)
	}
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

// StepDown makes a leader or candidate a follower, as a lost heartbeat would.
func (r *Replica) StepDown() {
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
	end := min(r.applied+uint64(n), r.commit)
	var batch []raftfsm.LogEntry
	for i := r.applied + 1; i <= end; i++ {
		e, _ := r.at(i)
		batch = append(batch, e.stored())
	}
	results, err := r.local.Apply(batch)
	if err != nil {
		r.halt(err)
		return
	}
	for i, e := range batch {
		r.applied = e.Index
		if e.Marker && r.role == leader && e.Term == r.term {
			r.begun = true
			r.tell(raftfsm.Leadership{Kind: raftfsm.TermBegan, Term: r.term, LeaderID: r.ID()})
		}
		r.answer(e.Index, results[i], nil)
	}
}

func (r *Replica) halt(err error) {
	r.halted = err
	for i := r.base.index + 1; i <= r.last(); i++ {
		r.answer(i, nil, fmt.Errorf("raft model: %w: %w", raftfsm.ErrUnknownOutcome, r.halted))
	}
}

// install takes a snapshot. One that lies behind what this replica has applied is
// handed on all the same, as the raft library does when one comes late; it is for
// what stands above the machine to know better.
func (r *Replica) install(msg message) (uint64, bool) {
	end := msg.entries[0]
	if r.halted != nil {
		return r.applied, false
	}
	err := r.local.Install(end.index, end.term, msg.snap)
	if halt := (*raftfsm.HaltError)(nil); errors.As(err, &halt) {
		r.halt(err)
		return 0, false
	}
	if end.index <= r.applied {
		if end.index < r.applied {
			r.m.late++
		}
		return r.applied, true
	}
	if err != nil {
		return 0, false
	}
	r.m.restores++
	if have, ok := r.at(end.index); ok && have.term == end.term {
		_ = r.local.Delete(1, end.index)
		r.log = append([]entry(nil), r.log[end.index-r.base.index:]...)
	} else {
		r.m.truth.replaced(r, end)
		_ = r.local.Delete(1, r.last())
		r.log = nil
	}
	r.base, r.applied, r.commit, r.sendable = end, end.index, max(r.commit, end.index), nil
	return end.index, true
}
