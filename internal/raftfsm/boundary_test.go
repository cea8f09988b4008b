package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// A leader that was cut off right after a snapshot, whose log was compacted up to its end,
// has entries behind it that nobody else has. The next leader and it went back to the
// snapshot's end, where neither had an entry: it was sent the same snapshot for ever, and
// applied nothing more until it was started again.
func TestLogThatDiffersRightBehindItsSnapshot(t *testing.T) { overBoth(t, 3, differsBehindSnapshot) }

func differsBehindSnapshot(t *testing.T, net network) {
	few := func(o *Options) { o.TrailingLogs = -1 }
	c := openClusterOver(t, net, 3, few)
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	lead := c.leader(t)
	lead.putMany(t, 0, 20)
	index, err := lead.group.LinearizableIndex(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	for _, s := range c.shards {
		if err := s.group.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	at := 0 // the one that leads
	for i, s := range c.shards {
		if s == lead {
			at = i
		}
	}
	for i, s := range c.shards {
		if i != at {
			s.close(t)
			c.shards[i] = nil
		}
	}
	for i := range 3 { // they get into its log, and nowhere else
		lead.group.Propose(ctx, fmt.Appendf(nil, "lost-%d=1", i))
	}
	for lead.group.Stats().LastIndex < index+3 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the entries are not in its log")
		}
	}
	lead.close(t)
	c.shards[at] = nil
	for i := range c.shards {
		if i != at {
			c.open(t, i, few)
		}
	}
	next := c.leader(t)
	next.putMany(t, 20, 25)
	c.open(t, at, few)
	if index, err = next.group.LinearizableIndex(ctx); err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
}

// What a snapshot was installed into keeps what lies behind the snapshot: Raft believes that
// it does. The term of the snapshot's last entry is known without the entry.
func TestLogKeepsWhatLiesBehindASnapshot(t *testing.T) {
	s := openTestStores(t, t.TempDir()+"/raft.db")
	for i := uint64(10); i <= 15; i++ {
		if err := s.log.StoreLog(&raft.Log{Index: i, Term: 2, Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	s.log.boundary = func() (uint64, uint64) { return 13, 3 }
	if err := s.log.DeleteRange(10, 15); err != nil {
		t.Fatal(err)
	}
	var l raft.Log
	if err := s.log.GetLog(13, &l); err != nil || l.Term != 3 || l.Index != 13 {
		t.Errorf("the snapshot's end: %+v, %v", l, err)
	}
	for i, there := range map[uint64]bool{12: false, 14: true, 15: true} {
		if err := s.log.GetLog(i, &l); (err == nil) != there {
			t.Errorf("entry %d: %v", i, err)
		}
	}
	if err := s.log.DeleteRange(14, 15); err != nil { // what differs is cut off
		t.Fatal(err)
	}
	if last, err := s.log.LastIndex(); err != nil || last != 0 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
	s.log.boundary = func() (uint64, uint64) { return 1, 1 } // else it would be sent instead of a snapshot
	if err := s.log.GetLog(1, &l); err == nil {
		t.Error("the first entry was made up")
	}
}
