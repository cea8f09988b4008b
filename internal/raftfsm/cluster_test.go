package raftfsm

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/hashicorp/raft"
)

// openCluster starts n replicas: the first founds the group, the others join as
// non-voters and are promoted.
func openCluster(t *testing.T, n int, change ...func(*Options)) *cluster {
	t.Helper()
	return openClusterOver(t, &memory{map[int]*raft.InmemTransport{}}, n, change...)
}

func openClusterOver(t *testing.T, net network, n int, change ...func(*Options)) *cluster {
	t.Helper()
	c := &cluster{net: net}
	for i := range n {
		c.dirs = append(c.dirs, t.TempDir())
		c.shards = append(c.shards, nil)
		c.open(t, i, change...)
	}
	c.shards[0].lead(t)
	return c
}

func (c *cluster) open(t *testing.T, i int, change ...func(*Options)) {
	t.Helper()
	tr := c.net.transport(t, i)
	c.shards[i] = openShard(t, c.dirs[i], append([]func(*Options){func(o *Options) {
		o.ID, o.Transport = replicaID(i), tr
		o.Bootstrap, o.NoSync = i == 0, false
		o.HeartbeatTimeout, o.ElectionTimeout = 600*time.Millisecond, 600*time.Millisecond
	}}, change...)...)
}

func (c *cluster) join(t *testing.T, i int) {
	t.Helper()
	ctx := testCtx(t)
	lead := c.leader(t)
	id, addr := replicaID(i), c.net.addr(i)
	if err := lead.group.AddNonvoter(ctx, id, addr, 0); err != nil {
		t.Fatal(err)
	}
	index, err := lead.group.LinearizableIndex(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.shards[i].group.WaitApplied(ctx, index); err != nil {
		t.Fatal(err)
	}
	err = lead.group.Promote(ctx, id, addr, 0)
	for errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotLeader) { // it lost the lead meanwhile
		err = c.leader(t).group.Promote(ctx, id, addr, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// leader waits until one replica leads and its term has begun.
func (c *cluster) leader(t *testing.T) *shard {
	t.Helper()
	ctx, cancel := context.WithCancel(testCtx(t))
	defer cancel()
	found := make(chan *shard, len(c.shards))
	for _, s := range c.shards {
		if s == nil {
			found <- nil
			continue
		}
		go func() {
			if s.group.WaitLeader(ctx) != nil {
				s = nil
			}
			found <- s
		}()
	}
	var lead *shard
	for range c.shards {
		if s := <-found; s != nil && lead == nil {
			lead = s
			cancel()
		}
	}
	if lead == nil {
		t.Fatal("no leader")
	}
	return lead
}

func (c *cluster) same(t *testing.T, index uint64) {
	t.Helper()
	want := c.leader(t).machine.get()
	for i, s := range c.shards {
		if s == nil {
			continue
		}
		if err := s.group.WaitApplied(testCtx(t), index); err != nil {
			t.Fatal(err)
		}
		if got := s.machine.get(); !reflect.DeepEqual(got, want) {
			t.Fatalf("replica %d: %+v, want %+v", i, got, want)
		}
	}
}

func TestThreeReplicas(t *testing.T) { overBoth(t, 3, three) }

func three(t *testing.T, net network) {
	c := openClusterOver(t, net, 3)
	ctx := testCtx(t)
	c.shards[0].putMany(t, 0, 30)
	c.join(t, 1)
	c.join(t, 2)
	if m, index := c.shards[0].group.Members(); len(m) != 3 || !m[2].Voter || index == 0 {
		t.Fatalf("members %+v at %d", m, index)
	}
	c.shards[0].putMany(t, 30, 60)
	index, err := c.shards[0].group.LinearizableIndex(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	if err := waitErr(ctx, c.shards[1].group.Propose(ctx, []byte("x=1"))); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("a follower took a command: %v", err)
	}

	// Hand over, go on there, and read from it what the first one acknowledged.
	for first := c.shards[0].group; first.raft.State() == raft.Leader; {
		if err := first.TransferLeadership(ctx); err != nil {
			t.Log(err) // too slow a machine; it may be tried again
		}
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	lead := c.leader(t)
	checkRows(t, lead.machine.get(), 60)
	lead.putMany(t, 60, 70)
	if index, err = lead.group.LinearizableIndex(ctx); err != nil {
		t.Fatal(err)
	}
	c.same(t, index)

	// A lost raft.db is not made up where there are peers.
	c.shards[2].close(t)
	c.shards[2] = nil
	if err := moveAsideForTest(filepath.Join(c.dirs[2], "raft", "raft.db")); err != nil {
		t.Fatal(err)
	}
	_, err = tryOpenShard(t, c.dirs[2], func(o *Options) { o.ID, o.NoSync, o.Bootstrap = "n3", false, true })
	if !errors.Is(err, ErrDamaged) {
		t.Fatalf("opened with a lost log: %v", err)
	}
	if err := c.leader(t).group.Remove(ctx, "n3", 0); err != nil {
		t.Fatal(err)
	}
}

func moveAsideForTest(path string) error { _, err := moveAside(vfs.Default, path); return err }

// A replica that comes late gets the snapshot in its streamed form, restores it
// and follows the log from there; so does one that was away for long.
func TestSnapshotIsInstalledOnPeer(t *testing.T) { overBoth(t, 3, snapshotInstalled) }

func snapshotInstalled(t *testing.T, net network) {
	few := func(o *Options) { o.TrailingLogs = -1 }
	c := openClusterOver(t, net, 3, few)
	c.shards[0].putMany(t, 0, 40)
	if err := c.shards[0].group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	c.join(t, 1)
	c.join(t, 2)
	if n := len(c.shards[1].machine.seen); n != 0 {
		t.Fatalf("%d entries came through the log, not in the snapshot", n)
	}
	checkRows(t, c.shards[1].machine.get(), 40)

	c.shards[2].close(t)
	c.shards[2] = nil
	lead := c.leader(t)
	lead.putMany(t, 40, 80)
	if err := lead.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	c.open(t, 2, few)
	lead = c.leader(t)
	lead.putMany(t, 80, 85)
	index, err := lead.group.LinearizableIndex(testCtx(t))
	if err != nil {
		t.Fatal(err)
	}
	c.same(t, index)
	c.shards[2].close(t)
	c.open(t, 2, few) // what the installed snapshot left behind opens again
	if err := c.shards[2].group.WaitApplied(testCtx(t), index); err != nil {
		t.Fatal(err)
	}
}

// Without a quorum nothing is acknowledged and no linearizable read is answered.
func TestLeaderWithoutQuorumStepsDown(t *testing.T) { overBoth(t, 3, withoutQuorum) }

func withoutQuorum(t *testing.T, net network) {
	c := openClusterOver(t, net, 3)
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	lead := c.leader(t)
	for i, s := range c.shards {
		if s == lead {
			c.net.cut(i)
		}
	}
	err := waitErr(ctx, lead.group.Propose(ctx, []byte("lost=1")))
	if !errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrNotLeader) {
		t.Fatalf("propose without a quorum: %v", err)
	}
	if _, err := lead.group.LinearizableIndex(ctx); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("read without a quorum: %v", err)
	}
}

func TestMembersNeedASyncedLog(t *testing.T) {
	s := openShard(t, t.TempDir()).lead(t)
	if err := s.group.AddNonvoter(testCtx(t), "n2", "x", 0); !errors.Is(err, ErrNoSync) {
		t.Fatal(err)
	}
}
