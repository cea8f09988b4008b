package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// Service is the peer port's service that this package answers.
const Service = "cluster"

// Options of Form.
type Options struct {
	// Port is open. Its Self must give the cluster that Store saved last.
	Port  *peer.Port
	Store Store
	// Memory keeps what this node remembers of the others; nil keeps it while it runs.
	Memory Memory
	// Peer and Route are where other nodes reach this one's peer port and NATS route.
	Peer, Route string
	// Join are peer addresses of the cluster's nodes; this node's own may be among
	// them.
	Join []string
	// Expect is how many nodes found the cluster together; 0 never founds, and joins.
	Expect int
	// Shards is how many shards a cluster gets that this node founds; 0 is 1. One that is
	// there must have as many, unless it is 0.
	Shards int
	// AllowTwo allows Expect to be 2.
	AllowTwo bool
	// ReplaceLost says that this node, where it has nothing, takes the place of the one with
	// its id that the cluster knows, whose data are lost.
	ReplaceLost bool
	// NewCluster draws the id of a new cluster.
	NewCluster func() (string, error)
	// Token gives the operator's token to a node that joins, also to several at once;
	// TakeToken stores the one that the cluster gave, before the cluster is, and at each
	// start takes or refuses (ErrOtherToken) the one that each member has.
	Token     func() (string, error)
	TakeToken func(token string) error
	// Removed is told when this node hears that it was removed, or that it is what was left
	// of a node that the others know elsewhere, and has to end. nil is not told. It must not
	// block.
	Removed func(error)
	// News bounds how long a node that knows its cluster asks for news of the others.
	// 0: two seconds.
	News time.Duration
	// Waiting is told for what this node waits, whenever that is something else, and what helps
	// beside starting the others, if anything does; nil is nobody.
	Waiting func(why, hint string)
	Logger  *slog.Logger // nil is silent
}

