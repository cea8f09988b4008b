package raftfsm

import (
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"
)

// A leader whose log was cut between raft's looking for an entry and its reading the next one
// sent a no-op in that one's place: the follower lacked the command for good.
func TestWhatStandsInForAnEntryIsNotSent(t *testing.T) {
	s := openTestStores(t, t.TempDir()+"/raft.db")
	s.log.boundary = func() (uint64, uint64) { return 13, 3 }
	var in raft.Log
	if err := s.log.GetLog(13, &in); err != nil || in.Term != 3 {
		t.Fatalf("%+v, %v", in, err)
	}
	a := newAnnouncer(nil, new(Group)) // what is sent panics
	req := &raft.AppendEntriesRequest{PrevLogEntry: 12, PrevLogTerm: 3, Entries: []*raft.Log{&in}}
	if err := a.AppendEntries("n2", "n2", req, new(raft.AppendEntriesResponse)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("what stands in for entry 13: %v", err)
	}
}

// A snapshot that was received, and could not be restored, was taken for what the replica has:
// the entry at its end was skipped, or memnode panicked.
func TestSnapshotCountsOnceItIsRestored(t *testing.T) {
	s := newTestSnapStore(t, t.TempDir())
	adoptSnapshot(t, s, 20, map[string]string{"a": "own"})
	if index, _ := s.boundary(); index != 20 {
		t.Fatalf("its own snapshot counts up to %d", index)
	}
	from := newTestSnapStore(t, t.TempDir())
	meta, source, err := from.Open(adoptSnapshot(t, from, 40, map[string]string{"a": "another's"}))
	if err != nil {
		t.Fatal(err)
	}
	sink, err := s.Create(1, meta.Index, meta.Term, meta.Configuration, meta.ConfigurationIndex, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(sink, source)
	if err := errors.Join(err, sink.Close(), source.Close()); err != nil {
		t.Fatal(err)
	}
	if index, _ := s.boundary(); s.latest().man.Index != 40 || index != 20 {
		t.Errorf("received up to %d, it counts up to %d", s.latest().man.Index, index)
	}
	s.restored(40)
	if index, _ := s.boundary(); index != 40 {
		t.Errorf("restored, it counts up to %d", index)
	}
}

// A leader whose snapshot was damaged on its disk sent it again and again, and a replica that
// needed it, as a new one does, never got any further.
func TestDamagedSnapshotIsReplacedWhileItIsSent(t *testing.T) {
	few := func(o *Options) { o.TrailingLogs = -1 }
	for _, restarted := range []bool{false, true} { // raft takes no snapshot before it has applied an entry
		c := openClusterOver(t, &memory{map[int]*raft.InmemTransport{}}, 1, few)
		c.shards[0].putMany(t, 0, 20)
		if err := c.shards[0].group.Snapshot(); err != nil {
			t.Fatal(err)
		}
		if restarted {
			c.shards[0].close(t)
			c.open(t, 0, few)
			c.shards[0].lead(t)
		}
		lead := c.shards[0]
		snap := lead.group.snaps.latest()
		file := snap.man.Files[0]
		flipBit(t, joinName(lead.group.snaps.fs, lead.group.snaps.dataDir(snap.id), file.Name), file.Size/2, 3)
		c.dirs, c.shards = append(c.dirs, t.TempDir()), append(c.shards, nil)
		c.open(t, 1, few)
		c.join(t, 1)
		index, err := lead.group.LinearizableIndex(testCtx(t))
		if err != nil {
			t.Fatal(err)
		}
		c.same(t, index)
	}
}
