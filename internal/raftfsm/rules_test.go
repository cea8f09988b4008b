package raftfsm

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// A leader that others may have deposed already must ask a majority before it
// answers a read, also while it still believes that it leads.
func TestReadAsksAMajorityWhileTheLeaderStillBelieves(t *testing.T) {
	c := openCluster(t, 3, func(o *Options) { o.HeartbeatTimeout, o.ElectionTimeout = 2*time.Second, 2*time.Second })
	c.join(t, 1)
	c.join(t, 2)
	lead := c.shards[0].group
	if _, err := lead.LinearizableIndex(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	c.net.cut(0)
	if lead.raft.State() != raft.Leader {
		t.Fatal("the test is too slow: the leader has stepped down")
	}
	// raft takes an answer that was under way before the cut for one to the
	// question; there are few of those.
	for reads := 0; ; reads++ {
		index, err := lead.LinearizableIndex(testCtx(t))
		if errors.Is(err, ErrNotLeader) {
			return
		}
		if err != nil || reads > 10 {
			t.Fatalf("a leader without a majority read at %d: %v", index, err)
		}
	}
}

// testFSM is an fsm over a machine that has applied one entry for each index.
func testFSM(t *testing.T, indexes ...uint64) (*fsm, *fileMachine) {
	t.Helper()
	m := newFileMachine(t, t.TempDir())
	for _, i := range indexes {
		if _, err := m.Apply([]Entry{{Index: i, Term: 1, Data: fmt.Appendf(nil, "k%d=%d", i, i)}}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	return &fsm{machine: m, snaps: newTestSnapStore(t, dir), dir: filepath.Join(dir, "restore"),
		progress: newProgress(0), log: slog.New(slog.DiscardHandler)}, m
}

// A leader may install a snapshot that lies behind what this replica has; the
// state must not go back to it.
func TestRestoreNeverGoesBack(t *testing.T) {
	old, _ := testFSM(t, 1, 2)
	cp, err := old.checkpoint(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := old.snaps.Create(1, 2, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Persist(sink); err != nil {
		t.Fatal(err)
	}
	for have, want := range map[uint64]uint64{5: 5, 1: 2} {
		f, m := testFSM(t, have)
		_, r, err := old.snaps.Open(sink.ID())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Restore(r), r.Close()); err != nil {
			t.Fatal(err)
		}
		if got, _ := m.AppliedIndex(); got != want {
			t.Fatalf("the state went from %d to %d", have, got)
		}
	}
}

// While raft replays what the machine already has, its index is lower than the
// state's; a snapshot would give the later state that index.
func TestNoSnapshotWhileReplaying(t *testing.T) {
	f, _ := testFSM(t, 1, 2, 3)
	apply := func(index uint64) {
		f.ApplyBatch([]*raft.Log{{Index: index, Term: 1, Type: raft.LogCommand, Data: []byte("x=1")}})
	}
	apply(2)
	if cp, err := f.Snapshot(); err == nil {
		t.Fatalf("a snapshot at %d of a state at 3", cp.(*fsmSnapshot).index)
	}
	apply(3)
	if _, err := f.Snapshot(); err != nil {
		t.Fatal(err)
	}
}

// A lost raft.db may have seen elections of which neither state nor snapshots
// tell, and none of its terms may come again.
func TestNewLogLeapsAboveForgottenElections(t *testing.T) {
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.put(t, "a=1")
	for range 5 {
		s.close(t)
		s = openShard(t, dir).lead(t)
	}
	seen := s.group.Term()
	s.close(t)
	if state := s.machine.get(); state.Term+4 > seen {
		t.Fatalf("the test needs elections without commands: state %d, raft.db %d", state.Term, seen)
	}
	if err := os.Remove(dbFile(dir)); err != nil {
		t.Fatal(err)
	}
	s = openShard(t, dir).lead(t)
	if got := s.group.Term(); got <= seen+500 {
		t.Fatalf("term %d after %d", got, seen)
	}
}

// The event log's end may know a higher term than anything else that is left,
// whatever of the rest is lost or old.
func TestNewLogLeapsAboveTheOwnersTerm(t *testing.T) {
	floor := func(o *Options) { o.TermFloor = 70_000 }
	for name, lose := range map[string][]string{
		"nothing": nil, "raft.db": {"raft/raft.db"}, "raft": {"raft"}, "all": {"raft", "state"},
		"but the state": {"state", "raft/raft.db", "raft/snapshots"},
	} {
		dir, _ := preparedShard(t, 10)
		for _, n := range lose {
			if err := os.RemoveAll(filepath.Join(dir, n)); err != nil {
				t.Fatal(err)
			}
		}
		s := openShard(t, dir, floor).lead(t)
		term := s.group.Term()
		if term <= 70_500 {
			t.Errorf("%s lost: term %d", name, term)
		}
		s.put(t, "a=1")
		s.close(t)
		s = openShard(t, dir, floor).lead(t)
		if got := s.group.Term(); got <= term || got > term+100 {
			t.Errorf("%s lost: term %d after %d at the next start", name, got, term)
		}
	}
}

// A state that was built from the event log takes the group's own index, never
// the log's sequence: entries are neither skipped nor applied twice.
func TestInspectTellsWhereARebuiltStateStands(t *testing.T) {
	if got, err := Inspect(Options{Dir: filepath.Join(t.TempDir(), "raft"), ID: "n1"}); err != nil || !reflect.DeepEqual(got, Inspection{Alone: true}) {
		t.Fatalf("%+v %v", got, err)
	}
	dir := t.TempDir()
	s := openShard(t, dir).lead(t)
	s.putMany(t, 0, 10)
	opt := Options{Dir: filepath.Join(dir, "raft"), ID: "n1"}
	if _, err := Inspect(opt); !errors.Is(err, ErrLocked) {
		t.Fatalf("of an open group: %v", err)
	}
	if err := s.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	snap, err := Inspect(opt)
	if want := s.machine.get(); err != nil || snap.Index != want.Index || snap.Term != want.Term || !snap.Alone || snap.Damage != nil {
		t.Fatalf("%+v %v, want %d/%d", snap, err, want.Index, want.Term)
	}
	s = openShard(t, dir).lead(t)
	s.putMany(t, 10, 20)
	s.close(t)
	at, err := Inspect(opt)
	if err != nil || at.Index < s.machine.get().Index || at.Index <= snap.Index || snap.Command != nil || string(at.Command) != "k019=v19" {
		t.Fatalf("%+v %v", at, err)
	}

	if whole, err := Complete(opt); err != nil || !whole {
		t.Fatalf("complete: %v %v", whole, err)
	}

	// The rebuilt state: the same rows, at that index.
	rebuilt := s.machine.get()
	rebuilt.Index, rebuilt.Term = at.Index, at.Term
	s.machine.state = rebuilt
	if err := s.machine.Flush(); err != nil {
		t.Fatal(err)
	}
	c := openShard(t, dir).lead(t)
	if c.machine.applies != 0 || c.group.Stats().Repair != (Repair{}) {
		t.Fatalf("%d applies, %+v", c.machine.applies, c.group.Stats().Repair)
	}
	c.put(t, "k020=v20")
	checkRows(t, c.machine.get(), 21)
	c.close(t)

	addPeerToMembership(t, dir)
	if at, err := Inspect(opt); err != nil || at.Alone {
		t.Fatalf("with a peer: %+v %v", at, err)
	}
}

// Each error of a Propose is of exactly one class.
func TestProposeErrorsAreOfOneClass(t *testing.T) {
	class := func(err error) string {
		var of []string
		for name, kind := range map[string]error{"not leader": ErrNotLeader, "unknown": ErrUnknownOutcome, "refused": ErrRefused} {
			if errors.Is(err, kind) {
				of = append(of, name)
			}
		}
		return fmt.Sprint(of)
	}
	for err, want := range map[error]string{
		raft.ErrNotLeader: "[not leader]", raft.ErrLeadershipTransferInProgress: "[not leader]",
		raft.ErrLeadershipLost: "[unknown]", raft.ErrAbortedByRestore: "[unknown]", raft.ErrRaftShutdown: "[unknown]",
		errBoom: "[unknown]",
	} {
		if got := class(proposeErr(err)); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
	ctx := testCtx(t)
	s := openShard(t, t.TempDir()).lead(t)
	if got := class(waitErr(ctx, s.group.Propose(ctx, make([]byte, defaultMaxCommandBytes+1)))); got != "[refused]" {
		t.Errorf("too large: %s", got)
	}
	s.machine.mu.Lock()
	s.machine.short = true
	s.machine.mu.Unlock()
	if got := class(waitErr(ctx, s.group.Propose(ctx, []byte("a=1")))); got != "[unknown]" {
		t.Errorf("a halt: %s", got)
	}
	if got := class(waitErr(ctx, s.group.Propose(ctx, []byte("a=1")))); got != "[refused]" {
		t.Errorf("when halted: %s", got)
	}
	_ = s.group.Close()
	if got := class(waitErr(ctx, s.group.Propose(ctx, []byte("a=1")))); got != "[refused]" {
		t.Errorf("when closed: %s", got)
	}
}
