package raftfsm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Future is the answer to a Propose. It may be waited for any number of times,
// from any goroutine, also after the group is closed.
type Future struct {
	done   chan struct{}
	result any
	index  uint64
	err    error
	agreed time.Time
}

// NewFuture returns a future and what answers it, which must be called once. It
// is for stand-ins of a Group.
func NewFuture() (f *Future, resolve func(result any, index uint64, err error)) {
	f = newFuture()
	return f, f.resolve
}

func newFuture() *Future { return &Future{done: make(chan struct{})} }

func failedFuture(err error) *Future {
	f := newFuture()
	f.resolve(nil, 0, err)
	return f
}

func (f *Future) resolve(result any, index uint64, err error) {
	f.result, f.index, f.err = result, index, err
	close(f.done)
}

// Done is closed when the answer is there.
func (f *Future) Done() <-chan struct{} { return f.done }

// Agreed is when this replica began to apply the command, once the answer is there; zero where
// nobody has looked.
func (f *Future) Agreed() time.Time { return f.agreed }

// Wait returns what Machine.Apply answered and the command's Raft index.
// An error is either ctx's, which says nothing about the command, or matches
// exactly one of ErrNotLeader, ErrUnknownOutcome and ErrRefused; it may also match
// ErrHalted, ErrClosed, ErrTooLarge or ErrStorage.
func (f *Future) Wait(ctx context.Context) (result any, index uint64, err error) {
	select {
	case <-f.done:
		return f.result, f.index, f.err
	default:
	}
	select {
	case <-f.done:
		return f.result, f.index, f.err
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("raftfsm wait: %w", ctx.Err())
	}
}

// proposer hands commands to raft in the order in which they came and resolves
// their futures. Two goroutines: one may block on raft's queue, the other on the
// oldest command under way.
//
// raft forgets futures that it holds when it is shut down; so close returns
// only when every future is resolved, and must come before raft's shutdown.
type proposer struct {
	raft  *raft.Raft
	queue chan proposal
	wg    sync.WaitGroup
}

type proposal struct {
	log    raft.Log
	future *Future
}

type underWay struct {
	raft   raft.ApplyFuture
	future *Future
}

const (
	proposalQueue  = 256
	proposalWindow = 4096
)

func newProposer(r *raft.Raft) *proposer {
	p := &proposer{raft: r, queue: make(chan proposal, proposalQueue)}
	window := make(chan underWay, proposalWindow)
	p.wg.Go(func() {
		defer close(window)
		for next := range p.queue {
			window <- underWay{p.raft.ApplyLog(next.log, 0), next.future}
		}
	})
	p.wg.Go(func() {
		for next := range window {
			next.resolve()
		}
	})
	return p
}

func (u underWay) resolve() {
	if err := u.raft.Error(); err != nil {
		u.future.resolve(nil, 0, proposeErr(err))
		return
	}
	out, ok := u.raft.Response().(outcome)
	if !ok {
		u.future.resolve(nil, 0, fmt.Errorf("raftfsm propose: %w: unexpected answer %T", ErrUnknownOutcome, u.raft.Response()))
		return
	}
	if out.err != nil {
		u.future.resolve(nil, u.raft.Index(), fmt.Errorf("raftfsm propose: %w: %w", ErrUnknownOutcome, out.err))
		return
	}
	u.future.agreed = out.began
	u.future.resolve(out.result, u.raft.Index(), nil)
}

// propose queues a log entry. The caller makes sure that close has not begun.
func (p *proposer) propose(ctx context.Context, l raft.Log) *Future {
	f := newFuture()
	select {
	case p.queue <- proposal{log: l, future: f}:
		return f
	case <-ctx.Done():
		return failedFuture(fmt.Errorf("raftfsm propose: %w: %w", ErrRefused, ctx.Err()))
	}
}

func (p *proposer) close() {
	close(p.queue)
	p.wg.Wait()
}
