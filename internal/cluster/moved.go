package cluster

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Addresses is a node as one that knows where the others are.
type Addresses struct{ *Cluster }

// elsewhere are the addresses at which this node or others that were seen know it beside
// the one that it has now, and the version that this one needs so that it counts.
func (f *forming) elsewhere(seen []hello) (addrs []string, version uint64) {
	known := slices.Clone(f.facts.Members)
	for _, h := range seen {
		if h.Cluster == f.facts.Cluster {
			known = append(known, h.Members...)
		}
	}
	known = slices.DeleteFunc(known, func(m Member) bool { return m.Name != f.self.Name })
	version = f.self.Version
	for _, m := range known {
		if m.Peer == f.self.Peer && m.Route == f.self.Route {
			version = max(version, m.Version)
		}
	}
	needed := version
	for _, m := range known {
		if m.Version < version || m.Peer == f.self.Peer && m.Route == f.self.Route {
			continue
		}
		needed = max(needed, m.Version+1)
		if m.Peer != f.self.Peer && !slices.Contains(addrs, m.Peer) {
			addrs = append(addrs, m.Peer)
		}
	}
	return addrs, needed
}

// settle ends the looking around of a node that knows its cluster: it is this node, at
// this address, from now on. A new address is stored, and told, only once nobody of this
// name answers at a former one, and no other node at this one. Errors: KindDuplicate,
// KindAddress, KindStorage, KindRemoved, of ctx.
func (c Addresses) settle(ctx context.Context, seen []hello) error {
	c.mu.Lock()
	self := c.forming.self
	addrs, version := c.forming.elsewhere(seen)
	c.mu.Unlock()
	var claims []claim
	for _, addr := range addrs {
		claims = append(claims, claim{self, addr})
	}
	held, err := c.held(ctx, claims)
	if err != nil {
		return err
	}
	for _, p := range held {
		if p != nil {
			return p.holds(self)
		}
	}
	if version != self.Version {
		if err := c.isHere(ctx, self); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.forming.told = c.forming.told && version == self.Version
	c.forming.self.Version, c.forming.settled = version, true
	err = c.forming.learn()
	c.mu.Unlock()
	if err != nil || version == self.Version {
		return err
	}
	c.log.Info("this node has another address than before", "peer", self.Peer, "route", self.Route, "before", strings.Join(addrs, ", "))
	return c.tell(ctx)
}

// tell says this node's address to all that are known, and to those that they tell of.
// Errors: KindDuplicate where one of them finds this node at its former one, and as settle.
func (c Addresses) tell(ctx context.Context) error {
	told := map[string]bool{}
	for {
		targets := slices.DeleteFunc(c.aroundHere(), func(to rpc.Target) bool { return told[to.Addr] })
		if len(targets) == 0 {
			return nil
		}
		var said []hello
		for i, a := range c.look(ctx, targets, c.opt.News) {
			told[targets[i].Addr] = true
			if a.err != nil || a.hello.Self.Name == c.Self().Name {
				continue
			}
			if err := c.knownBy(a.hello, true); err != nil {
				return err
			}
			said = append(said, a.hello)
		}
		if err := c.hear(ctx, said...); err != nil && memory.CodeOf(err) != memory.CodeConflict {
			return err
		}
	}
}

// helloEvery is how often a member is asked that has not answered, or that knows this node
// elsewhere.
const helloEvery = 2 * time.Second

// keepKnown says hello, again and again, to members that have not answered since the start or do
// not know where this node is, and to all while a group of this node knows no leader: one of
// them may be the only one that knows that this node was removed, or that another process has
// taken its place.
func (c Addresses) keepKnown(ctx context.Context) {
	knows := map[string]uint64{} // the version of this node's address, by who knows it
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(helloEvery):
		}
		self, all := c.Self(), c.leaderless()
		ask := slices.DeleteFunc(c.others(), func(to rpc.Target) bool { return !all && knows[to.Node] >= self.Version })
		for i, a := range c.look(ctx, ask, callTimeout) {
			if a.err != nil {
				continue
			}
			knows[ask[i].Node] = a.hello.knows(self)
			_ = c.knownBy(a.hello, false)
			if err := c.hear(ctx, a.hello); err != nil && ctx.Err() == nil {
				c.log.Warn("news of a member were not taken", "node", a.hello.Self.ID, "err", err)
			}
		}
	}
}

