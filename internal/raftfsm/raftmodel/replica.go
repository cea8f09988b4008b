package raftmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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
	journal
	name  string
	leads chan raftfsm.Leadership
	down  bool
	term  uint64

	role            role
	lead            int
	elects          map[int]bool // who votes for it
	next, match     map[int]uint64
	commit, applied uint64
	begun           bool // leads, and the term's marker is applied
	pending         map[uint64]func(any, uint64, error)
	sendable        []byte // the newest snapshot, once it was sent
	halted          error
}

// ErrPower: the power was lost while a snapshot was handled.
var ErrPower = errors.New("raft model: the power is lost")

func (m *Model) dir() string { return cmp.Or(m.opt.Dir, "/raft") }

// found is the first start of a replica that the group begins with.
func (r *Replica) found(machine raftfsm.Machine, fs vfs.FS) error {
	if err := r.start(machine, fs); err != nil || r.m.alone() {
		return err
	}
	index, term := machine.AppliedIndex()
	if index == 0 {
		return nil
	}
	if err := r.local.SnapshotAnew(); err != nil {
		return err
	}
	r.begin(entry{index: index, term: term, chain: link(0, entry{index: index, term: term})}, raftfsm.Membership{})
	r.m.truth.founded(&r.journal)
	r.setTerm(term)
	r.commit, r.applied = index, index
	return nil
}

// start is what a process does with what it finds on its disks.
func (r *Replica) start(machine raftfsm.Machine, fs vfs.FS) (err error) {
	r.down, r.role, r.lead, r.halted = false, follower, -1, nil
	r.pending = map[uint64]func(any, uint64, error){}
	if r.local, err = raftfsm.OpenLocal(machine, fs, r.m.dir(), r.disk); err != nil {
		return err
	}
	if r.m.powerLost(r.id) {
		return ErrPower
	}
	if r.term, err = r.local.Term(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	if r.m.alone() && misfit(r, machine) {
		if err := r.beginAnew(machine, fs); err != nil {
			return err
		}
	}
	r.commit, r.applied = r.base.index, r.base.index
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
	if r.local, err = raftfsm.OpenLocal(machine, fs, r.m.dir(), r.disk); err != nil {
		return err
	}
	if at, _, _ := r.local.Newest(); at < index {
		if err := r.local.SnapshotAnew(); err != nil {
			return err
		}
	}
	index, term, _ = r.local.Newest()
	r.begin(entry{index: index, term: term, chain: link(0, entry{index: index, term: term})}, raftfsm.Membership{})
	r.term = known + modelLeap
	r.m.truth.begun(r)
	return r.local.Leap(r.term)
}

// ID names the replica.
func (r *Replica) ID() string { return r.name }

// Term returns the replica's term.
func (r *Replica) Term() uint64 { return r.term }

// Applied returns how far the replica has come, markers included.
func (r *Replica) Applied() uint64 { return r.applied }

// Halted returns why the replica applies nothing more, or nil.
func (r *Replica) Halted() error { return r.halted }

// Leadership is Group.Leadership; the simulation must read it now and then.
func (r *Replica) Leadership() <-chan raftfsm.Leadership { return r.leads }

// Propose is Group.Propose.
func (r *Replica) Propose(ctx context.Context, data []byte) *raftfsm.Future {
	return r.propose(ctx, entry{data: data})
}

func (r *Replica) propose(_ context.Context, e entry) *raftfsm.Future {
	f, resolve := raftfsm.NewFuture()
	switch {
	case r.down:
		resolve(nil, 0, fmt.Errorf("raft model: %w: %w", raftfsm.ErrRefused, raftfsm.ErrClosed))
	case r.halted != nil:
		resolve(nil, 0, fmt.Errorf("raft model: %w: %w", raftfsm.ErrRefused, r.halted))
	case r.role != leader:
		resolve(nil, 0, fmt.Errorf("raft model: %w", raftfsm.ErrNotLeader))
	default:
		e.index, e.term = r.last()+1, r.term
		if err := r.add(e); err != nil {
			resolve(nil, 0, fmt.Errorf("raft model: %w: %w", raftfsm.ErrUnknownOutcome, err))
			r.StepDown()
			return f
		}
		r.pending[r.last()] = resolve
		r.m.follow(r)
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
	r := s.r
	hears := func(id int) bool {
		other := r.m.replicas[id]
		return r.hears(other) && other.term <= r.term
	}
	if r.votes(hears) < r.quorum() {
		return fmt.Errorf("raft model: verify leader: %w", raftfsm.ErrNotLeader)
	}
	for _, id := range r.peers() {
		if other := r.m.replicas[id]; hears(id) { // a heartbeat is heard
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
	err := r.local.Snapshot(end.index, end.term, r.membersAt(end.index))
	if r.m.powerLost(r.id) {
		r.Crash()
		return ErrPower
	}
	if err != nil {
		return err
	}
	r.compact(end)
	r.sendable = nil
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
	if kept, _ := r.disk.LastIndex(); r.m.alone() && max(kept, r.base.index) < r.last() {
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

// Down reports whether the process is not there.
func (r *Replica) Down() bool { return r.down }

func (m *Model) powerLost(id int) bool { return m.opt.PowerLost != nil && m.opt.PowerLost(id) }

func (r *Replica) hears(other *Replica) bool {
	return !other.down && (other == r || !r.m.cut[[2]int{r.id, other.id}])
}

// reach counts the voters that can be heard, this one included.
func (r *Replica) reach() int {
	return r.votes(func(id int) bool { return r.hears(r.m.replicas[id]) })
}

// StepDown makes a leader or candidate a follower, as a lost heartbeat would.
func (r *Replica) StepDown() {
	if r.begun {
		r.tell(raftfsm.Leadership{Kind: raftfsm.TermEnded, Term: r.term})
	}
	r.role, r.begun, r.elects, r.lead = follower, false, nil, -1
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
	if !r.m.ready(r.id, batch) {
		return
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

// ready asks whether the machine can take what of a batch is for it.
func (m *Model) ready(id int, batch []raftfsm.LogEntry) bool {
	var entries []raftfsm.Entry
	for _, e := range batch {
		if !e.Marker && e.Members == nil {
			entries = append(entries, e.Entry)
		}
	}
	return m.opt.Ready == nil || len(entries) == 0 || m.opt.Ready(id, entries)
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
	if r.halted != nil || r.disk.Broken() { // a group whose store has failed takes no snapshot
		return r.applied, false
	}
	err := r.local.Install(end.index, end.term, msg.members, msg.snap)
	if r.m.powerLost(r.id) {
		r.Crash()
		return 0, false
	}
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
		r.compact(end)
	} else {
		r.m.truth.replaced(r, end)
		_ = r.local.Delete(1, r.last())
		r.begin(end, msg.members)
	}
	r.applied, r.commit, r.sendable = end.index, max(r.commit, end.index), nil
	return end.index, true
}
