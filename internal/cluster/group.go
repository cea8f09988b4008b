package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Group is a replica of a Raft group on this node: a *raftfsm.Group.
type Group interface {
	Leader() (id, addr string)
	Members() (members []raftfsm.Member, index uint64)
	AddNonvoter(ctx context.Context, id, addr string, prevIndex uint64) error
	Promote(ctx context.Context, id, addr string, prevIndex uint64) error
	Remove(ctx context.Context, id string, prevIndex uint64) error
	LinearizableIndex(ctx context.Context) (uint64, error)
	WaitApplied(ctx context.Context, index uint64) error
}

// joinCall asks a group's leader for a place and a vote in it.
type joinCall struct {
	Group string `json:"group"`
	Addr  string `json:"addr"` // of the caller, raftfsm.Address
}

// leaderAnswer answers a call that only the leader of a group carries out.
type leaderAnswer struct {
	// Done: the caller has a vote, at the address that it gave; or the replica has no
	// place any more.
	Done bool `json:"done"`
	// Leader is the address of who leads, if it is not the node that answers.
	Leader string `json:"leader,omitempty"`
}

type appliedCall struct {
	Group string `json:"group"`
	Index uint64 `json:"index"`
}

const (
	// A replica has caught up when it takes so long for what was committed when it was
	// asked: no longer than writes may stop for it once it counts.
	caughtUpIn = time.Second
	// A replica that needs longer asks again.
	joinTimeout = 5 * time.Second
	catchUpWait = 3 * time.Second
)

// Serve lets others join a group through this node, until it is called with nil.
func (c *Cluster) Serve(name string, g Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g == nil {
		delete(c.groups, name)
		return
	}
	c.groups[name] = NewAdmission(g, c.Removed)
}

func (c *Cluster) served(name string) (*Admission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.groups[name]
	if s == nil {
		return nil, memory.Errorf(memory.CodeUnavailable, "it has not opened the group %s yet", name)
	}
	return s, nil
}

// CheckGroup tells, before a group's replica is opened, whether it may be, and whether
// files of it exist. Without them a node that had a vote would vote again, and two
// leaders could be elected. Errors: *Error of KindRefused.
func (c *Cluster) CheckGroup(name string, exists bool) error {
	facts := c.Facts()
	if exists || !slices.Contains(facts.Groups, name) {
		return nil
	}
	return &Error{Kind: KindRefused, Message: fmt.Sprintf("the Raft files of the group %s are gone, in which this node has a vote: it may have forgotten one that it gave", name),
		Hint: fmt.Sprintf("remove it from the cluster (memctl cluster remove %s) and start it with an empty data directory", facts.Name())}
}

// noteGroup stores that this node may have a vote from now on.
func (c *Cluster) noteGroup(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	facts := c.forming.facts
	if slices.Contains(facts.Groups, name) {
		return nil
	}
	facts.Groups = append(slices.Clone(facts.Groups), name)
	return c.forming.set(facts)
}

// JoinGroup returns once this node's replica of a served group has a vote, at this
// node's address. It asks the leader, found by asking the members, again and again. A
// replica whose own log says that it has that vote does not ask. Errors: *Error of
// KindRefused, of KindStorage, and of KindWaiting when ctx ends.
func (c *Cluster) JoinGroup(ctx context.Context, name string) error {
	s, err := c.served(name)
	if err != nil {
		return err
	}
	if err := c.noteGroup(name); err != nil {
		return err
	}
	self := c.Self()
	call := joinCall{Group: name, Addr: raftfsm.Address(self.Name, self.Peer)}
	wait, said := firstWait, ""
	for {
		members, _ := s.group.Members()
		if slices.Contains(members, raftfsm.Member{ID: self.Name, Addr: call.Addr, Voter: true}) {
			return nil
		}
		voter, why, err := c.askLeader(ctx, s, "join", call)
		if voter || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return &Error{Kind: KindWaiting, Message: fmt.Sprintf("this node has no vote in the group %s yet: %s", name, why), Err: ctx.Err()}
		}
		c.waits(fmt.Sprintf("for a vote in the group %s: %s", name, why), "")
		if why != said {
			c.log.Info(fmt.Sprintf("waiting for a vote in the group %s: %s", name, why))
			said = why
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(wait*3/2, longestWait)
	}
}

