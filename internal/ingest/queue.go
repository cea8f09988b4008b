package ingest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"mneme/internal/events"
	"mneme/memory"
)

// queue holds drafts that wait for a frame: first in first out within a
// namespace, in turns between namespaces, bounded in number and bytes.
type queue struct {
	// Of all; a namespace may use half while others wait.
	maxItems func() int
	maxBytes int

	mu     sync.Mutex
	lanes  map[events.ID]*lane
	order  []events.ID // namespaces with drafts, in turn
	items  int
	bytes  int
	turns  uint64 // drafts that ever came
	paused int
	out    chan struct{} // closed when the batch that tryTake gave out was decided; nil = none is out
	closed bool
	wake   chan struct{} // capacity 1: something to take may be there
}

type lane struct {
	drafts []*draft
	bytes  int
}

func newQueue(maxItems func() int, maxBytes int) *queue {
	return &queue{maxItems: maxItems, maxBytes: maxBytes, lanes: map[events.ID]*lane{}, wake: make(chan struct{}, 1)}
}

func (q *queue) signal() { signal(q.wake) }

// push adds drafts of one namespace, all or none.
func (q *queue) push(ns events.ID, drafts []*draft) error { return q.add(ns, drafts, false) }

// add is push. What must get in, because it was done already and the log has
// to say so, is not bounded: it is at most one event for each of a request's
// items.
func (q *queue) add(ns events.ID, drafts []*draft, must bool) error {
	size := 0
	for _, d := range drafts {
		size += d.size
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return memory.Errorf(memory.CodeUnavailable, "the node is shutting down").WithHint("try another node, or again in a moment")
	}
	l := q.lanes[ns]
	if l == nil {
		l = &lane{}
	}
	most := q.maxItems()
	full := q.items+len(drafts) > most || q.bytes+size > q.maxBytes
	greedy := len(q.lanes) > 1 && (len(l.drafts)+len(drafts) > most/2 || l.bytes+size > q.maxBytes/2)
	if (full || greedy) && q.items > 0 && !must {
		err := memory.Errorf(memory.CodeOverloaded, "too much is waiting to be written: %d memories", q.items).
			WithHint("slow down and send it again")
		err.RetryAfter = time.Second
		return err
	}
	if len(l.drafts) == 0 {
		q.lanes[ns] = l
		q.order = append(q.order, ns)
	}
	for _, d := range drafts {
		q.turns++
		d.turn = q.turns
	}
	l.drafts = append(l.drafts, drafts...)
	l.bytes += size
	q.items += len(drafts)
	q.bytes += size
	q.signal()
	return nil
}

// giveBack puts drafts in their places again, to be decided anew.
func (q *queue) giveBack(drafts []*draft) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(drafts) - 1; i >= 0; i-- {
		d := drafts[i]
		l := q.lanes[d.header.Namespace]
		if l == nil {
			l = &lane{}
			q.lanes[d.header.Namespace] = l
			q.order = append([]events.ID{d.header.Namespace}, q.order...)
		}
		at, _ := slices.BinarySearchFunc(l.drafts, d.turn, func(o *draft, turn uint64) int { return cmp.Compare(o.turn, turn) })
		l.drafts = slices.Insert(l.drafts, at, d)
		l.bytes += d.size
		q.items++
		q.bytes += d.size
	}
	q.signal()
}

// tryTake returns up to maxBytes of what waits, one draft at a time from each
// namespace in turn, at least one; nil if there is none or the queue is paused.
// Say decided before the next one.
func (q *queue) tryTake(maxBytes, maxItems int) []*draft {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.items == 0 || q.paused > 0 {
		return nil
	}
	q.out = make(chan struct{})
	return q.takeLocked(maxBytes, maxItems)
}

// available reports whether tryTake gives something.
func (q *queue) available() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items > 0 && q.paused == 0
}

// ended reports whether the queue is closed and empty.
func (q *queue) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && q.items == 0
}

func (q *queue) takeLocked(maxBytes, maxItems int) []*draft {
	var out []*draft
	size := 0
	for q.items > 0 && len(out) < maxItems {
		ns := q.order[0]
		l := q.lanes[ns]
		d := l.drafts[0]
		if len(out) > 0 && size+d.size > maxBytes {
			break
		}
		out = append(out, d)
		size += d.size
		l.drafts = l.drafts[1:]
		l.bytes -= d.size
		q.items--
		q.bytes -= d.size
		q.order = q.order[1:]
		if len(l.drafts) > 0 {
			q.order = append(q.order, ns)
		} else {
			delete(q.lanes, ns)
		}
	}
	if q.items > 0 {
		q.signal()
	}
	return out
}

// pause stops tryTake from giving out drafts until resume.
func (q *queue) pause() {
	q.mu.Lock()
	q.paused++
	q.mu.Unlock()
}

func (q *queue) resume() {
	q.mu.Lock()
	if q.paused > 0 { // close ends every pause
		q.paused--
	}
	q.mu.Unlock()
	q.signal()
}

// decided says that the last batch taken has been decided.
func (q *queue) decided() {
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.out)
	q.out = nil
}

// settled waits until no batch is between tryTake and decided.
func (q *queue) settled(ctx context.Context) error {
	q.mu.Lock()
	out := q.out
	q.mu.Unlock()
	if out == nil {
		return nil
	}
	select {
	case <-out:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close refuses further drafts; those inside can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.paused = 0
	q.mu.Unlock()
	q.signal()
}

// drop removes everything that waits and returns it.
func (q *queue) drop() []*draft {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.takeLocked(1<<62, 1<<31-1)
	return out
}

func (q *queue) depth() (items, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items, q.bytes
}
