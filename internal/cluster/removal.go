package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// removeCall asks a group's leader to take a replica out of it.
type removeCall struct {
	Group string `json:"group"`
	Node  string `json:"node"`
}

// removeTimeout bounds a removal; it may be asked for again.
const removeTimeout = 30 * time.Second

// Removed reports whether a node was removed, as far as this node knows.
func (c *Cluster) Removed(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forming.facts.removed(name)
}

// SelfRemoved says that this node was removed; nil = it was not.
func (c *Cluster) SelfRemoved() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forming.remove()
}

// heardLocked takes what another node says of itself.
func (c *Cluster) heardLocked(h hello) error {
	err := c.forming.heard(h)
	var e *Error
	if errors.As(err, &e) && e.Kind == KindRemoved && c.opt.Removed != nil {
		c.opt.Removed(err)
	}
	return err
}

// removedCall refuses a node that was removed.
func removedCall(name string) error {
	return memory.Errorf(memory.CodeConflict, "the node %s was removed from the cluster", name).WithHint(removedHint)
}

// others are the members beside this one.
func (c *Cluster) others() (targets []rpc.Target) {
	for _, m := range c.Facts().Members {
		if m.Name != c.Self().Name {
			targets = append(targets, target(m))
		}
	}
	return targets
}

func target(m Member) rpc.Target { return rpc.Target{Addr: m.Peer, Node: m.Name} }

// removal is the taking of nodes out of the cluster.
type removal struct {
	*Cluster
	force  bool
	server func(ctx context.Context, name string) error
}

// Remove takes a node, by its id or its name, out of the cluster for ever: it stores
// that at every node that answers, takes its replica out of each group that this node
// serves, and has server take it from the servers of the log. It may be asked for
// again, and carries on then. With force it also removes a node that answers, which
// ends. names are those that were removed. Errors: *memory.Error.
func (c *Cluster) Remove(ctx context.Context, node string, force bool, server func(ctx context.Context, name string) error) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	if node == "" {
		return nil, memory.Errorf(memory.CodeInvalid, "the node to remove is missing: give its id or its name")
	}
	r := removal{c, force, server}
	if names, err = r.named(node); err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := r.allowed(ctx, name); err != nil {
			return nil, err
		}
		if err := r.carryOut(ctx, name); err != nil {
			return nil, memory.Errorf(memory.CodeUnavailable, "the removal of %s was begun and not finished: %v", name, err).
				WithHint("ask for it again").WithCause(err)
		}
		c.log.Warn("an operator removed a node", "node", name, "forced", force)
	}
	return names, nil
}

// named finds the nodes that are meant: those that were removed where no other is.
func (r removal) named(node string) ([]string, error) {
	var removed []string
	for _, name := range r.Facts().Removed {
		if name == node {
			return []string{name}, nil
		}
		if idOf(name) == node {
			removed = append(removed, name)
		}
	}
	m, err := r.Named(node)
	switch {
	case err == nil:
		return []string{m.Name}, nil
	case memory.CodeOf(err) == memory.CodeNotFound && len(removed) > 0:
		return removed, nil
	}
	return nil, err
}

// replicas are the members of each group that this node serves.
func (r removal) replicas() map[string][]raftfsm.Member {
	r.mu.Lock()
	groups := maps.Clone(r.groups)
	r.mu.Unlock()
	out := map[string][]raftfsm.Member{}
	for name, s := range groups {
		out[name], _ = s.group.Members()
	}
	return out
}

// reachable are the other nodes, at the addresses that this node knows and at those that
// the groups have.
func (r removal) reachable() []rpc.Target {
	targets, self := r.others(), r.Self().Name
	for _, members := range r.replicas() {
		for _, m := range members {
			to := rpc.Target{Addr: hostport(m), Node: m.ID}
			if m.ID != self && to.Addr != "" && !slices.Contains(targets, to) {
				targets = append(targets, to)
			}
		}
	}
	return targets
}

