package keygroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"mneme/internal/keyring"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// A key was on the node that made it only: a frame that was sealed under it could be
// opened nowhere after that node's loss.
func TestKeyMadeOnAFollowerIsOnAMajority(t *testing.T) {
	t.Parallel()
	s := threeNodes(t)
	maker := s.followers()[0]
	must(t, maker.keys.CreateNamespace(team))
	id := maker.ensure("ada")
	sealed := maker.seal(id)
	s.leader().mustOpen(id, sealed) // with the maker a majority, at once
	maker.stop()
	for _, n := range s.nodes {
		if n == maker {
			continue
		}
		must(t, n.group.CatchUp(testCtx(t)))
		n.mustOpen(id, sealed)
	}
	maker.mustStart(false)
	maker.mustOpen(id, sealed) // from its own files, before it has heard of anybody
	s.same()
}

func TestKeysGoOnWithoutTheirLeader(t *testing.T) {
	t.Parallel()
	s := threeNodes(t)
	must(t, s.leader().keys.CreateNamespace(team))
	for round := range 3 {
		lead := s.leader()
		name := string(rune('a' + round))
		id := lead.ensure(name)
		sealed := lead.seal(id)
		rest := s.followers()
		lead.stop()
		for i, n := range rest {
			must(t, n.group.CatchUp(testCtx(t)))
			n.mustOpen(id, sealed)
			n.ensure(name + string(rune('0'+i)))
		}
		lead.mustStart(false)
		must(t, lead.group.CatchUp(testCtx(t)))
		lead.mustOpen(id, sealed)
		s.same()
	}
}

// A blank keyring that was given the log from its beginning could open none of its
// commands: they are sealed under a key that only the founder's keyring began with.
func TestJoinerGetsASnapshot(t *testing.T) {
	t.Parallel()
	s := newSite(t, 3)
	founder, late := s.nodes[0], s.nodes[1]
	founder.mustStart(true)
	if st := founder.group.Stats(); st.FirstIndex == 1 || st.SnapshotIndex == 0 {
		t.Fatalf("the founder's log begins at %d, its snapshot is at %d", st.FirstIndex, st.SnapshotIndex)
	}
	must(t, founder.keys.CreateNamespace(team))
	id := founder.ensure("ada")
	sealed := founder.seal(id)
	// The log holds all commands still, for nothing but the founding was in a snapshot.
	if st := founder.group.Stats(); st.FirstIndex != 2 || st.SnapshotIndex != 1 {
		t.Fatalf("the log begins at %d, the snapshot is at %d", st.FirstIndex, st.SnapshotIndex)
	}
	late.mustStart(false)
	if !late.keys.Machine().Blank() {
		t.Fatal("a node that joins has keys of its own")
	}
	s.join(late)
	late.mustOpen(id, sealed)
	if st := late.group.Stats(); st.FirstIndex == 1 || st.SnapshotIndex == 0 {
		t.Fatalf("the joiner's log begins at %d, its snapshot is at %d", st.FirstIndex, st.SnapshotIndex)
	}
	// One more, from a snapshot with all of it.
	must(t, s.leader().group.Raft().Snapshot())
	s.nodes[2].mustStart(false)
	s.join(s.nodes[2])
	s.nodes[2].mustOpen(id, sealed)
	s.same()

	// And a voter whose disk was lost, under its old name.
	late.stop()
	must(t, os.RemoveAll(late.dir))
	late.mustStart(false)
	must(t, late.group.CatchUp(testCtx(t)))
	late.mustOpen(id, sealed)
	s.same()
}

// The founder's files may be lost at any step of its start; what founds again has one
// group and the same keys.
func TestFoundingMayBeRepeated(t *testing.T) {
	t.Parallel()
	for _, lost := range [][]string{{"group"}, {"group/raft.db"}, {"group/raft.db", "group/membership"}, {"group/snapshots"}} {
		s := newSite(t, 2)
		founder := s.nodes[0]
		founder.mustStart(true)
		want := founder.keys.Cluster().ID()
		founder.stop()
		for _, name := range lost {
			must(t, os.RemoveAll(filepath.Join(founder.dir, name)))
		}
		founder.mustStart(true)
		s.nodes[1].mustStart(false)
		s.join(s.nodes[1])
		if founder.keys.Cluster().ID() != want || s.nodes[1].keys.Cluster().ID() != want {
			t.Errorf("%v lost: another cluster key", lost)
		}
		s.same()
	}
}

