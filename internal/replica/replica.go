package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"mneme/internal/eventlog"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Replica is one shard on one node. Open it, Start it, Stop it, Close it. It is
// safe for concurrent use.
type Replica struct {
	opt     Options
	state   *projections.State
	machine *machine
	group   Group
	views   *viewKeeper
	leader  *leader

	cancel context.CancelFunc // nil before Start
	work   sync.WaitGroup
}

// Open opens the state and the Raft group. From then on the replica follows: what
// the group agrees on is applied. It writes nothing before Start. Errors:
// *DamagedError, those of packages projections, raftfsm and storage.
func Open(ctx context.Context, opt Options) (*Replica, error) {
	opt.setDefaults()
	views := newViewKeeper(opt.Logger)
	opt.OnApply = views.applied
	state, err := OpenState(ctx, opt)
	if err != nil {
		return nil, err
	}
	r := &Replica{opt: opt, state: state, views: views, machine: newMachine(state, opt.FS, views.stateReplaced, opt.Logger)}
	if !opt.alone() {
		r.machine.keys = opt.Keys.Machine()
	}
	if r.group, err = r.openGroup(ctx); err != nil {
		return nil, fmt.Errorf("raft: %w", errors.Join(err, state.Close()))
	}
	r.leader = newLeader(r.group, r.machine.room, r.machine.resumed, opt.Logger, r.startWriter)
	return r, nil
}

func (r *Replica) openGroup(ctx context.Context) (Group, error) {
	opt := r.opt.groupOptions()
	opt.Machine, opt.TermFloor = r.machine, r.state.Cursor().Term
	if r.opt.alone() {
		opt.TermFloor = max(opt.TermFloor, r.lastTerm(ctx))
	}
	group, err := r.opt.OpenGroup(opt)
	if errors.Is(err, raftfsm.ErrStateLost) && r.opt.alone() {
		return r.beginLogAnew(ctx, opt, err)
	}
	return group, groupError(opt.Dir, err)
}

// groupError says what to do where a replica without peers finds files of a group
// that it is not alone in, or may not be.
func groupError(dir string, err error) error {
	switch {
	case errors.Is(err, raftfsm.ErrMembersUnknown):
		return &DamagedError{Message: fmt.Sprintf("the files of the Raft group in %s are damaged or another node's: %v", dir, err),
			Hint: foreignHint, Err: errors.Join(ErrPeers, err)}
	case errors.Is(err, raftfsm.ErrNoSync):
		return &DamagedError{Message: fmt.Sprintf("the Raft group in %s has replicas on other nodes, which this node is not told how to reach", dir),
			Hint: "start it with the cluster's options", Err: errors.Join(ErrPeers, err)}
	}
	return err
}

// beginLogAnew is for a state that lies behind the beginning of Raft's log, as an
// older copy of it does. What is missing stands in the event log, so the only voter
// begins a new Raft log where the state is, and the first term applies the rest. An
// event log that lost its end does not hold all of that: positions of what was
// acknowledged would be given out anew.
func (r *Replica) beginLogAnew(ctx context.Context, opt raftfsm.Options, cause error) (Group, error) {
	found, err := raftfsm.Inspect(opt)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	end, err := r.opt.RaftEnd()
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	at := r.state.Cursor().Seq
	if last, err := r.opt.LogGoesTo(ctx, at, end); err != nil {
		return nil, errors.Join(cause, err)
	} else if last < end {
		return nil, &DamagedError{Message: fmt.Sprintf("%s: the state ends at %d, the log goes on to %d, and what was applied went to %d at least; Raft's log begins behind the state", opt.Dir, at, last, end),
			Hint: LostEndHint, Err: cause}
	}
	kept, err := raftfsm.SetAside(opt)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	r.opt.Logger.Warn("the state lies behind raft's log, which begins anew there; the event log has the rest", "kept", kept, "err", cause)
	opt.TermFloor = max(opt.TermFloor, found.Term)
	return r.opt.OpenGroup(opt)
}

// tailFrames is how many of the log's last messages are asked for their term.
const tailFrames = 16

