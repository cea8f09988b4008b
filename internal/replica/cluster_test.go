package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"mneme/internal/raftfsm"
)

// cluster is three replicas of one shard in one process.
type cluster struct {
	*shelf
	dirs     []string
	networks []*raft.InmemTransport
	replicas []*rig
	change   func(i int, o *Options) // of what each is opened with; nil = nothing
}

// connect makes a transport that reaches the others.
func (c *cluster) connect(i int) *raft.InmemTransport {
	addr, net := raft.NewInmemTransport(raft.ServerAddress(fmt.Sprint("addr-", i)))
	for j, other := range c.networks {
		if other != nil && j != i {
			net.Connect(other.LocalAddr(), other)
			other.Connect(addr, net)
		}
	}
	c.networks[i] = net
	return net
}

// options of a replica with peers; only the first one founded the group.
func (c *cluster) options(i int, founds bool) Options {
	opt := c.shelf.options(c.dirs[i])
	opt.ID, opt.Transport = fmt.Sprint("n", i), c.connect(i)
	opt.OpenGroup = func(o raftfsm.Options) (Group, error) {
		if o.Bootstrap || o.NoSync {
			c.t.Errorf("replica %d would found a group of its own: %v, or not sync: %v", i, o.Bootstrap, o.NoSync)
		}
		o.Bootstrap, o.TrailingLogs = founds, -1 // a snapshot leaves nothing of the log
		o.HeartbeatTimeout, o.ElectionTimeout = 1500*time.Millisecond, 1500*time.Millisecond
		return raftfsm.Open(o)
	}
	if c.change != nil {
		c.change(i, &opt)
	}
	return opt
}

func (c *cluster) open(i int, founds bool) *rig {
	c.t.Helper()
	r := &rig{t: c.t, views: newRecorder(), worker: newSentry()}
	var err error
	if r.Replica, err = Open(c.t.Context(), c.options(i, founds)); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(r.close)
	if err := r.Start(c.t.Context(), r.views, r.worker); err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (r *rig) group() *raftfsm.Group {
	if c, ok := r.Group().(chooser); ok {
		return c.Group
	}
	return r.Group().(*raftfsm.Group)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, nil)
}

