package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mneme/internal/ingest"
	"mneme/internal/raftfsm"
)

// term is one writer of one Raft term, with the workers that run beside it. Its
// goroutine owns it; done is closed when writer and workers have ended.
type term struct {
	leader *leader
	number uint64 // the Raft term
	cancel context.CancelFunc
	finish func(*ingest.Writer) // how the writer ends when the term is ended from outside
	done   chan struct{}
	opened bool // the writer was open; read it after done
}

// end ends the term: it stops the workers, lets finish end the writer, and waits.
func (t *term) end(finish func(*ingest.Writer)) {
	t.finish = finish
	t.cancel()
	<-t.done
}

func (t *term) run(ctx context.Context) {
	defer close(t.done)
	defer t.cancel()
	w, err := t.leader.start(ctx, t.number)
	if err != nil {
		if ctx.Err() == nil {
			t.leader.notBegun(t.number, err)
			t.giveUp(ctx, err)
		}
		return
	}
	t.opened = true
	t.leader.publish(w)
	working, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	for _, worker := range t.leader.workers {
		workers.Go(func() { worker.Work(working, w) })
	}
	select {
	case <-w.Ended():
	case <-ctx.Done():
	}
	t.leader.withdraw(w)
	stop()
	workers.Wait()
	if ctx.Err() != nil {
		t.finish(w)
		return
	}
	t.giveUp(ctx, w.Err())
}

// handOverFor bounds the handing over of the leadership.
const handOverFor = 5 * time.Second

// giveUp hands over the group's leadership if that is why the writer ended: the
// log has a frame of a later term.
func (t *term) giveUp(ctx context.Context, why error) {
	deposed := (*ingest.DeposedError)(nil)
	if !errors.As(why, &deposed) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handOverFor)
	defer cancel()
	log := t.leader.log.With("term", t.number, "why", why)
	switch err := t.leader.group.TransferLeadership(ctx); {
	case err == nil, errors.Is(err, raftfsm.ErrNotLeader):
		log.Warn("the leadership is given up")
	case errors.Is(err, raftfsm.ErrNoPeer):
		log.Error("another node writes to this shard's log, and there is none to hand over to", "hint", aloneHint)
	default:
		log.Error("the leadership could not be handed over", "err", err)
	}
}

const aloneHint = "two nodes were started with copies of one data directory: stop one of them, and start the other one again"

// errNotLeading is why a writer is given up whose Raft term is over.
var errNotLeading = fmt.Errorf("the term is over: %w", raftfsm.ErrNotLeader)