// knownBy takes from an answer whether who gave it knows this node where it is, or another
// process at its place. One that begins does not begin beside a process that answers; one that
// runs ends as yield has it. Errors: KindDuplicate, where it begins.
func (c Addresses) knownBy(h hello, begins bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	self := c.forming.self
	switch held := h.Held; {
	case held == nil:
		c.forming.told = c.forming.told || h.Cluster == c.forming.facts.Cluster && h.knows(self) >= self.Version
	case begins && held.Run != "" && held.Run != c.forming.run:
		return held.holds(self)
	default:
		c.log.Warn("a member knows this node elsewhere, where somebody listens", "node", h.Self.ID, "address", held.Self.Peer)
		c.yield(held)
	}
	return nil
}

// knows is the version in which who says hello knows a node at its address; 0 = it does not.
func (h hello) knows(m Member) uint64 {
	i := slices.IndexFunc(h.Members, func(k Member) bool { return k.Name == m.Name && k.Peer == m.Peer })
	if i < 0 {
		return 0
	}
	return h.Members[i].Version
}

// leaderless reports whether a group that this node serves knows no leader.
func (c Addresses) leaderless() bool {
	c.mu.Lock()
	groups := slices.Collect(maps.Values(c.groups))
	c.mu.Unlock()
	return slices.ContainsFunc(groups, func(s *Admission) bool {
		id, _ := s.group.Leader()
		return id == ""
	})
}

// aroundHere are the members beside this one, and addresses of --join that are none of
// theirs and not its own.
func (c Addresses) aroundHere() []rpc.Target {
	targets, known := c.others(), map[string]bool{}
	for _, m := range c.Facts().Members {
		known[m.Peer] = true
	}
	for _, addr := range c.opt.Join {
		if !known[addr] {
			targets = append(targets, rpc.Target{Addr: addr})
		}
	}
	return targets
}

// mayMoveTo refuses a replica an address while another process with its name answers at
// the one that the group has. Errors: memory.CodeConflict, of ctx.
func (c Addresses) mayMoveTo(ctx context.Context, g Group, name, addr string) error {
	members, _ := g.Members()
	for _, m := range members {
		if m.ID != name || m.Addr == addr {
			continue
		}
		_, to, _ := strings.Cut(addr, "@")
		held, err := c.heldBy(ctx, claim{Member{Name: name, Peer: to}, hostport(m)})
		if err != nil {
			return err
		}
		if held != nil {
			return inUse(Member{Name: name, ID: idOf(name), Peer: to}, held)
		}
	}
	return nil
}

// headStart is how long the address at which this node knows a replica's node is tried alone,
// and patience how long it is preferred: a far node takes so long, and one at the former address
// may be what was left of it.
const headStart, patience = 250 * time.Millisecond, 1500 * time.Millisecond

// Dial connects to a replica of a group, for a service: where this node knows its
// node to be, and where the group has it, if that fails or takes longer. The two differ until a
// node that came back elsewhere has told the group, which takes a leader; where most nodes have
// moved there is none until they reach each other.
func (c Addresses) Dial(ctx context.Context, addr, name, service string) (net.Conn, error) {
	members := c.Facts().Members
	i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
	if i < 0 || members[i].Peer == addr {
		return c.opt.Port.Dial(ctx, addr, name, service)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the other one
	type dialed struct {
		conn net.Conn
		err  error
	}
	dial := func(to string, after time.Duration) <-chan dialed {
		made := make(chan dialed)
		go func() {
			select {
			case <-time.After(after):
			case <-ctx.Done():
				return
			}
			conn, err := c.opt.Port.Dial(ctx, to, name, service)
			select {
			case made <- dialed{conn, err}:
			case <-ctx.Done():
				if err == nil {
					_ = conn.Close()
				}
			}
		}()
		return made
	}
	known, group, late := dial(members[i].Peer, 0), dial(addr, headStart), time.After(patience)
	var spare net.Conn // to the group's address
	for over := false; ; {
		select {
		case d := <-known:
			switch {
			case d.err == nil && spare != nil:
				_ = spare.Close()
				fallthrough
			case d.err == nil:
				return d.conn, nil
			case spare == nil:
				return c.opt.Port.Dial(ctx, addr, name, service)
			}
			over = true
		case d := <-group:
			spare = d.conn
		case <-late:
			over = true
		case <-ctx.Done():
			if spare == nil {
				return nil, ctx.Err()
			}
			over = true
		}
		if over && spare != nil {
			return spare, nil
		}
	}
}

// hostport is where a replica's group reaches it.
func hostport(m raftfsm.Member) string {
	_, addr, _ := strings.Cut(m.Addr, "@")
	return addr
}
