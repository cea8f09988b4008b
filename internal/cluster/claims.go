package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// presence is what a process says of itself. It takes nothing in from who asks. Without Run the
// process says nothing, and may be the one that is meant.
type presence struct {
	Self Member `json:"self"`
	Run  string `json:"run,omitempty"`
	// Told: another member knows it at its address.
	Told bool `json:"told,omitempty"`

	sign error // why it does not answer, though somebody listens who may well be it
}

// who answers at once, whatever else goes on here: who asks takes silence for a process that
// stands still. Errors: memory.CodeUnavailable of a node that ends.
func (c Addresses) who(context.Context, peer.Identity, struct{}) (presence, error) {
	if c.mu.TryLock() {
		c.presence.Store(c.present())
		c.mu.Unlock()
	}
	p := c.presence.Load()
	if p == nil {
		return presence{}, memory.Errorf(memory.CodeUnavailable, "it ends, since another process has its place")
	}
	return *p, nil
}

// present is what this node says of itself; nil is one that ends. The lock is held.
func (c Addresses) present() *presence {
	f := c.forming
	if f.yielded {
		return nil
	}
	return &presence{Self: f.self, Run: f.run, Told: f.told}
}

// claim says that a node has left an address, where it is asked for by its full name.
type claim struct {
	who  Member // as the claim has it
	left string // the peer address that it has left
}

// place is the same, whatever the claim has.
func (c claim) place() rpc.Target { return rpc.Target{Addr: c.left, Node: c.who.Name} }

// inquiry is the look into a claim. It ends by itself, whoever waits for it.
type inquiry struct {
	done chan struct{}
	held *presence // by whom the address is held, if by anybody; once done is closed
	err  error     // the same
}

// inquiryTimeout bounds each step of a look: the first packet of a connection may be lost, which
// is sent again after a second.
const inquiryTimeout = 1500 * time.Millisecond

// heldBy returns who answers at an address under the name that a claim is of, or
// listens there and may be it; nil is nobody. The node of the claim itself, where both addresses
// reach it, holds none that it has left. It connects anew: a connection that was open before may
// lead to a machine that is gone. Who has taken a connection is there until one is refused.
// Errors: of ctx.
func (c Addresses) heldBy(ctx context.Context, cl claim) (*presence, error) {
	to := cl.place()
	there := &presence{Self: Member{Name: to.Node, ID: idOf(to.Node), Peer: to.Addr}}
	const tries = 2 // a process that ends may take a connection and not answer
	for range tries {
		timeout, err := c.taken(ctx, to)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, peer.ErrListens) || timeout && there.sign != nil:
			there.sign = err
			return there, nil
		case err != nil:
			return nil, nil
		}
		var p presence
		within, cancel := context.WithTimeout(ctx, inquiryTimeout)
		fresh := rpc.NewClient(c.opt.Port, Service)
		there.sign = fresh.Call(within, to, "who", struct{}{}, &p)
		fresh.Close()
		cancel()
		switch {
		case there.sign != nil:
		case p.Run == c.forming.run, p.Self.Peer == cl.who.Peer && p.Self.Version >= cl.who.Version:
			return nil, nil
		default:
			return &p, nil
		}
	}
	return there, ctx.Err()
}

