package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
)

// NodeStatus is one node of the cluster, as this node sees it.
type NodeStatus struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Address   string `json:"address"` // of its peer port
	Role      string `json:"role"`    // RoleVoter in every group that this node serves, else RoleLearner
	Reachable bool   `json:"reachable"`
	// Why it is not reachable, in a few words that follow its name; "" where it is.
	Why string `json:"why,omitempty"`
	// Kind is KindCertificates where that keeps it from answering.
	Kind Kind `json:"-"`
	// Runs says that somebody listens at its address who may well be it, and does not answer.
	Runs bool `json:"-"`
}

// The roles of a node.
const (
	RoleVoter   = "voter"
	RoleLearner = "learner"
)

const (
	// StatusWait bounds how long a node is waited for that may be busy.
	StatusWait = 3 * time.Second
	// signAfter is when it is found out what there is instead of an answer.
	signAfter = time.Second
)

// Status asks every member whether it answers, all at once and for StatusWait at most.
func (c *Cluster) Status(ctx context.Context) []NodeStatus {
	c.mu.Lock()
	members := slices.Clone(c.forming.facts.Members)
	groups := make([]Group, 0, len(c.groups))
	for _, s := range c.groups {
		groups = append(groups, s.group)
	}
	c.mu.Unlock()
	votes := map[string]int{}
	for _, g := range groups {
		replicas, _ := g.Members()
		for _, r := range replicas {
			if r.Voter {
				votes[r.ID]++
			}
		}
	}
	out := make([]NodeStatus, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		out[i] = NodeStatus{ID: m.ID, Name: m.Name, Address: m.Peer, Role: RoleLearner, Reachable: true}
		if len(groups) > 0 && votes[m.Name] == len(groups) {
			out[i].Role = RoleVoter
		}
		if m.Name != c.Self().Name {
			asking.Go(func() { (Addresses{c}).answers(ctx, target(m), &out[i]) })
		}
	}
	asking.Wait()
	return out
}

// answers notes whether a node answers, and else why not. It is asked what it says of
// itself, for which it neither takes anything in nor asks others. A call that is not
// answered soon may wait on a connection from before, which says nothing: a new one then
// tells what there is.
func (c Addresses) answers(ctx context.Context, to rpc.Target, status *NodeStatus) {
	ctx, cancel := context.WithTimeout(ctx, StatusWait)
	defer cancel()
	asked := make(chan error, 1)
	go func() {
		err := c.client.Call(ctx, to, "who", struct{}{}, nil)
		if errors.Is(err, rpc.ErrNoAnswer) && ctx.Err() == nil { // of a process that is gone
			err = c.client.Call(ctx, to, "who", struct{}{}, nil)
		}
		asked <- err
	}()
	var err, sign error
	select {
	case err = <-asked:
	case <-time.After(signAfter):
		sign = c.sign(ctx, to)
		err = <-asked
	}
	status.Reachable = !errors.Is(err, rpc.ErrNotReached) && !errors.Is(err, rpc.ErrNoAnswer) // else it refuses, and answers
	if status.Reachable {
		return
	}
	status.Runs = sign != nil || errors.Is(err, peer.ErrListens)
	if sign != nil && errors.Is(err, context.DeadlineExceeded) {
		err = sign
	}
	if status.Why, status.Kind = explain(err); status.Runs && errors.Is(err, context.DeadlineExceeded) {
		status.Why = "listens and does not answer"
	}
}

var _ Group = (*raftfsm.Group)(nil)