func (o *Options) validate(facts Facts) error {
	bad := func(message, hint string) error { return &Error{Kind: KindUsage, Message: message, Hint: hint} }
	if o.News == 0 {
		o.News = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	join := slices.Compact(slices.Sorted(slices.Values(o.Join)))
	switch {
	case facts.ID == "" || facts.Incarnation == "" || strings.Contains(facts.Incarnation, "-"):
		return bad(fmt.Sprintf("a node cannot be called %q", facts.Name()), "")
	case facts.Cluster != "":
		return otherShards(o.Shards, facts.Shards) // else how it was founded is over
	case o.Expect < 0:
		return bad(fmt.Sprintf("--bootstrap-expect %d is no number of nodes", o.Expect), "")
	case o.Expect == 2 && !o.AllowTwo:
		return bad("a cluster of two nodes stops when either of them does: it is less available than one node", "use --bootstrap-expect 3 or 5, or --allow-two")
	case o.Expect == 0 && len(join) == 0:
		return bad("neither --join nor --bootstrap-expect is given", "name the nodes of a cluster to join, or how many found a new one")
	case o.Expect > 0 && len(join) >= 2*o.Expect:
		return bad(fmt.Sprintf("--join names %d addresses and --bootstrap-expect %d nodes: two clusters could be founded", len(join), o.Expect), fmt.Sprintf("expect more than half of them, or leave --bootstrap-expect out at nodes that join later (one that founds alone names at most itself), and name at most %d", 2*o.Expect-1))
	case o.Expect == 2:
		o.Logger.Warn("two nodes found a cluster: when either of them is gone nothing is written, and no node starts", "hint", "let a third one join")
	case o.Expect > 0 && o.Expect%2 == 0:
		o.Logger.Warn(fmt.Sprintf("an even number of nodes founds a cluster: %d bear the loss of %d, as %d do, and have one more that may fail", o.Expect, o.Expect/2-1, o.Expect-1), "hint", "let one more join")
	}
	return nil
}

// Cluster is what a node knows of its cluster, and answers the calls of the others. It
// may be used concurrently.
type Cluster struct {
	opt    Options
	log    *slog.Logger
	client *rpc.Client
	server *rpc.Server

	mu      sync.Mutex
	forming *forming
	callers map[string]bool // peer addresses of those that asked
	groups  map[string]*Admission
	// inquiries are under way.
	inquiries map[rpc.Target]*inquiry
	presence  atomic.Pointer[presence] // as it was last, for who does not wait
	// removeServer takes a node's server from those of the log; nil: not yet.
	removeServer func(ctx context.Context, name string) error

	unusable string // why this node has to come back with nothing, while it waits for that
	promises *Promises
	working  context.Context // of the work, which stop ends
	stop     func()
	work     sync.WaitGroup // begun with mu held, while working has not ended
}

const (
	firstWait, longestWait = 200 * time.Millisecond, time.Second
	callTimeout            = 2 * time.Second
	reportEvery            = 5 * time.Second
)

// Form finds the cluster of this node, or founds it together with the others, and
// answers them until Close. A node that knows its cluster asks for news and returns.
// Errors: *Error; a context that ends first says what was waited for.
func Form(ctx context.Context, opt Options) (*Cluster, error) {
	facts, err := opt.Store.Load()
	if err != nil {
		return nil, &Error{Kind: KindStorage, Message: "what this node knows of the cluster could not be read: " + err.Error(), Err: err}
	}
	if err := opt.validate(facts); err != nil {
		return nil, err
	}
	self := Member{Name: facts.Name(), ID: facts.ID, Peer: opt.Peer, Route: opt.Route, Version: 1}
	for _, m := range facts.Members {
		if m.Name == self.Name {
			self.Version = m.Version // of the address that it had: a new one counts once it has settled
		}
	}
	c := &Cluster{opt: opt, log: opt.Logger, client: rpc.NewClient(opt.Port, Service),
		forming: newForming(facts, self, rand.Text(), opt.Expect, opt.Store.Save),
		callers: map[string]bool{}, groups: map[string]*Admission{}, inquiries: map[rpc.Target]*inquiry{}, promises: NewPromises()}
	c.working, c.stop = context.WithCancel(context.Background())
	if err := (Witness{c}).loadPromises(); err != nil {
		c.client.Close()
		return nil, err
	}
	c.presence.Store((Addresses{c}).present())
	opt.Port.AdmitStrangers(Service)
	c.server, err = rpc.Serve(opt.Port, Service, map[string]rpc.Method{
		"hello": rpc.Handle(c.hello), "vote": rpc.Handle(c.vote), "welcome": rpc.Handle(c.welcome), "token": rpc.Handle(c.token), "who": rpc.Handle(Addresses{c}.who),
		"returns": rpc.Handle(Witness{c}.returns), "remember": rpc.Handle(Witness{c}.remember), "replace": rpc.Handle(Witness{c}.replace),
		"join": rpc.Handle(c.join), "applied": rpc.Handle(c.applied), "remove": rpc.Handle(c.removeReplica),
	}, c.log)
	if err != nil {
		c.client.Close()
		return nil, err
	}
	if facts.Cluster == "" {
		err = c.form(ctx)
	}
	var silent []rpc.Target
	if err == nil {
		silent, err = c.news(ctx)
	}
	if err == nil {
		err = c.agreeOnToken(ctx, silent)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.work.Go(func() { Addresses{c}.keepKnown(c.working) })
	c.work.Go(func() { Witness{c}.keepPromises(c.working) })
	return c, nil
}

// Close stops answering.
func (c *Cluster) Close() error {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	c.work.Wait()
	c.client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := c.server.Close(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // who asked is told by the end of the connection
	}
	return err
}

// Facts returns what the node knows.
func (c *Cluster) Facts() Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	facts := c.forming.facts
	facts.Members, facts.Groups = slices.Clone(facts.Members), slices.Clone(facts.Groups)
	return facts
}

// Self returns this node.
func (c *Cluster) Self() Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forming.self
}

// Begun notes that the founder's Raft groups exist: from now on no loss of them makes
// this node begin them again.
func (c *Cluster) Begun() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	facts := c.forming.facts
	if !facts.Founder {
		return nil
	}
	facts.Founder = false
	return c.forming.set(facts)
}

// answer is what an address said.
type answer struct {
	addr  string
	hello hello
	err   error
}

// look says hello to all targets at once. Answers come in their order.
func (c *Cluster) look(ctx context.Context, targets []rpc.Target, timeout time.Duration) []answer {
	c.mu.Lock()
	mine := c.forming.hello()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := make([]answer, len(targets))
	var wg sync.WaitGroup
	for i, to := range targets {
		wg.Go(func() {
			out[i].addr = to.Addr
			out[i].err = c.client.Call(ctx, to, "hello", mine, &out[i].hello)
		})
	}
	wg.Wait()
	return out
}