// lastTerm is the highest term of the log's last frames. The Raft log of a single
// voter may be older than they are; a log that cannot be read is the writer's to
// tell.
func (r *Replica) lastTerm(ctx context.Context) (term uint64) {
	info, err := r.opt.Stream.Info(ctx)
	if err != nil || info.Last == 0 {
		return 0
	}
	from := info.Last - min(info.Last-1, tailFrames-1)
	_ = r.opt.Stream.Read(ctx, from, info.Last, func(m eventlog.Message) error {
		if f, err := events.DecodeFrame(m.Data); err == nil {
			term = max(term, f.Term)
		}
		return nil
	})
	return term
}

// Start loads the views and begins to follow the leadership of the group: each
// time this replica leads, it opens a writer and then runs the workers. It does
// not wait for that, see WaitWriter.
func (r *Replica) Start(ctx context.Context, views Views, workers ...Worker) error {
	if err := r.views.start(ctx, views); err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel, r.leader.workers = cancel, workers
	if r.opt.Streams != nil {
		r.leader.workers = append([]Worker{replaced{r.opt.Streams}}, workers...)
	}
	r.work.Go(func() { r.views.run(run) })
	r.work.Go(r.leader.run)
	return nil
}

// Stop ends the present term: what was admitted is written; past ctx what still
// waits is refused. Afterwards the replica follows, but leads and loads no more.
func (r *Replica) Stop(ctx context.Context) {
	if r.cancel == nil {
		return
	}
	r.leader.close(ctx)
	r.cancel()
	r.work.Wait()
}

// Close closes group and state. Views of the state must be closed before. It may be
// called once.
func (r *Replica) Close() error {
	close(r.machine.closing) // what waits for room is left to the next start
	r.Stop(context.Background())
	return errors.Join(r.group.Close(), r.state.Close())
}

// startWriter opens the writer of a Raft term.
func (r *Replica) startWriter(ctx context.Context, term uint64) (*ingest.Writer, error) {
	o := &r.opt
	var ref events.StreamRef
	if o.Streams != nil {
		if err := o.Streams.Lead(ctx); err != nil {
			return nil, err
		}
		if d := o.Streams.Unfinished(); d != nil && r.Diverged() == nil {
			r.SetDiverged(d)
		}
		ref = o.Streams.Ref()
	}
	w, err := ingest.Start(ctx, ingest.Options{Place: o.Place, Stream: o.Stream, Group: r.group, Term: term, State: r.state,
		Keys: o.Keys, Settings: o.Settings, Clock: o.Clock, Logger: o.Logger, Refuse: o.Refuse, Counters: o.Counters, Took: o.Took, QueueLimit: o.QueueLimit, Current: func(ctx context.Context) error { return r.current(ctx, term) }, Ref: ref, Diverged: r.Diverged()})
	if err == nil {
		at := r.state.Cursor()
		o.Logger.Info("this node leads the shard and takes writes", "term", term, "position", at.Position().String())
	}
	return w, err
}

// replaced tells Streams that a term has begun. It is a worker, because the removal of
// streams asks the server that leads all of them, which may have died with the last term.
type replaced struct{ streams Streams }

// Work implements Worker.
func (r replaced) Work(ctx context.Context, w *ingest.Writer) {
	if w.Diverged() == nil {
		r.streams.Begun(ctx)
	}
}

// State is the shard's state on this node.
func (r *Replica) State() *projections.State { return r.state }

// Group is the shard's Raft group.
func (r *Replica) Group() Group { return r.group }

// Leads reports whether this replica leads, with an open writer.
func (r *Replica) Leads() bool {
	w, _, _ := r.leader.now()
	return w != nil
}

// Writer returns the open writer of the present term. Errors: unavailable,
// log_diverged.
func (r *Replica) Writer() (*ingest.Writer, error) {
	if w, _, _ := r.leader.now(); w != nil {
		return w, nil
	}
	if r.opt.Refuse != nil {
		if err := r.opt.Refuse(); err != nil {
			return nil, err
		}
	}
	return nil, r.leader.refusal(r.opt.Shard)
}

// WaitWriter waits until this replica leads and its writer is open. Errors: why
// the term could not begin; then it is tried again. ErrFull, with code no_space; then see WaitRoom.
// raftfsm.ErrHalted, raftfsm.ErrClosed, ctx's.
func (r *Replica) WaitWriter(ctx context.Context) error {
	return r.leader.wait(ctx, func() error { return nil })
}

