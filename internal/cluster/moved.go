package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Addresses is a node as one that knows where the others are.
type Addresses struct{ *Cluster }

// presence is what a process says of itself. It takes nothing in from who asks.
type presence struct {
	Self Member `json:"self"`
	Run  string `json:"run"`

	sign error // why it does not answer, though somebody listens who may well be it
}

func (c Addresses) who(context.Context, peer.Identity, struct{}) (presence, error) {
	return presence{Self: c.Self(), Run: c.forming.run}, nil
}

// claim says that a node has left an address, where it is asked for by its full name.
type claim struct {
	who  Member // as the claim has it
	left string // the peer address that it has left
}

// heldBy returns who still answers at an address under the name that a claim is of, or
// listens there and may be it; nil is nobody. The node itself, where both addresses reach it, holds none that it has left.
// Errors: of ctx.
func (c Addresses) heldBy(ctx context.Context, cl claim) (*presence, error) {
	const tries = 2 // the first one may go over a connection to a process that is gone
	for try := range tries {
		var p presence
		one, cancel := context.WithTimeout(ctx, callTimeout/2)
		err := c.client.Call(one, rpc.Target{Addr: cl.left, Node: cl.who.Name}, "who", struct{}{}, &p)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, rpc.ErrNotReached):
			if sign := c.sign(ctx, rpc.Target{Addr: cl.left, Node: cl.who.Name}); sign != nil {
				return &presence{Self: Member{Name: cl.who.Name, ID: idOf(cl.who.Name), Peer: cl.left}, sign: sign}, nil
			}
			return nil, ctx.Err()
		case err == nil && p.Self.Peer == cl.who.Peer && p.Self.Version >= cl.who.Version:
			return nil, nil
		case err == nil:
			return &p, nil
		case try == tries-1: // a node of this name took the connection
			return &presence{Self: Member{Name: cl.who.Name, ID: idOf(cl.who.Name), Peer: cl.left}}, nil
		}
	}
	return nil, nil
}

// held returns who holds the address that each claim says has been left; nil is nobody.
func (c Addresses) held(ctx context.Context, claims []claim) (map[claim]*presence, error) {
	held := map[claim]*presence{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for _, cl := range claims {
		wg.Go(func() {
			p, err := c.heldBy(ctx, cl)
			mu.Lock()
			defer mu.Unlock()
			failed, held[cl] = errors.Join(failed, err), p
		})
	}
	wg.Wait()
	return held, failed
}

// claimed is what a hello claims of a member's address; false = nothing new.
func (f *forming) claimed(h hello, m Member) (cl claim, found bool) {
	if h.Cluster == "" || h.Cluster != f.facts.Cluster {
		return cl, false
	}
	if m.Name == f.self.Name {
		return claim{f.self, m.Peer}, f.settled && m.Peer != f.self.Peer && m.Version >= f.self.Version
	}
	i := slices.IndexFunc(f.facts.Members, func(k Member) bool { return k.Name == m.Name })
	if i < 0 {
		return cl, false
	}
	return claim{m, f.facts.Members[i].Peer}, m.Version > f.facts.Members[i].Version && m.Peer != f.facts.Members[i].Peer
}

// hear takes what other nodes say of themselves and of each other. The address of a
// member moves only where nobody of its name answers at the one that is known: what says
// otherwise is a copy of its data directory, or was told by one. Errors: KindRemoved,
// KindStorage, of ctx, and memory.CodeConflict for a node that says so of itself.
func (c Addresses) hear(ctx context.Context, said ...hello) error {
	c.mu.Lock()
	var claims []claim
	for _, h := range said {
		for _, m := range append(slices.Clone(h.Members), h.Self) {
			if cl, found := c.forming.claimed(h, m); found && !slices.Contains(claims, cl) {
				claims = append(claims, cl)
			}
		}
	}
	c.mu.Unlock()
	held, err := c.held(ctx, claims)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var copied error
	for _, h := range said {
		h, err := c.forming.founded(h, held)
		if err != nil {
			c.log.Warn("news of a node's address were not taken", "node", h.Self.ID, "address", h.Self.Peer, "err", err)
			copied = errors.Join(copied, err)
			continue
		}
		if err := c.heardLocked(h); err != nil {
			return err
		}
	}
	return copied
}

// founded returns what a hello says without the claims that do not hold, or that were not
// looked into. This node's own address, where others know an older one, gets a version
// that they take. Errors: memory.CodeConflict for a hello that says to come from a node
// that answers elsewhere.
func (f *forming) founded(h hello, held map[claim]*presence) (hello, error) {
	if cl, found := f.claimed(h, h.Self); found {
		by, known := held[cl]
		if by != nil {
			return h, inUse(h.Self, by)
		}
		if !known {
			h.Self.Version = 0 // no news
		}
	}
	h.Members = slices.DeleteFunc(slices.Clone(h.Members), func(m Member) bool {
		cl, found := f.claimed(h, m)
		by, known := held[cl]
		if found && known && by == nil && m.Name == f.self.Name {
			f.self.Version = m.Version + 1 // stored with what is heard
		}
		return found && (!known || by != nil)
	})
	return h, nil
}

// holds says that a node cannot be while another one is, of which this is known.
func (p *presence) holds(self Member) *Error {
	var e *Error
	errors.As(duplicate(self, p.Self), &e)
	if p.sign != nil {
		why, _ := explain(p.sign)
		e.Message += ", which " + why
	}
	return e
}

// inUse refuses a node while one with its name is elsewhere.
func inUse(self Member, other *presence) error {
	said := other.holds(self)
	return memory.Errorf(memory.CodeConflict, "%s", said.Message).WithHint("%s", said.Hint)
}

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
		if p != nil && p.Run != c.forming.run { // else an address that reaches this process, too
			return p.holds(self)
		}
	}
	if version != self.Version {
		if err := c.isHere(ctx, self); err != nil {
			return err
		}
	}
	c.mu.Lock()
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
			if a.err == nil && a.hello.Self.Name != c.Self().Name {
				said = append(said, a.hello)
			}
			if err := isCopy(a.err); err != nil {
				return err
			}
		}
		if err := c.hear(ctx, said...); err != nil && memory.CodeOf(err) != memory.CodeConflict {
			return err
		}
	}
}

// isCopy tells, by the answer to a hello, that another process is this node; nil = no.
func isCopy(err error) error {
	if memory.CodeOf(err) != memory.CodeConflict {
		return nil
	}
	e := memory.AsError(err)
	return &Error{Kind: KindDuplicate, Message: e.Message, Hint: e.Hint, Err: err}
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

// Dial connects to a replica of a group, for a service: where this node knows its
// node to be, and else where the group has it. The two differ until a node that came back
// elsewhere has told the group, which takes a leader; where most nodes have moved there is
// none until they reach each other.
func (c Addresses) Dial(ctx context.Context, addr, name, service string) (net.Conn, error) {
	members := c.Facts().Members
	i := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
	if i >= 0 && members[i].Peer != addr {
		if conn, err := c.opt.Port.Dial(ctx, members[i].Peer, name, service); err == nil {
			return conn, nil
		}
	}
	return c.opt.Port.Dial(ctx, addr, name, service)
}

// hostport is where a replica's group reaches it.
func hostport(m raftfsm.Member) string {
	_, addr, _ := strings.Cut(m.Addr, "@")
	return addr
}