// addresses are where a node without cluster looks: at those that it was given, at
// its own, which others must reach it by, and at those that have asked.
func (c *Cluster) addresses() (targets []rpc.Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := append([]string{c.opt.Peer}, c.opt.Join...)
	for addr := range c.callers {
		known = append(known, addr)
	}
	for _, addr := range slices.Compact(slices.Sorted(slices.Values(known))) {
		targets = append(targets, rpc.Target{Addr: addr})
	}
	return targets
}

// form looks again and again until this node has a cluster.
func (c *Cluster) form(ctx context.Context) error {
	wait, said, saidAt, distrust := firstWait, "", time.Time{}, 0
	for {
		look := sift(c.look(ctx, c.addresses(), callTimeout), c.opt, c.Self(), c.forming.run)
		done, waits, err := c.act(ctx, look)
		if done || err != nil {
			return err
		}
		if distrust++; look.err == nil {
			distrust = 0
		} else if distrust > 1 && ctx.Err() == nil { // a certificate may just be in exchange
			return look.err
		}
		text := strings.Join(append([]string{c.here(look)}, append(waits, look.waits...)...), "; ")
		if ctx.Err() != nil {
			return &Error{Kind: KindWaiting, Message: "this node has found no cluster: " + text, Err: ctx.Err()}
		}
		c.waits(text, "")
		if text != said || time.Since(saidAt) > reportEvery {
			c.log.Info("waiting for the cluster: " + text)
			said, saidAt = text, time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(wait*3/2, longestWait)
	}
}

// sifted is what came of looking at all addresses.
type sifted struct {
	seen  []hello
	at    map[string]rpc.Target // where those are, by name
	waits []string              // why the others gave no answer
	hold  string                // why this node must not found now
	err   error                 // it helps no more to wait
}

// sift tells answers from errors, and this node from others.
func sift(answers []answer, opt Options, self Member, run string) sifted {
	l := sifted{at: map[string]rpc.Target{}}
	others, distrusted := 0, 0
	for _, a := range answers {
		mine := a.err == nil && a.hello.Self.Name == self.Name && a.hello.Run == run
		switch {
		case mine:
			continue
		case a.err == nil && a.addr == opt.Peer:
			l.err = notHere(a.addr, a.hello.Self)
		case a.err == nil:
			l.seen = append(l.seen, a.hello)
			l.at[a.hello.Self.Name] = rpc.Target{Addr: a.addr, Node: a.hello.Self.Name}
		default:
			why, kind := explain(a.err)
			l.waits = append(l.waits, a.addr+" "+why)
			if kind == KindCertificates {
				distrusted++
				if a.addr == opt.Peer {
					l.err = untrusted(l.waits[len(l.waits)-1:])
				}
			}
		}
		others++
		if opt.Expect == 1 && slices.Contains(opt.Join, a.addr) {
			l.hold = fmt.Sprintf("--bootstrap-expect 1 founds a cluster alone, but --join names %s: leave --bootstrap-expect out to join, or --join to found", a.addr)
		}
	}
	if l.err == nil && others > 0 && distrusted == others {
		l.err = untrusted(l.waits)
	}
	return l
}

// act does what the answers call for.
func (c *Cluster) act(ctx context.Context, l sifted) (done bool, waits []string, err error) {
	c.mu.Lock()
	c.forming.hold = l.hold
	s, err := c.forming.decide(l.seen)
	c.mu.Unlock()
	if err != nil {
		return false, nil, err
	}
	for _, m := range s.via {
		if done, why, err := c.enter(ctx, l.at[m.Name], m, s.cluster); done || err != nil {
			return done, nil, err
		} else if why != "" {
			s.waits = append(s.waits, why)
		}
	}
	c.ask(ctx, l, s.ask)
	c.mu.Lock()
	won := c.forming.won()
	c.mu.Unlock()
	if !won {
		return false, s.waits, nil
	}
	return true, nil, c.found()
}

func (c *Cluster) found() error {
	id, err := c.opt.NewCluster()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.forming.won() { // it gave its vote to another one meanwhile
		return c.forming.broken
	}
	if err := c.forming.found(id, c.opt.Shards); err != nil {
		return err
	}
	c.log.Info("founded the cluster", "cluster", id, "members", len(c.forming.facts.Members))
	return nil
}

// ask collects votes.
func (c *Cluster) ask(ctx context.Context, l sifted, from []Member) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, m := range from {
		wg.Go(func() {
			var b ballot
			if err := c.client.Call(ctx, l.at[m.Name], "vote", candidacy{c.opt.Expect}, &b); err != nil {
				c.log.Debug("a vote was not given", "node", m.ID, "err", err)
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.forming.voted(m, b)
		})
	}
	wg.Wait()
}

// enter joins the cluster that a node told of. why says what to wait for.
func (c *Cluster) enter(ctx context.Context, to rpc.Target, via Member, cluster string) (done bool, why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	var w welcome
	if err := c.client.Call(ctx, to, "welcome", c.Self(), &w); err != nil {
		if memory.CodeOf(err) == memory.CodeConflict {
			said := memory.AsError(err)
			return false, "", &Error{Kind: KindDuplicate, Message: said.Message, Hint: said.Hint, Err: err}
		}
		text, _ := explain(err)
		return false, via.ID + " " + text, nil
	}
	if w.Cluster != cluster {
		return false, via.ID + " is of another cluster than it said", nil
	}
	if err := otherShards(c.opt.Shards, w.Shards); err != nil {
		return false, "", err
	}
	if err := c.takeToken(w.Token, via.ID); err != nil {
		return false, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forming.facts.Former, c.forming.facts.Origin = w.Former, w.Origin // stored with the rest
	if c.opt.ReplaceLost {
		c.forming.facts.Replaces = c.forming.lost(w)
	}
	if err := c.forming.join(w); err != nil {
		return false, "", err
	}
	c.log.Info("joined the cluster", "cluster", w.Cluster, "through", via.ID)
	return true, "", nil
}

// news tells the other members where this node is now, and hears of them; those that
// did not answer are silent. Errors: KindOtherCluster, KindDuplicate, KindRemoved,
// KindStorage.
func (c *Cluster) news(ctx context.Context) (silent []rpc.Target, err error) {
	c.mu.Lock()
	err = c.forming.learn() // this node, where it is not among those that it knows
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	targets := (Addresses{c}).aroundHere()
	var strange, distrusted []string
	seen := []hello{}
	for i, a := range c.look(ctx, targets, c.opt.News) {
		if a.err == nil {
			if err := (Addresses{c}).knownBy(a.hello, true); err != nil {
				return nil, err
			}
			seen = append(seen, a.hello)
			continue
		}
		if errors.Is(a.err, peer.ErrReplaced) {
			return nil, &Error{Kind: KindRemoved, Message: fmt.Sprintf("%s says that the cluster of this node is no more: %v", a.addr, innermost(a.err)),
				Hint: "keep this data directory aside until the new cluster is known to be whole, and start this node with an empty one: it joins with what the others have", Err: a.err}
		}
		switch why, kind := explain(a.err); kind {
		case KindOtherCluster:
			strange = append(strange, a.addr+" "+why+": "+innermost(a.err))
		case KindCertificates:
			distrusted = append(distrusted, a.addr+" "+why)
		default:
			c.log.Info("a member was not asked for news: " + a.addr + " " + why)
			if targets[i].Node != "" {
				silent = append(silent, targets[i])
			}
		}
	}
	c.mu.Lock()
	seen, err = c.forming.distinct(seen)
	cluster := c.forming.facts.Cluster
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	friends := slices.ContainsFunc(seen, func(h hello) bool { return h.Cluster == cluster })
	if err := (Addresses{c}).hear(ctx, seen...); err != nil && memory.CodeOf(err) != memory.CodeConflict {
		return nil, err
	}
	if len(distrusted) > 0 { // it may be in exchange, and reads go on
		e := untrusted(distrusted)
		c.log.Warn(e.Message, "hint", e.Hint)
	}
	if len(strange) > 0 && !friends {
		return nil, otherCluster(c.Facts(), strange)
	}
	if len(strange) > 0 {
		c.log.Warn("--join names nodes of another cluster: " + strings.Join(strange, "; "))
	}
	return silent, Addresses{c}.settle(ctx, seen)
}