// taken connects, and says why not, and whether that is since nothing came in time.
func (c Addresses) taken(ctx context.Context, to rpc.Target) (timeout bool, err error) {
	within, cancel := context.WithTimeout(ctx, inquiryTimeout)
	defer cancel()
	conn, err := c.opt.Port.Dial(within, to.Addr, to.Node, Service)
	if err == nil {
		_ = conn.Close()
	}
	return within.Err() != nil, err
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

// claimed is what a hello claims of a member's address; false = nothing new. A node that says of
// itself that it is elsewhere with the version that is known claims it too: one of the two is a
// copy. What is said of this node gets a version over that.
func (f *forming) claimed(h hello, m Member) (cl claim, found bool) {
	if h.Cluster == "" || h.Cluster != f.facts.Cluster {
		return cl, false
	}
	if m.Name == f.self.Name {
		self := f.self
		self.Version = m.Version + 1
		return claim{self, m.Peer}, f.settled && m.Peer != f.self.Peer && m.Version >= f.self.Version
	}
	i := slices.IndexFunc(f.facts.Members, func(k Member) bool { return k.Name == m.Name })
	if i < 0 || m.Peer == f.facts.Members[i].Peer {
		return cl, false
	}
	known := f.facts.Members[i]
	return claim{m, known.Peer}, m.Version > known.Version || m.Version == known.Version && h.Settled && m.Name == h.Self.Name
}

// hear takes what other nodes say of themselves and of each other, and returns once all of it
// was looked into. The address of a member moves only where nobody of its name answers at the
// one that is known: what says otherwise is a copy of its data directory, or was told by one.
// Errors: KindRemoved, KindStorage, of ctx, and memory.CodeConflict for a node that says so of
// itself.
func (c Addresses) hear(ctx context.Context, said ...hello) error {
	own := map[*inquiry]hello{}
	var all []*inquiry
	for _, h := range said {
		mine, others, err := c.take(h)
		if err != nil {
			return err
		}
		if mine != nil {
			own[mine] = h
			all = append(all, mine)
		}
		all = append(all, others...)
	}
	var copied error
	for _, q := range all {
		if err := q.await(ctx); err != nil {
			return err
		}
		if h, is := own[q]; is && q.held != nil {
			err := inUse(h.Self, q.held)
			c.log.Warn("news of a node's address were not taken", "node", h.Self.ID, "address", h.Self.Peer, "err", err)
			copied = errors.Join(copied, err)
		}
	}
	return copied
}

// told takes what a node says that calls, and returns once its own address was looked into: by
// whom the one that is known of it is held, if by anybody. What it says of others is looked into
// while it goes on. Errors: KindRemoved, KindStorage, of ctx.
func (c Addresses) told(ctx context.Context, h hello) (held *presence, err error) {
	mine, _, err := c.take(h)
	if err != nil || mine == nil {
		return nil, err
	}
	if err := mine.await(ctx); err != nil {
		return nil, err
	}
	return mine.held, nil
}

func (q *inquiry) await(ctx context.Context) error {
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes what is no claim, and begins to look into what is: of the node that says it, and
// of others. Errors: KindRemoved, KindStorage.
func (c Addresses) take(h hello) (own *inquiry, others []*inquiry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl, found := c.forming.claimed(h, h.Self); found {
		own = c.lookInto(cl)
	}
	h.Members = slices.DeleteFunc(slices.Clone(h.Members), func(m Member) bool {
		cl, found := c.forming.claimed(h, m)
		if found && m.Name != h.Self.Name {
			others = append(others, c.lookInto(cl))
		}
		return found
	})
	if own != nil {
		h.Self.Version = 0 // no news
	}
	return own, others, c.heardLocked(h)
}

// lookInto begins to look into a claim, if nobody looks into one of that node and place. The
// lock is held.
func (c Addresses) lookInto(cl claim) *inquiry {
	if q := c.inquiries[cl.place()]; q != nil {
		return q
	}
	q := &inquiry{done: make(chan struct{})}
	if q.err = c.working.Err(); q.err != nil {
		close(q.done)
		return q
	}
	c.inquiries[cl.place()] = q
	c.work.Go(func() {
		held, err := c.heldBy(c.working, cl)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inquiries, cl.place())
		if err == nil {
			err = c.concluded(cl, held)
		}
		q.held, q.err = held, err
		close(q.done)
	})
	return q
}

// concluded takes what came of a look into a claim. This node, where others know it at an
// address that nobody holds, gets a version that they take. The lock is held. Errors:
// KindRemoved, KindStorage.
func (c Addresses) concluded(cl claim, held *presence) error {
	f := c.forming
	if cl.who.Name == f.self.Name {
		if held != nil {
			c.yield(held)
			return nil
		}
		if cl.who.Version > f.self.Version {
			f.self.Version, f.told = cl.who.Version, false
		}
		return f.learn()
	}
	known := slices.IndexFunc(f.facts.Members, func(m Member) bool { return m.Name == cl.who.Name })
	if held != nil || known < 0 || f.facts.Members[known].Peer != cl.left || f.facts.Members[known].Version >= cl.who.Version {
		return nil
	}
	if err := f.learn(cl.who); err != nil {
		return err
	}
	c.log.Info("a node has another address than before", "node", cl.who.ID, "peer", cl.who.Peer, "before", cl.left)
	return nil
}

// yield ends this node where another process under its name answers that another member knows,
// and this one is known to none, or has an older address, or, with the same, the greater run. Of two
// that hear of each other at most one ends, for neither is known less than it was. One that
// does not answer ends nobody. The lock is held.
func (c Addresses) yield(held *presence) {
	f := c.forming
	if held.Run == "" || held.Run == f.run || !held.Told {
		return
	}
	if newer := cmp.Or(cmp.Compare(f.self.Version, held.Self.Version), cmp.Compare(held.Run, f.run)) > 0; f.told && newer {
		return
	}
	f.yielded = true
	c.presence.Store(nil)
	if c.opt.Removed != nil {
		c.opt.Removed(duplicate(f.self, held.Self))
	}
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