// askLeader asks the leader, if one is known, and each member once, and whom they name,
// until one has done what is asked for. why is what they said. Errors: KindRefused.
func (c *Cluster) askLeader(ctx context.Context, s *Admission, method string, call any) (done bool, why string, err error) {
	_, leader := s.group.Leader()
	var waits []string
	targets := []rpc.Target{}
	if id, addr, known := strings.Cut(leader, "@"); known {
		targets = append(targets, rpc.Target{Addr: addr, Node: id})
	}
	for _, m := range c.Facts().Members {
		targets = append(targets, target(m))
	}
	asked := map[rpc.Target]bool{} // the group may know another address than the members
	for len(targets) > 0 && ctx.Err() == nil {
		to := targets[0]
		targets = targets[1:]
		if asked[to] {
			continue
		}
		asked[to] = true
		var a leaderAnswer
		one, cancel := context.WithTimeout(ctx, joinTimeout)
		err := c.client.Call(one, to, method, call, &a)
		cancel()
		switch id, addr, known := strings.Cut(a.Leader, "@"); {
		case memory.CodeOf(err) == memory.CodeConflict:
			said := memory.AsError(err)
			return false, "", &Error{Kind: KindRefused, Message: said.Message, Hint: said.Hint, Err: err}
		case err != nil:
			text, _ := explain(err)
			waits = append(waits, idOf(to.Node)+" "+text)
		case a.Done:
			return true, "", nil
		case known && !asked[rpc.Target{Addr: addr, Node: id}]:
			targets = slices.Insert(targets, 0, rpc.Target{Addr: addr, Node: id})
		case a.Leader == "":
			waits = append(waits, idOf(to.Node)+" knows no leader, or has not caught this node up yet")
		}
	}
	return false, strings.Join(waits, "; "), nil
}

// join answers a replica that wants a vote.
func (c *Cluster) join(ctx context.Context, from peer.Identity, in joinCall) (leaderAnswer, error) {
	s, err := c.served(in.Group)
	if err != nil {
		return leaderAnswer{}, err
	}
	if is, addr := c.leads(s); !is {
		return leaderAnswer{Leader: addr}, nil
	}
	if id, _, _ := strings.Cut(in.Addr, "@"); id != from.Node {
		return leaderAnswer{}, memory.Errorf(memory.CodeInvalid, "the node %s asks for a place at %s", from.Node, in.Addr)
	}
	if err := (Addresses{c}).mayMoveTo(ctx, s.group, from.Node, in.Addr); err != nil {
		return leaderAnswer{}, err
	}
	voter, err := s.admit(ctx, from.Node, in, func(index uint64) error { return c.waitApplied(ctx, from.Node, in, index) })
	if errors.Is(err, raftfsm.ErrNotLeader) {
		_, addr := c.leads(s)
		return leaderAnswer{Leader: addr}, nil
	}
	return leaderAnswer{Done: voter}, err
}

// leads says whether this node leads a group, and the address of who does.
func (c *Cluster) leads(s *Admission) (self bool, addr string) {
	id, addr := s.group.Leader()
	return id == c.Self().Name, addr
}

// waitApplied returns when a replica says that it has applied an index.
func (c *Cluster) waitApplied(ctx context.Context, id string, in joinCall, index uint64) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpWait)
	defer cancel()
	_, addr, _ := strings.Cut(in.Addr, "@")
	return c.client.Call(ctx, rpc.Target{Addr: addr, Node: id}, "applied", appliedCall{in.Group, index}, nil)
}

// applied answers a leader once this node's replica has come so far.
func (c *Cluster) applied(ctx context.Context, _ peer.Identity, in appliedCall) (struct{}, error) {
	s, err := c.served(in.Group)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, s.group.WaitApplied(ctx, in.Index)
}