// WaitTerm is WaitWriter for as long as no other replica is known to lead. Errors:
// raftfsm.ErrNotLeader, and WaitWriter's.
func (r *Replica) WaitTerm(ctx context.Context) error { return r.leader.wait(ctx, r.othersLead) }

func (r *Replica) othersLead() error {
	if id, _ := r.group.Leader(); id != "" && id != r.opt.ID {
		return fmt.Errorf("%s leads the shard: %w", id, raftfsm.ErrNotLeader)
	}
	return nil
}

// AwaitLeader returns when ctx ends, or sooner when this replica's writer opens or ends.
func (r *Replica) AwaitLeader(ctx context.Context) {
	_, _, changed := r.leader.now()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// WaitRoom waits until applying does not wait for room on the disk. Errors: ctx's.
func (r *Replica) WaitRoom(ctx context.Context) error { return r.machine.room.wait(ctx) }

// Full says that applying waits for room on the disk, with code no_space; nil = it
// does not.
func (r *Replica) Full() *memory.Error {
	if full, _ := r.machine.room.now(); full != nil {
		return noSpace(full)
	}
	return nil
}

// WithoutWriter ends the present term in good order, runs f while no writer is
// open, and lets the next term begin.
func (r *Replica) WithoutWriter(ctx context.Context, f func() error) error {
	return r.leader.without(ctx, f)
}

// Diverged returns how log and state disagree, so that writes are stopped, or nil.
func (r *Replica) Diverged() *eventlog.DivergedError { return r.leader.divergence() }

// SetDiverged stops writes in this term and those to come. With nil, terms to come
// begin without.
func (r *Replica) SetDiverged(d *eventlog.DivergedError) { r.leader.setDivergence(d) }

// CheckLog compares log and state: identity, ends, gaps, lost messages, hashes of
// the last frames.
func (r *Replica) CheckLog(ctx context.Context) error {
	return eventlog.Settled(ctx, r.opt.Stream, func() error {
		v := r.state.View()
		return errors.Join(ingest.CheckLog(ctx, r.opt.Stream, v), v.Close())
	})
}

// RenewState puts a copy of the state in its place, see projections.State.Renew, if it
// still has the tables of a generation. now names those of the copy.
func (r *Replica) RenewState(of string) (now string, gone func(context.Context) error, err error) {
	return r.machine.renew(of)
}

// Still runs f on the state while no command is applied to it. Tests damage a state so; f must not
// wait for anything that is applied.
func (r *Replica) Still(f func(*projections.State) error) error {
	r.machine.mu.Lock()
	defer r.machine.mu.Unlock()
	return f(r.state)
}

// Linear waits until the state is linearizable: this replica leads, its writer is
// open in this very term, and the state holds all that was accepted, which may be
// more than what Raft has heard of.
func (r *Replica) Linear(ctx context.Context) error {
	w, err := r.Writer()
	if err != nil {
		return err
	}
	return r.settled(ctx, w)
}

// current is Linear for what the writer of a term has read: with another one open by now,
// others may have led and written in between.
func (r *Replica) current(ctx context.Context, term uint64) error {
	w, err := r.Writer()
	if err != nil {
		return err
	}
	if w.Term() != term {
		return fmt.Errorf("%w: term %d is over", raftfsm.ErrNotLeader, term)
	}
	return r.settled(ctx, w)
}

// settled waits until the state holds all that was accepted, if the writer leads.
func (r *Replica) settled(ctx context.Context, w *ingest.Writer) error {
	if err := w.Settled(ctx); err != nil {
		if d := w.Diverged(); d != nil {
			return memory.Errorf(memory.CodeLogDiverged, "%v", d).WithHint("%s", d.Hint).WithCause(err)
		}
		return err
	}
	index, err := r.group.LinearizableIndex(ctx)
	if err != nil {
		return err
	}
	// The term was confirmed after the call began. If it is the writer's, nobody
	// else has led, and so written, in between.
	if term := r.group.Term(); term != w.Term() {
		return fmt.Errorf("%w: the writer of term %d has not begun", raftfsm.ErrNotLeader, term)
	}
	return r.group.WaitApplied(ctx, index)
}