func newClusterWith(t *testing.T, change func(i int, o *Options)) *cluster {
	t.Helper()
	c := &cluster{shelf: newShelf(t), networks: make([]*raft.InmemTransport, 3), change: change}
	for i := range 3 {
		c.dirs = append(c.dirs, t.TempDir())
		c.replicas = append(c.replicas, c.open(i, i == 0))
	}
	first := c.replicas[0]
	first.awaitWriter()
	for i := 1; i < 3; i++ {
		id, addr := fmt.Sprint("n", i), fmt.Sprint("addr-", i)
		if err := first.group().AddNonvoter(t.Context(), id, addr, 0); err != nil {
			t.Fatal(err)
		}
		if err := first.group().Promote(t.Context(), id, addr, 0); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// same waits until every replica stands where the given one does, and compares.
func (c *cluster) same(lead *rig) {
	c.t.Helper()
	index, err := lead.group().LinearizableIndex(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for i, r := range c.replicas {
		err := r.Group().WaitApplied(c.t.Context(), index)
		for give := time.Now().Add(patience); errors.Is(err, raftfsm.ErrHalted) && time.Now().Before(give); {
			time.Sleep(time.Millisecond) // one that was away halts at an event, and the quarantine behind it has it go on
			err = r.Group().WaitApplied(c.t.Context(), index)
		}
		if err != nil {
			c.t.Fatal(i, err)
		}
		c.sameAsLog(r.State())
	}
}

// Three nodes published each event three times, and none of them could start
// without leading.
func TestOnlyTheLeaderHasWorkers(t *testing.T) {
	c := newCluster(t)
	lead := c.replicas[0]
	lead.namespace("team")
	for i := range 5 {
		lead.mustCapture(fmt.Sprint("memory ", i))
	}
	c.same(lead)
	receive(t, "the leader's worker", lead.worker.posted)
	for i, r := range c.replicas[1:] {
		if r.Leads() || len(r.worker.posted) > 0 {
			t.Errorf("follower %d leads, or has a worker", i+1)
		}
		if _, applied := r.views.seen(); len(applied) == 0 || applied[len(applied)-1] != lead.State().Cursor().Seq {
			t.Errorf("the views of follower %d were told %v", i+1, applied)
		}
		if err := r.Linear(t.Context()); err == nil {
			t.Errorf("follower %d thinks that it is linearizable", i+1)
		}
	}
	// Another one leads.
	if err := lead.group().TransferLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive(t, "the former leader's worker to stop", lead.worker.relieved)
	next := c.awaitLeader(lead)
	receive(t, "the next leader's worker", next.worker.posted)
	next.mustCapture("written by the next one")
	if err := next.Linear(t.Context()); err != nil {
		t.Error(err)
	}
	c.same(next)
	if _, err := lead.Writer(); err == nil || lead.worker.inside.Load() != 0 {
		t.Error("the former leader goes on")
	}
	// A follower's state is rebuilt while it follows.
	rebuilt, err := lead.Rebuild(t.Context(), func(_, _ uint64) { next.mustCapture("meanwhile") })
	if err != nil || rebuilt.Before != rebuilt.After {
		t.Fatalf("%+v, %v", rebuilt, err)
	}
	c.same(next)
}

// awaitLeader waits until a replica other than one leads.
func (c *cluster) awaitLeader(but *rig) *rig {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	found := make(chan *rig, len(c.replicas))
	for _, r := range c.replicas {
		if r == but {
			continue
		}
		go func() {
			if r.WaitWriter(ctx) != nil {
				r = nil
			}
			found <- r
		}()
	}
	r := <-found
	cancel()
	if other := <-found; r == nil {
		r = other
	}
	if r == nil {
		c.t.Fatal("nobody leads")
	}
	return r
}

// A node began raft.db with its vote anew also where others relied on them.
func TestWithPeersNothingIsMovedAside(t *testing.T) {
	c := newCluster(t)
	c.replicas[0].namespace("team")
	follower := c.replicas[2]
	older := t.TempDir()
	c.same(c.replicas[0])
	if err := follower.State().Flush(); err != nil {
		t.Fatal(err)
	}
	if err := follower.State().Checkpoint(filepath.Join(older, "gen-000001")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(older, "CURRENT"), []byte("gen-000001\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.replicas[0].mustCapture("which the older state does not know")
	c.same(c.replicas[0])
	if err := follower.Group().Snapshot(); err != nil {
		t.Fatal(err)
	}
	follower.close()
	c.replicas = c.replicas[:2]
	refused := func(what string, opt Options, hint string) {
		t.Helper()
		before := listed(t, c.dirs[2])
		_, err := Open(t.Context(), opt)
		damaged, rejoin := (*DamagedError)(nil), (*raftfsm.RejoinError)(nil)
		switch {
		case errors.As(err, &damaged):
			if !errors.Is(err, ErrPeers) || !strings.Contains(damaged.Hint, hint) {
				t.Errorf("%s: %v; %s", what, err, damaged.Hint)
			}
		case !errors.As(err, &rejoin) || !strings.Contains(err.Error(), hint):
			t.Errorf("%s: %v", what, err)
		}
		if after := listed(t, c.dirs[2]); !slices.Equal(before, after) {
			t.Errorf("%s: it changed the files\n%q\n%q", what, before, after)
		}
	}
	alone := c.shelf.options(c.dirs[2])
	alone.ID = "n2"
	refused("without the way to its peers", alone, "cluster's options")
	damage(t, c.dirs[2])
	refused("with a damaged state, and without the way to its peers", alone, "join anew")
	putBack(t, c.dirs[2], older)
	refused("with an older state", c.options(2, false), "join anew")
}
