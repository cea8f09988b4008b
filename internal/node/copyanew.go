package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"mneme/internal/cluster"
	"mneme/internal/events"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// A node whose copy of the log is damaged takes it from the others as a start does that finds
// the damage: it starts again, lays aside what it has, and joins with nothing. So it gives up
// its state, too, and the node waits for the others to agree: two that did it at once would
// wait for each other for ever. Therefore one does it at a time, and only while all others
// serve, with all copies there, and a node leads shards and logs that has checked its own
// copy after the damage was found: the new one is taken from it. Two that are damaged come
// one after the other.
type copyAnew struct{ *ownCopy }

const (
	anewEvery = time.Second
	// copyHint is what a person can do where that does not begin by itself.
	copyHint = "it is taken from the other nodes by itself, once they have checked theirs; memctl doctor says what that waits for. Stop no other node before it is over"
	// votersForAnew is how many voters there have to be: the others remove the node's former name.
	votersForAnew = 3
)

func damagedCopy(damage string) error {
	return fmt.Errorf("its own copy of the log is damaged: %s", damage)
}

// run returns when the damage is over, or ctx, or this node, which then starts again.
func (a copyAnew) run(ctx context.Context) {
	log := a.n.cfg.Logger
	asked := map[string]uint64{} // the number of a pass that each other node has been asked for
	known := map[uint16]uint64{} // how far each log went a look ago
	for sleep(ctx, anewEvery) == nil {
		if a.settled() {
			log.Info("this node's copy of the log is damaged no more")
			a.ask()
			return
		}
		why := a.look(ctx, asked, known)
		if ctx.Err() != nil {
			return
		}
		if why == nil {
			err := fmt.Errorf("%w to take its copy of the log from the other nodes: %s", ErrRestart, a.Status().Damage)
			log.Warn("this node starts again", "why", err)
			a.n.end(err)
			return
		}
		if a.waits(why.Error()) {
			log.Info("this node's copy of the log is not taken from the others yet", "why", why)
		}
	}
}

// look says what this node waits for before it takes its copy anew; nil: nothing. Once it
// has said nil the node's claim stays.
func (a copyAnew) look(ctx context.Context, asked map[string]uint64, known map[uint16]uint64) error {
	n := a.n
	voting, claims := voters(n), false
	defer func() { a.claims.Store(claims) }()
	switch {
	case len(voting) < votersForAnew:
		return fmt.Errorf("%d nodes have a vote, and it takes %d: let another one join", len(voting), votersForAnew)
	case n.upkeep.repairs():
		return errors.New("a repair of the log is under way")
	}
	if err := a.room(); err != nil {
		return err
	}
	members := slices.DeleteFunc(slices.Clone(n.peers.cluster.Facts().Members), func(m cluster.Member) bool { return m.Name == n.dir.name() })
	a.claims.Store(true) // before the others are asked: of two that do so one hears of the other
	reports := n.operator.reports(ctx, members)
	o := anewView{members: members, voting: voting, reports: reports, asked: asked}
	a.askOthers(ctx, &o)
	why := o.judge()
	for _, s := range n.served {
		if why == nil {
			why = a.lookAt(ctx, s, &o, known)
		}
	}
	claims = why == nil
	if why == nil && o.claims != "" {
		why, claims = fmt.Errorf("%s does so first", peer.IDOf(o.claims)), n.dir.name() < o.claims // the other one gives way
	}
	return why
}

// anewView is what the other nodes say to one that wants to take its copy anew.
type anewView struct {
	members []cluster.Member
	voting  []cluster.Member
	reports []nodeReport      // of the members
	asked   map[string]uint64 // the number of the pass that each has been asked for, by name

	sound  map[string]bool // by name: those that have checked their copies since
	claims string          // the first one that would do the same now
}