func TestBlankReplicaHaltsOnACommand(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	n := s.nodes[0]
	n.mustStart(false)
	_, err := n.group.machine.Apply([]raftfsm.Entry{{Index: 2, Term: 1, Data: []byte("command")}})
	if at := (*raftfsm.ApplyError)(nil); !errors.As(err, &at) || at.Index != 2 || !errors.Is(err, keyring.ErrBlank) {
		t.Errorf("a blank keyring applied a command: %v", err)
	}
	if _, err := n.group.machine.Checkpoint(filepath.Join(n.dir, "x")); !errors.Is(err, keyring.ErrBlank) {
		t.Errorf("a snapshot of a blank keyring: %v", err)
	}
	n.stop()
	if err := n.start(true); err == nil || !errors.Is(err, keyring.ErrBlank) {
		t.Errorf("a group was founded with a blank keyring: %v", err)
	}
}

// A member that lost its group's folder has keys but no vote that it remembers: it must
// not found a second group.
func TestMemberWithoutItsFilesDoesNotFound(t *testing.T) {
	t.Parallel()
	s := threeNodes(t)
	n := s.followers()[0]
	n.stop()
	must(t, os.RemoveAll(n.groupDir()))
	if err := n.start(false); !errors.Is(err, raftfsm.ErrDamaged) {
		t.Errorf("it starts: %v", err)
	}
}

// What cannot be proposed is refused as such; what may have been is not.
func TestCommandsWithoutAMajority(t *testing.T) {
	t.Parallel()
	s := threeNodes(t, func(n *node) { n.change = func(o *Options) { o.Patience = time.Second } })
	must(t, s.leader().keys.CreateNamespace(team))
	s.same()
	lead, rest := s.leader(), s.followers()
	lead.stop()
	rest[0].stop()
	rest[1].forgetsLeader()
	_, _, err := rest[1].keys.EnsureSubjects(team, []string{"ada"})
	if memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a follower without a leader: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rest[1].group.CatchUp(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it caught up with nobody: %v", err)
	}
	rest[0].mustStart(false)
	lead = s.leader()
	other := s.followers()[0]
	other.stop()
	if _, _, err = lead.keys.EnsureSubjects(team, []string{"ada"}); memory.CodeOf(err) != memory.CodeOutcomeUnknown && memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a leader without followers: %v", err)
	}
	other.mustStart(false)
	s.same() // somebody leads
	if _, _, err = other.keys.EnsureSubjects(team, []string{"ada"}); err != nil {
		t.Error(err)
	}
	s.same()
}

// An answer of the leader that got lost made the caller give up, or take a key that it
// had made for another's.
func TestLostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	var lost atomic.Int32
	s := threeNodes(t, func(n *node) {
		n.change = func(o *Options) {
			call := o.Call
			o.Call = func(ctx context.Context, to rpc.Target, method string, in, out any) error {
				err := call(ctx, to, method, in, out)
				if err == nil && method == methodPropose && lost.Add(1)%2 == 1 {
					return errors.Join(rpc.ErrNoAnswer, err)
				}
				return err
			}
		}
	})
	n := s.followers()[0]
	must(t, n.keys.CreateNamespace(team))
	id := n.ensure("ada")
	_, err := n.keys.Combine([]keyring.KeyID{id, n.ensure("bob")})
	must(t, err)
	must(t, n.keys.Destroy(id))
	if lost.Load() < 8 {
		t.Errorf("%d answers", lost.Load())
	}
	s.same()
}

// A node that is asked though it does not lead says who does; one that does not serve
// yet is not taken for one that changed something.
func TestCallsSayWhoLeads(t *testing.T) {
	t.Parallel()
	s := threeNodes(t)
	lead, other, third := s.leader(), s.followers()[0], s.followers()[1]
	must(t, other.group.CatchUp(testCtx(t)))
	var out position
	err := s.leader().client.Call(testCtx(t), rpc.Target{Addr: other.addr, Node: other.name}, methodIndex, struct{}{}, &out)
	if e := memory.AsError(err); e.Code != memory.CodeUnavailable || e.Message != "node "+other.name+" does not lead the group of keys, "+lead.name+" does" {
		t.Errorf("%v", err)
	}
	must(t, other.server.Close(testCtx(t)))
	var err2 error
	other.server, err2 = rpc.Serve(other.port, Service, nil, nil)
	must(t, err2)
	if _, _, err := third.group.proposeThere(testCtx(t), other.name, raftfsm.Address(other.name, other.addr), nil); memory.CodeOf(err) != memory.CodeUnavailable {
		t.Errorf("a node that serves no keys: %v", err)
	}
}
