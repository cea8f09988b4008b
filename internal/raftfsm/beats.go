package raftfsm

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// beats has the heartbeats of a leader go out together: to all other replicas, and those of
// all groups with the same timeout in this process. Each would wake this process, and what
// it goes to, at a time of its own otherwise, and an idle node does little else.
//
// Raft sends each replica a heartbeat after a pause between a tenth and a fifth of the
// heartbeat timeout, drawn each time. Here one that comes early waits for the next multiple
// of a fifth, unless the pause would become longer than that: so it is never longer than it
// may be without this.
type beats struct {
	every time.Duration // the longest pause

	mu    sync.Mutex
	sent  map[raft.ServerID]time.Time // the last one of each replica
	asked int                         // how many wait to hear whether this replica leads
	now   chan struct{}               // closed and replaced where none may wait any longer
	ended bool
}

func newBeats(timeout time.Duration) beats {
	return beats{every: timeout / 5, sent: map[raft.ServerID]time.Time{}, now: make(chan struct{})}
}

// isHeartbeat tells a heartbeat from a request that says what was entered or committed, by
// what raft's transport tells it by.
func isHeartbeat(req *raft.AppendEntriesRequest) bool {
	return len(req.Entries) == 0 && req.PrevLogEntry == 0 && req.PrevLogTerm == 0 && req.LeaderCommitIndex == 0
}

// wait returns when a heartbeat is to go out, and whether that is later than it was called.
func (b *beats) wait(to raft.ServerID) (waited bool) {
	rest, now := b.rest(to)
	if rest > 0 {
		t := time.NewTimer(rest)
		defer t.Stop()
		select {
		case <-t.C:
		case <-now:
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent[to] = time.Now()
	return rest > 0
}

// rest is how long a heartbeat may wait, unless now is closed before.
func (b *beats) rest(to raft.ServerID) (rest time.Duration, now <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.every <= 0 || b.asked > 0 || b.ended {
		return 0, nil
	}
	at := time.Now()
	next := at.Truncate(b.every).Add(b.every) // by the wall clock, so that groups, and nodes, agree
	rest = next.Sub(at.Round(0))
	if last, ok := b.sent[to]; !ok || at.Sub(last)+rest > b.every {
		return 0, nil
	}
	return rest, b.now
}

// hurry runs f, which waits for heartbeats, while none waits.
func (b *beats) hurry(f func() error) error {
	b.mu.Lock()
	b.asked++
	b.goLocked()
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked--
	}()
	return f()
}

// end has no heartbeat wait any more.
func (b *beats) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.goLocked()
}

func (b *beats) goLocked() {
	close(b.now)
	b.now = make(chan struct{})
}
