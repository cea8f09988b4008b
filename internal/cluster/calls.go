package cluster

import (
	"context"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// candidacy asks for a vote for the node that calls.
type candidacy struct {
	Expect int `json:"expect"`
}

// welcome is what a node that joins needs.
type welcome struct {
	Cluster string   `json:"cluster"`
	Members []Member `json:"members"`
	Removed []string `json:"removed,omitempty"`
	Former  []string `json:"former,omitempty"`
	Origin  []string `json:"origin,omitempty"`
	Token   string   `json:"token,omitempty"`
	Shards  int      `json:"shards,omitempty"`
}

// isCaller refuses a caller that describes another node than the one that the peer port
// has checked.
func isCaller(from peer.Identity, m Member) error {
	if m.Name != from.Node || m.ID != idOf(from.Node) {
		return memory.Errorf(memory.CodeInvalid, "the node %s calls itself %.100q with the id %.100q", from.Node, m.Name, m.ID)
	}
	return nil
}

func (c *Cluster) hello(ctx context.Context, from peer.Identity, in hello) (hello, error) {
	if err := isCaller(from, in.Self); err != nil {
		return hello{}, err
	}
	c.mu.Lock()
	self := c.forming.self
	if in.Cluster == "" && c.forming.facts.Cluster == "" && in.Self.Peer != "" {
		c.callers[in.Self.Peer] = true
	}
	if !c.forming.facts.isMember(from.Node) {
		in.Members, in.Removed = nil, nil // a stranger, or one that was removed, speaks for itself only
	}
	c.mu.Unlock()
	var held *presence
	if in.Self.Name != self.Name {
		var err error
		if held, err = (Addresses{c}).told(ctx, in); err != nil {
			return hello{}, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.forming.hello()
	out.Held = held
	return out, nil
}

func (c *Cluster) vote(_ context.Context, from peer.Identity, in candidacy) (ballot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forming.vote(from.Node, in.Expect)
}

// welcome takes a node in: not into a Raft group, but among those that are known.
func (c *Cluster) welcome(ctx context.Context, from peer.Identity, in Member) (welcome, error) {
	if err := isCaller(from, in); err != nil {
		return welcome{}, err
	}
	if c.Facts().Cluster == "" {
		return welcome{}, memory.Errorf(memory.CodeUnavailable, "it has no cluster yet")
	}
	if c.Removed(in.Name) {
		return welcome{}, removedCall(in.Name)
	}
	if err := c.refuseDuplicate(ctx, in); err != nil {
		return welcome{}, err
	}
	w := welcome{}
	if c.opt.Token != nil {
		token, err := c.opt.Token()
		if err != nil {
			return welcome{}, err
		}
		w.Token = token
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.forming.learn(in); err != nil {
		return welcome{}, err
	}
	facts := c.forming.facts
	w.Cluster, w.Members, w.Removed, w.Shards = facts.Cluster, facts.Members, facts.Removed, facts.Shards
	w.Former, w.Origin = facts.Former, facts.Origin
	return w, nil
}

// refuseDuplicate refuses a node while another one with its id runs.
func (c *Cluster) refuseDuplicate(ctx context.Context, in Member) error {
	var same []rpc.Target
	for _, m := range c.Facts().Members {
		if m.ID == in.ID && m.Name != in.Name {
			same = append(same, target(m))
		}
	}
	for _, a := range c.look(ctx, same, callTimeout/2) {
		if a.err == nil {
			return inUse(in, &presence{Self: a.hello.Self})
		}
	}
	return nil
}
