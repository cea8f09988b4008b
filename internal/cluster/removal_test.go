package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// joined forms three nodes whose replicas all have a vote, and all know it: one that follows
// hears of the last one's after the leader has answered.
func joined(t *testing.T) (founder *replica, others []*replica, dirs map[*replica]string) {
	t.Helper()
	founder, others, dirs = three(t, nil)
	for _, r := range others {
		joins(t, r)
	}
	for _, r := range append(others, founder) {
		for ctx := limited(t); len(voters(r)) < 3; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("%s knows the voters %v", r.node.id, voters(r))
			}
		}
	}
	return founder, others, dirs
}

// wasRemoved waits for what the node is told that ends it.
func (n *testNode) wasRemoved(t *testing.T) error {
	t.Helper()
	select {
	case err := <-n.removed:
		return err
	case <-limited(t).Done():
		return errors.New("nothing has ended it")
	}
}

// leaves ends a node with its replica.
func (r *replica) leaves(t *testing.T) {
	t.Helper()
	r.close(t)
	r.node.stop(t)
}

// logServers notes which servers were removed from the log.
type logServers struct {
	asked []string
	err   error
}

func (l *logServers) remove(_ context.Context, name string) error {
	l.asked = append(l.asked, name)
	return l.err
}

func refusedRemoval(t *testing.T, c *Cluster, node string, force bool, code memory.Code, words ...string) {
	t.Helper()
	_, err := c.Remove(limited(t), node, force, func(context.Context, string) error {
		t.Errorf("%s was taken from the log's servers", node)
		return nil
	})
	said := memory.AsError(err)
	if memory.CodeOf(err) != code {
		t.Fatalf("remove %s: %v, want %s", node, err, code)
	}
	for _, w := range words {
		if !strings.Contains(said.Message+" "+said.Hint, w) {
			t.Errorf("%q, %q do not say %q", said.Message, said.Hint, w)
		}
	}
}

func removes(t *testing.T, c *Cluster, node string, force bool, want string) {
	t.Helper()
	log := &logServers{}
	names, err := c.Remove(limited(t), node, force, log.remove)
	if err != nil || !slices.Equal(names, []string{want}) || !slices.Equal(log.asked, names) {
		t.Fatalf("remove %s: %v, log %v, %v; want %s", node, names, log.asked, err, want)
	}
}

// A node is removed, is nowhere any more, and does not come back under its name: not
// while others say so, nor alone. Under another name it does.
func TestARemovedNodeStaysAway(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	gone, c := others[0].node, founder.node.cluster
	name := gone.disk.facts.Name()
	refusedRemoval(t, c, gone.id, false, memory.CodeConflict, "answers", "--force")
	refusedRemoval(t, c, founder.node.id, true, memory.CodeInvalid, "cannot remove itself")
	refusedRemoval(t, c, "n9", false, memory.CodeNotFound, name)
	others[0].leaves(t)
	removes(t, c, gone.id, false, name)
	for _, r := range []*replica{founder, others[1]} {
		if saved, _ := r.node.disk.Load(); !saved.removed(name) || len(saved.Members) != 2 {
			t.Errorf("%s knows %+v", r.node.id, saved)
		}
	}
	if v := voters(founder); len(v) != 2 || v[gone.id] != "" {
		t.Errorf("voters %v", v)
	}
	founder.add(t)
	removes(t, c, gone.id, false, name) // again
	removes(t, others[1].node.cluster, name, false, name)

	gone.start(t).refused(t, KindRemoved, name, "was removed")
	gone.stop(t)
	founder.leaves(t)
	others[1].leaves(t)
	gone.start(t).refused(t, KindRemoved, name, "was removed") // it knows now
	gone.stop(t)

	founder.node.start(t)
	others[1].node.start(t)
	gone.disk = &disk{facts: Facts{ID: gone.id, Incarnation: "new"}}
	gone.start(t)
	if facts := gone.formed(t).Facts(); !facts.removed(name) || len(facts.Members) != 3 {
		t.Errorf("it knows %+v", facts)
	}
	// What never had a place is not meant while another one has: here nobody does.
	refusedRemoval(t, founder.node.formed(t), gone.id, false, memory.CodeConflict, gone.id+"-new answers")
}

