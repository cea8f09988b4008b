package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/internal/testaddr"
)

// counter is a machine that adds up the lengths of its commands.
type counter struct {
	mu    sync.Mutex
	State struct{ Index, Term, Sum uint64 }
	gate  chan struct{} // if not nil, Apply waits for it
}

func (c *counter) Apply(entries []raftfsm.Entry) ([]any, error) {
	if c.gate != nil {
		<-c.gate
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]any, len(entries))
	for i, e := range entries {
		c.State.Index, c.State.Term, c.State.Sum = e.Index, e.Term, c.State.Sum+uint64(len(e.Data))
		out[i] = c.State.Sum
	}
	return out, nil
}

func (c *counter) AppliedIndex() (uint64, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.State.Index, c.State.Term
}

func (c *counter) Flush() error { return nil }

func (c *counter) Checkpoint(dir string) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := json.Marshal(c.State)
	return c.State.Sum, errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "state"), b, 0o600))
}

func (c *counter) Restore(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "state"))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return json.Unmarshal(b, &c.State)
}

func (c *counter) sum() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.State.Sum
}

// replica is a node's part of a group.
type replica struct {
	node    *testNode
	machine *counter
	group   *raftfsm.Group
}

// patientElection is long enough that a machine with other things to do elects nobody
// else, and short enough that tests which take the leader away do not wait long.
const patientElection = time.Second

