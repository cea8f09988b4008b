package cluster

import (
	"context"
	"slices"
	"time"

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
}

// The roles of a node.
const (
	RoleVoter   = "voter"
	RoleLearner = "learner"
)

const statusTimeout = time.Second

// Status asks every member whether it answers, all at once and for a second at most.
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
	targets := make([]rpc.Target, len(members))
	for i, m := range members {
		targets[i] = target(m)
	}
	out := make([]NodeStatus, len(members))
	for i, a := range c.look(ctx, targets, statusTimeout) {
		m := members[i]
		out[i] = NodeStatus{ID: m.ID, Name: m.Name, Address: m.Peer, Role: RoleLearner, Reachable: a.err == nil || m.Name == c.Self().Name}
		if len(groups) > 0 && votes[m.Name] == len(groups) {
			out[i].Role = RoleVoter
		}
	}
	return out
}

var _ Group = (*raftfsm.Group)(nil)