// A name that was removed gets neither a welcome nor a place, whatever it kept.
func TestARemovedNameIsRefused(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	gone, c := others[0].node, founder.node.cluster
	self := gone.cluster.Self()
	c.mu.Lock()
	err := c.forming.remove(self.Name) // as if killed before it was told to anybody
	c.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	var w welcome
	to := founder.node.cluster.Self()
	for method, in := range map[string]any{"welcome": self, "join": joinCall{Group: "0", Addr: self.Name + "@" + self.Peer}} {
		err := gone.cluster.client.Call(limited(t), target(to), method, in, &w)
		if memory.CodeOf(err) != memory.CodeConflict || !strings.Contains(memory.AsError(err).Hint, "empty data directory") {
			t.Errorf("%s: %v", method, err)
		}
	}
	// It lost its facts, but not its name.
	gone.stop(t)
	gone.disk.facts = Facts{ID: gone.id, Incarnation: gone.disk.facts.Incarnation}
	gone.start(t).refused(t, KindRemoved, "was removed")
	gone.stop(t)
	// It still has a place in the group, so it is meant by its id, and nothing is refused.
	removes(t, c, gone.id, false, self.Name)
	if v := voters(founder); len(v) != 2 {
		t.Errorf("voters %v", v)
	}
}

func TestNoRemovalWithoutAMajority(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	c := founder.node.cluster
	others[0].leaves(t)
	refusedRemoval(t, c, others[1].node.id, true, memory.CodeConflict, "they could agree on nothing", "start these again first: "+others[0].node.id)
	if saved, _ := founder.node.disk.Load(); len(saved.Removed) != 0 {
		t.Errorf("it was refused and stored: %v", saved.Removed)
	}
	if v := voters(founder); len(v) != 3 {
		t.Errorf("voters %v", v)
	}
}

// What was not finished is asked for again, at any node, by the same id.
func TestARemovalThatWasCutShort(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	others[0].leaves(t)
	id, name := others[0].node.id, others[0].node.disk.facts.Name()
	failing := &logServers{err: errors.New("nobody leads the log")}
	_, err := founder.node.cluster.Remove(limited(t), id, false, failing.remove)
	if said := memory.AsError(err); memory.CodeOf(err) != memory.CodeUnavailable || !strings.Contains(said.Message, "nobody leads the log") || said.Hint != "ask for it again" {
		t.Fatal(err)
	}
	removes(t, others[1].node.cluster, id, false, name)
}

// A node that runs is removed by force, hears it, and ends.
func TestANodeThatRunsIsRemoved(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	n := others[0].node
	removes(t, founder.node.cluster, n.id, true, n.disk.facts.Name())
	var e *Error
	if err := n.wasRemoved(t); !errors.As(err, &e) || e.Kind != KindRemoved || n.cluster.SelfRemoved() == nil {
		t.Error(err)
	}
	if saved, _ := n.disk.Load(); !saved.removed(saved.Name()) {
		t.Errorf("it knows %+v", saved)
	}
}

// Nobody answers a removed node at its start; those who know come later.
func TestARemovedNodeHearsOfItLate(t *testing.T) {
	t.Parallel()
	founder, others, _ := joined(t)
	others[0].leaves(t)
	n := others[0].node
	removes(t, founder.node.cluster, n.id, false, n.disk.facts.Name())
	founder.leaves(t)
	others[1].leaves(t)
	n.start(t).formed(t)
	founder.node.start(t).formed(t)
	var e *Error
	if err := n.wasRemoved(t); !errors.As(err, &e) || e.Kind != KindRemoved {
		t.Error(err)
	}
}

// Only a node of the cluster removes another.
func TestAStrangerRemovesNobody(t *testing.T) {
	t.Parallel()
	nodes := freshNodes(t, certs(t, nil, "n1", "n2"), "n1", "n2")
	nodes[0].opt.Join, nodes[0].opt.Expect = nil, 1
	c := nodes[0].start(t).formed(t)
	c.Serve("0", leaderless{})
	nodes[1].opt.Join, nodes[1].opt.Expect = nil, 3
	nodes[1].start(t)
	stranger := rpc.NewClient(nodes[1].port, Service)
	defer stranger.Close()
	var a leaderAnswer
	err := stranger.Call(limited(t), target(c.Self()), "remove", removeCall{"0", c.Self().Name}, &a)
	if memory.CodeOf(err) != memory.CodeForbidden {
		t.Error(err)
	}
	// Nor does it tell a node that it was removed, or where its peers are.
	self := Member{Name: nodes[1].disk.facts.Name(), ID: nodes[1].id, Peer: nodes[1].addr}
	in := hello{Self: self, Run: "1", Cluster: c.Facts().Cluster, Removed: []string{c.Self().Name}}
	if err := stranger.Call(limited(t), target(c.Self()), "hello", in, nil); err != nil {
		t.Log(err)
	}
	if err := c.SelfRemoved(); err != nil {
		t.Error(err)
	}
}