// allowed refuses to remove this node, one that answers or may run all the same, and one
// without which the others would have no majority.
func (r removal) allowed(ctx context.Context, name string) error {
	if name == r.Self().Name {
		return memory.Errorf(memory.CodeInvalid, "the node %s cannot remove itself", idOf(name)).
			WithHint("stop it, and ask another node")
	}
	answers := map[string]bool{r.Self().Name: true}
	targets, at := r.reachable(), ""
	for i, a := range r.look(ctx, targets, callTimeout) {
		if a.err != nil {
			continue
		}
		answers[targets[i].Node] = true
		if targets[i].Node == name {
			at = targets[i].Addr
		}
	}
	if at != "" && !r.force {
		return memory.Errorf(memory.CodeConflict, "the node %s answers at %s", name, at).
			WithHint("stop it first; --force removes a node that runs, and ends it: it never comes back with the data directory that it has")
	}
	if at == "" {
		if err := r.ended(ctx, name, targets); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil { // what was asked may not have been answered for that
		return memory.Errorf(memory.CodeUnavailable, "whether the node %s has ended was not found out in time: nothing was removed", idOf(name)).
			WithHint("ask again").WithCause(err)
	}
	replicas := r.replicas()
	for _, group := range slices.Sorted(maps.Keys(replicas)) {
		if err := MajorityWithout(name, replicas[group], answers); err != nil {
			return err
		}
	}
	return nil
}

// ended refuses to remove a node that does not answer while somebody who may be it listens
// at one of the addresses that it has. By force it goes, unless it leads.
func (r removal) ended(ctx context.Context, name string, targets []rpc.Target) error {
	leads := r.leadsGroup(name)
	if r.force && leads == "" {
		return nil
	}
	for _, to := range targets {
		if to.Node != name {
			continue
		}
		if sign := r.sign(ctx, to); sign != nil {
			return seemsToRun(to, sign, leads)
		}
	}
	return nil
}

// leadsGroup is a group that this node serves and another one leads, "" if there is none.
func (r removal) leadsGroup(name string) string {
	r.mu.Lock()
	groups := maps.Clone(r.groups)
	r.mu.Unlock()
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if id, _ := groups[group].group.Leader(); id == name {
			return group
		}
	}
	return ""
}

func (r removal) carryOut(ctx context.Context, name string) error {
	told := r.reachable() // with the node itself, if it is not removed yet
	r.mu.Lock()
	err := r.forming.remove(name)
	groups := slices.Sorted(maps.Keys(r.groups))
	r.mu.Unlock()
	if err != nil {
		return err
	}
	r.look(ctx, told, callTimeout)
	for _, group := range groups {
		if err := r.fromGroup(ctx, group, name); err != nil {
			return err
		}
	}
	return r.server(ctx, name)
}

// fromGroup returns once a replica has no place in a group.
func (r removal) fromGroup(ctx context.Context, group, name string) error {
	s, err := r.served(group)
	if err != nil {
		return err
	}
	for wait := firstWait; ; wait = min(wait*3/2, longestWait) {
		done, why, err := r.askLeader(ctx, s, "remove", removeCall{group, name})
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the group %s: %s", group, why)
		case <-time.After(wait):
		}
	}
}

// removeReplica answers a node of the cluster that removes another one.
func (c *Cluster) removeReplica(ctx context.Context, from peer.Identity, in removeCall) (leaderAnswer, error) {
	if !c.Facts().isMember(from.Node) {
		return leaderAnswer{}, memory.Errorf(memory.CodeForbidden, "the node %s is not one of this cluster", from.Node)
	}
	s, err := c.served(in.Group)
	if err != nil {
		return leaderAnswer{}, err
	}
	if is, addr := c.leads(s); !is {
		return leaderAnswer{Leader: addr}, nil
	}
	c.mu.Lock()
	// Before its place is gone, which it would ask for again. This node may be the one.
	err = c.heardLocked(hello{Cluster: c.forming.facts.Cluster, Removed: []string{in.Node}})
	c.mu.Unlock()
	if err != nil {
		return leaderAnswer{}, err
	}
	if err = s.Remove(ctx, in.Node); errors.Is(err, raftfsm.ErrNotLeader) {
		_, addr := c.leads(s)
		return leaderAnswer{Leader: addr}, nil
	}
	return leaderAnswer{Done: err == nil}, err
}