// open opens the group "0" of a node that has formed, and lets others join it.
func open(t *testing.T, n *testNode, dir string, change func(*replica)) *replica {
	t.Helper()
	r := &replica{node: n, machine: &counter{}}
	if change != nil {
		change(r)
	}
	facts := n.formed(t).Facts()
	l, err := n.port.Service("raft/0")
	if err != nil {
		t.Fatal(err)
	}
	port := n.port
	r.group, err = raftfsm.Open(raftfsm.Options{
		Dir: dir, ID: facts.Name(), Machine: r.machine, Bootstrap: facts.Founder, TrailingLogs: -1,
		HeartbeatTimeout: patientElection, ElectionTimeout: patientElection,
		Transport: raftfsm.NewTransport(raftfsm.Network{ID: facts.Name(), Addr: n.addr, Listener: l, Saw: Witness{n.cluster}.Saw("0"),
			Dial: func(ctx context.Context, addr, id string) (net.Conn, error) {
				return port.Dial(ctx, addr, id, "raft/0")
			}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.cluster.Serve("0", r.group)
	n.replica = r
	t.Cleanup(func() { r.close(t) })
	return r
}

func (r *replica) close(t *testing.T) {
	if r.node.cluster != nil {
		r.node.cluster.Serve("0", nil)
	}
	if err := r.group.Close(); err != nil {
		t.Error(err)
	}
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// three forms a cluster of three and opens the group on each: the founder's holds
// something, and nobody else's has joined.
func three(t *testing.T, change func(*replica)) (founder *replica, others []*replica, dirs map[*replica]string) {
	t.Helper()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2", "n3"), "n1", "n2", "n3")
	for _, n := range nodes {
		n.start(t)
	}
	one(t, nodes...)
	dirs = map[*replica]string{}
	for _, n := range nodes {
		n.beside = nodes
		dir := t.TempDir()
		if n.cluster.Facts().Founder {
			founder = open(t, n, dir, nil)
			dirs[founder] = dir
			continue
		}
		r := open(t, n, dir, change)
		others, dirs[r] = append(others, r), dir
	}
	if err := founder.group.WaitLeader(limited(t)); err != nil {
		t.Fatal(err)
	}
	founder.add(t)
	if err := founder.group.Snapshot(); err != nil {
		t.Fatal(err)
	}
	founder.add(t)
	return founder, others, dirs
}

// add adds 5 through the replica, or through the one that was elected instead because
// this one came to nothing for a while.
func (r *replica) add(t *testing.T) {
	t.Helper()
	to := r
	for ctx, i := limited(t), 0; ; i++ {
		_, _, err := to.group.Propose(ctx, []byte("12345")).Wait(ctx)
		switch {
		case err == nil:
			return
		case !errors.Is(err, raftfsm.ErrNotLeader) && !(to != r && errors.Is(err, raftfsm.ErrClosed)):
			t.Fatal(err)
		}
		if n := r.node.beside[i%len(r.node.beside)]; n.replica != nil {
			to = n.replica
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

func joins(t *testing.T, r *replica) {
	t.Helper()
	if err := r.node.cluster.JoinGroup(limited(t), "0"); err != nil {
		t.Fatalf("%s: %v", r.node.id, err)
	}
}

func joinFails(t *testing.T, r *replica, kind Kind, words ...string) {
	t.Helper()
	err := r.node.cluster.JoinGroup(limited(t), "0")
	var e *Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("%v, want kind %s", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(e.Message+" "+e.Hint, w) {
			t.Errorf("%q, %q do not say %q", e.Message, e.Hint, w)
		}
	}
}

func voters(r *replica) (out map[string]string) {
	out = map[string]string{}
	members, _ := r.group.Members()
	for _, m := range members {
		if m.Voter {
			out[idOf(m.ID)] = m.Addr
		}
	}
	return out
}

// All join at once, and have what the founder had, by its snapshot and its log.
func TestReplicasJoinAGroup(t *testing.T) {
	t.Parallel()
	founder, others, _ := three(t, nil)
	for _, s := range founder.node.cluster.Status(t.Context()) {
		if (s.Role == RoleVoter) != (s.ID == founder.node.id) {
			t.Errorf("before anybody joins: %+v", s)
		}
	}
	var wg sync.WaitGroup
	for _, r := range append(others, founder) {
		wg.Go(func() { joins(t, r) })
	}
	wg.Wait()
	if got := voters(founder); len(got) != 3 {
		t.Errorf("voters %v", got)
	}
	for _, r := range others {
		if r.machine.sum() != 10 {
			t.Errorf("%s has a vote and %d of 10", r.node.id, r.machine.sum())
		}
	}
	for _, s := range founder.node.cluster.Status(t.Context()) {
		if s.Role != RoleVoter || !s.Reachable {
			t.Errorf("%+v", s)
		}
	}
	leader := founder
	for _, r := range others {
		if id, _ := r.group.Leader(); id == r.node.cluster.Self().Name {
			leader = r
		}
	}
	index, err := leader.group.LinearizableIndex(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := others[1].group.WaitApplied(limited(t), index); err != nil {
		t.Fatal(err)
	}
	joins(t, others[1]) // again: its own log says that it has a vote
}

// A replica gets no vote while it has not applied what the leader had.
func TestAReplicaThatLagsGetsNoVote(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	founder, others, _ := three(t, func(r *replica) { r.machine.gate = gate })
	lags := others[0]
	asked := make(chan uint64, 100)
	lags.node.cluster.Serve("0", watched{lags.group, asked})
	done := make(chan error, 1)
	ctx := limited(t)
	go func() { done <- lags.node.cluster.JoinGroup(ctx, "0") }()
	index := <-asked // the leader waits for it
	members, _ := founder.group.Members()
	if len(members) != 2 || len(voters(founder)) != 1 {
		t.Errorf("it was not asked what it has before it got a vote: %v", members)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	applied, _ := lags.machine.AppliedIndex()
	if got := voters(founder); len(got) != 2 || lags.machine.sum() != 10 || applied > index {
		t.Errorf("voters %v, it has %d", got, lags.machine.sum())
	}
}

// watched tells what its replica is asked to wait for.
type watched struct {
	*raftfsm.Group
	asked chan<- uint64
}

func (w watched) WaitApplied(ctx context.Context, index uint64) error {
	w.asked <- index
	return w.Group.WaitApplied(ctx, index)
}

// A node that starts again at another address gets it into the membership.
func TestAReplicaThatMoved(t *testing.T) {
	t.Parallel()
	founder, others, dirs := three(t, nil)
	for _, r := range others {
		joins(t, r)
	}
	moved := others[0]
	n := moved.node
	moved.close(t)
	n.stop(t)
	n.addr = testaddr.Reserve(t, 1)[0]
	n.start(t)
	again := open(t, n, dirs[moved], nil)
	joins(t, again)
	if got := voters(founder)[n.id]; !strings.HasSuffix(got, "@"+n.addr) {
		t.Errorf("%s is known at %s, not %s", n.id, got, n.addr)
	}
	founder.add(t)
	if got := founder.machine.sum(); got != 15 {
		t.Error(got)
	}
}

func TestReplicasThatAreRefused(t *testing.T) {
	t.Parallel()
	founder, others, _ := three(t, nil)
	for _, r := range others {
		joins(t, r)
	}
	// Its files are gone, its name is the old one.
	lost := others[0]
	n := lost.node
	lost.close(t)
	n.stop(t)
	n.start(t)
	c := n.formed(t)
	if err := errors.Join(c.CheckGroup("0", true), c.CheckGroup("1", false)); err != nil {
		t.Error(err)
	}
	var e *Error
	if err := c.CheckGroup("0", false); !errors.As(err, &e) || e.Kind != KindRefused || !strings.Contains(e.Hint, "memctl cluster remove "+n.disk.facts.Name()) {
		t.Errorf("a voter whose files are gone: %v", err)
	}
	n.stop(t)

	// All of it is gone, and it comes back under another name.
	n.disk = &disk{facts: Facts{ID: n.id, Incarnation: "new"}}
	n.start(t)
	r := open(t, n, t.TempDir(), nil)
	joinFails(t, r, KindRefused, "under another incarnation", "memctl cluster remove "+n.id+"-x")
	if got := voters(founder); len(got) != 3 {
		t.Errorf("voters %v", got)
	}
}

// While nobody leads, or a member has not opened the group yet, a joiner waits and
// says so.
func TestJoiningWaitsForALeader(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1"), "n1")
	n := nodes[0]
	n.start(t).formed(t)
	if err := n.cluster.JoinGroup(t.Context(), "0"); err == nil {
		t.Error("a group that is not served")
	}
	n.cluster.Serve("0", leaderless{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.cluster.JoinGroup(ctx, "0") }()
	n.log.await(t, "waiting for a vote in the group 0: n1 knows no leader")
	cancel()
	var e *Error
	if err := <-done; !errors.As(err, &e) || e.Kind != KindWaiting || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var a leaderAnswer
	if err := n.cluster.client.Call(t.Context(), rpc.Target{Addr: n.addr}, "join", joinCall{Group: "keys"}, &a); err == nil || !strings.Contains(err.Error(), "has not opened the group keys") {
		t.Error(err)
	}
}

type leaderless struct{ Group }

func (leaderless) Leader() (string, string)            { return "", "" }
func (leaderless) Members() ([]raftfsm.Member, uint64) { return nil, 0 }
