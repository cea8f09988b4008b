package node

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/api"
	"mneme/internal/eventlog"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// proposer stands between a writer and Raft.
type proposer func(ctx context.Context, data []byte) *raftfsm.Future

func (p proposer) Propose(ctx context.Context, data []byte) *raftfsm.Future { return p(ctx, data) }

// writeThrough gives the node another writer of the same term, whose commands go
// through p.
func writeThrough(t *testing.T, n *Node, p proposer) {
	t.Helper()
	n.admin.Lock()
	defer n.admin.Unlock()
	if err := n.stopShard(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := ingest.Start(t.Context(), ingest.Options{Shard: shard0, Stream: n.stream, Group: p, Term: n.group.Term(), State: n.state,
		Keys: n.keys, Book: n.book, Now: n.cfg.Now, Logger: n.cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	n.writing.Lock()
	n.writer = w
	n.attacher = ingest.NewAttacher(w, n.embedders)
	n.builder = ingest.NewBuilder(w, n.embedders, n.query.CompareSpaces)
	n.writing.Unlock()
}

// A linearizable read waited for what Raft had committed. What was accepted is in
// the log before Raft hears of it: the read missed it.
func TestLinearizableReadSeesWhatWasAccepted(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	var held atomic.Bool
	hold := make(chan struct{})
	writeThrough(t, n, func(ctx context.Context, data []byte) *raftfsm.Future {
		if r, err := projections.DecodeRange(data); err == nil && held.Load() && len(r.Frames) > 0 {
			<-hold
		}
		return n.group.Propose(ctx, data)
	})
	held.Store(true) // the writer is open, and idle
	r, err := n.Capture(t.Context(), "default", []memory.Capture{{Agent: "tester", Text: "it was accepted"}},
		api.CaptureOptions{Origin: memory.OriginCapture}, memory.WaitAccepted)
	if err != nil || r.Results[0].Error != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := n.linear(short); err == nil {
		t.Error("the read does not wait for what was accepted")
	}
	close(hold)
	if err := n.linear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := find(t, n, "accepted"); len(got) != 1 {
		t.Errorf("found %q", got)
	}
}

// After a Raft group gave up its leadership for a moment, say on a full disk,
// nothing could be written until the node was started again.
func TestTermThatEndsIsFollowedByTheNext(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	gone, err := raftfsm.Open(raftfsm.Options{Dir: t.TempDir(), ID: "gone", Machine: &machine{state: n.state}, Bootstrap: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, n, "before")
	var lost atomic.Bool
	writeThrough(t, n, func(ctx context.Context, data []byte) *raftfsm.Future {
		if lost.Load() {
			return gone.Propose(ctx, data)
		}
		return n.group.Propose(ctx, data)
	})
	over := n.shardNow()
	lost.Store(true)
	if _, err := capture(n, "during"); memory.CodeOf(err) != memory.CodeOutcomeUnknown {
		t.Fatalf("the term is over: %v", err)
	}
	await(t, "the next term", func() bool { return n.shardNow() != over })
	must(t, n, "after")
	if got := find(t, n, "during"); !slices.Contains(got, "during") {
		t.Errorf("what the log has of the term that ended: %q", got)
	}
}

// The next term must not forget that log and state disagree.
func TestNextTermKeepsTheDivergence(t *testing.T) {
	n := open(t, quiet(t.TempDir()))
	over := n.shardNow()
	over.SetDiverged(&eventlog.DivergedError{Kind: eventlog.KindHash, Detail: "found by the scrub", Hint: "repair"})
	if err := n.beginAgain(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if _, err := capture(n, "x"); n.shardNow() == over || memory.CodeOf(err) != memory.CodeLogDiverged {
		t.Errorf("%v", err)
	}
}