// judge says what is in the way, as far as it lies with one node.
func (v *anewView) judge() error {
	v.sound = map[string]bool{}
	for i, m := range v.members { // one without a vote joins, and its copy is missing until it is there; or was refused, and never answers
		if v.reports[i].Node.ID == "" && slices.ContainsFunc(v.voting, func(o cluster.Member) bool { return o.Name == m.Name }) {
			return fmt.Errorf("%s does not answer", m.ID)
		}
	}
	for i, m := range v.members {
		r := v.reports[i].Copy
		switch {
		case v.reports[i].Node.ID == "":
		case r.Claims:
			if v.claims == "" || m.Name < v.claims {
				v.claims = m.Name
			}
		case r.Damage != "":
		case v.asked[m.Name] == 0:
			return fmt.Errorf("%s does not check its own copy", m.ID)
		case r.Ended < v.asked[m.Name]:
			return fmt.Errorf("%s checks its own copy first", m.ID)
		default:
			v.sound[m.Name] = true
		}
	}
	return nil
}

// leads says why a node that leads something is not one to take a copy from.
func (v *anewView) leads(what, name, self string) error {
	switch {
	case name == "":
		return fmt.Errorf("nobody leads %s", what)
	case name == self:
		return fmt.Errorf("this node leads %s yet", what)
	case !v.sound[name]:
		return fmt.Errorf("%s leads %s, and its own copy is not known to be whole", peer.IDOf(name), what)
	}
	return nil
}

// copies counts the nodes of which the copy of a shard's log goes up to a sequence at least.
func (v *anewView) copies(shard uint16, upTo uint64) (n int) {
	for _, r := range v.reports {
		if log := r.of(shard).Replica.Log; log.Current && log.Last >= upTo {
			n++
		}
	}
	return n
}

// lookAt says what is in the way at a shard. known is how far each log went a look ago.
func (a copyAnew) lookAt(ctx context.Context, s *served, v *anewView, known map[uint16]uint64) error {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("the log of shard %d is not reached: %w", s.id, err)
	}
	upTo, have := known[s.id], 0
	known[s.id] = info.Last
	if have, err = s.stream.Copies(ctx); err != nil {
		return err
	}
	self := a.n.dir.name()
	leader, _ := s.replica.Group().Leader()
	if err := v.leads(fmt.Sprintf("shard %d", s.id), leader, self); err != nil {
		return err
	}
	if err := v.leads(fmt.Sprintf("the log of shard %d", s.id), info.Leader, self); err != nil {
		return err
	}
	whole := v.copies(s.id, upTo)
	if last, current := s.nats.Holds(events.StreamName(s.id, s.stream.Ref().Epoch)); current && last >= upTo {
		whole++
	}
	if upTo == 0 || whole < have {
		return fmt.Errorf("%d of %d copies of the log of shard %d are there", whole, have, s.id)
	}
	return nil
}

// askOthers has each of the others check its own copy, again where it has started since.
func (a copyAnew) askOthers(ctx context.Context, v *anewView) {
	for i, m := range v.members {
		r := v.reports[i]
		if r.Node.ID == "" || r.Copy.Damage != "" || v.asked[m.Name] > 0 && (r.Copy.Running || r.Copy.Ended >= v.asked[m.Name]) {
			continue
		}
		var number uint64
		err := within(ctx, statusWait, func(ctx context.Context) error {
			return a.n.peers.reports.Call(ctx, rpc.Target{Addr: m.Peer, Node: m.Name}, callCheckCopy, struct{}{}, &number)
		})
		if err == nil {
			v.asked[m.Name] = number
		}
	}
}

// asked answers another node that asks for a check of this one's copy.
func (c *ownCopy) asked(context.Context, peer.Identity, struct{}) (uint64, error) {
	if c == nil {
		return 0, memory.Errorf(memory.CodeInvalid, "this node keeps no copy of the log")
	}
	return c.next(), nil
}

// room says why there is none for what comes from the others: what this node has stays
// aside, beside it.
func (a copyAnew) room() error {
	free, ok := a.n.space.available()
	if !ok {
		return nil
	}
	var need uint64
	for _, dir := range []string{a.n.dir.nats(), filepath.Join(a.n.dir.path, "shards")} {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					need += uint64(info.Size())
				}
			}
			return nil // files come and go
		})
	}
	if need += a.n.space.reserve; free < need {
		return fmt.Errorf("the disk has too little room for another copy of log and state: free %d bytes more", need-free)
	}
	return nil
}
