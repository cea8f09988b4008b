package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hello is what a node says of itself, and what it asks with: both sides of the call
// learn.
type hello struct {
	Self Member `json:"self"`
	// Run tells a process from another one with a copy of its data directory.
	Run     string `json:"run"`
	Cluster string `json:"cluster,omitempty"`
	Vote    string `json:"vote,omitempty"`
	Expect  int    `json:"expect,omitempty"`
	// Sees are the names of the nodes that it saw when it looked last.
	Sees []string `json:"sees,omitempty"`
	// Settled: it has looked around and found nobody under its own id.
	Settled bool     `json:"settled,omitempty"`
	Members []Member `json:"members,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Held, in an answer, is the process that has the address at which the asked one knows
	// who asks.
	Held *presence `json:"held,omitempty"`
}

// ballot answers a candidate: the vote as it is now. It is the candidate's if it names
// the candidate.
type ballot struct {
	Vote    string `json:"vote"`
	Cluster string `json:"cluster,omitempty"`
}

// step is what a node does next.
type step struct {
	// cluster was found; via are members of it, of which any tells the rest.
	cluster string
	via     []Member
	// ask for the votes of these.
	ask []Member
	// waits say to people why nothing can be done yet.
	waits []string
}

// forming is how a node decides, without network and clock. Whoever has one calls one
// method at a time.
//
// A cluster is founded with the votes of as many nodes as are expected, and a node has
// one vote. It moves its vote only away from a candidate that has given its own vote
// to another one: such a candidate never founds, for its own vote never comes back to
// it. So two foundings of nodes that are fewer than twice the expected number would
// share a voter, and cannot both be.
type forming struct {
	facts  Facts
	self   Member
	run    string
	expect int // 0: it joins, and never founds
	save   func(Facts) error
	broken error // the last Save failed, and what a restart finds is unknown

	settled bool
	told    bool // another member knows where this node is
	yielded bool // another process has this node's place, and this one ends
	sees    []string
	// hold, if not empty, is why this node must not become a candidate now.
	hold string
	// unseen counts looks at a node that did not see this one, by name.
	unseen map[string]int
	// withdrawn are candidates that gave their own vote to another one.
	withdrawn map[string]bool
	// votes are those that this candidate got, by the voter's id.
	votes map[string]Member
}

func newForming(facts Facts, self Member, run string, expect int, save func(Facts) error) *forming {
	return &forming{facts: facts, self: self, run: run, expect: expect, save: save,
		unseen: map[string]int{}, withdrawn: map[string]bool{}, votes: map[string]Member{}}
}

// A node that looks as often as this one has seen it by then, if it can.
const unseenLooks = 5

// set stores facts. After an error the former ones stand until something is stored: a disk may
// have been full for a while. Without a cluster nothing more is stored or said, and the node ends.
func (f *forming) set(facts Facts) error {
	if f.broken != nil && f.facts.Cluster == "" {
		return f.broken
	}
	if err := f.save(facts); err != nil {
		f.broken = &Error{Kind: KindStorage, Message: "what this node knows of the cluster could not be written: " + err.Error(),
			Hint: "make the data directory writable and start again", Err: err}
		return f.broken
	}
	f.facts, f.broken = facts, nil
	return nil
}

func (f *forming) hello() hello {
	h := hello{Self: f.self, Run: f.run, Cluster: f.facts.Cluster, Vote: f.facts.Vote, Expect: f.expect, Sees: f.sees, Settled: f.settled}
	if h.Cluster != "" {
		h.Members, h.Removed = f.facts.Members, f.facts.Removed
	}
	return h
}

// heard takes what another node says of itself, also when it asks.
func (f *forming) heard(h hello) error {
	if h.Vote != "" && h.Vote != h.Self.Name {
		f.withdrawn[h.Self.Name] = true
	}
	if h.Cluster == "" || h.Cluster != f.facts.Cluster {
		return nil
	}
	if err := f.remove(h.Removed...); err != nil {
		return err
	}
	return f.learn(append(slices.Clone(h.Members), h.Self)...)
}

// learn stores news of members. Errors: KindRemoved, KindStorage.
func (f *forming) learn(news ...Member) error {
	if f.facts.removed(f.self.Name) {
		return removedError(f.self.Name)
	}
	news = slices.DeleteFunc(news, func(m Member) bool { return m.Name == f.self.Name || f.facts.removed(m.Name) })
	members, changed := merge(f.facts.Members, append(news, f.self)...)
	if !changed {
		return nil
	}
	facts := f.facts
	facts.Members = members
	return f.set(facts)
}

// remove stores that nodes were removed. Errors: KindRemoved if this one is among them,
// KindStorage.
func (f *forming) remove(names ...string) error {
	if facts, changed := f.facts.without(names...); changed {
		if err := f.set(facts); err != nil {
			return err
		}
	}
	if f.facts.removed(f.self.Name) {
		return removedError(f.self.Name)
	}
	return nil
}

func removedError(name string) error {
	return &Error{Kind: KindRemoved, Message: fmt.Sprintf("the node %s, whose data directory this is, was removed from the cluster", name), Hint: removedHint}
}

const removedHint = "start it with an empty data directory: it joins as a new node, and takes everything from the others"

// decide looks at the other nodes that answered. Errors: KindOtherCluster,
// KindDuplicate, KindStorage.
func (f *forming) decide(seen []hello) (step, error) {
	var s step
	if f.broken != nil {
		return s, f.broken
	}
	seen, err := f.distinct(seen)
	if err != nil {
		return s, err
	}
	f.sees, f.settled = nil, true
	for _, h := range seen {
		f.sees = append(f.sees, h.Self.Name)
		if slices.Contains(h.Removed, f.self.Name) {
			return s, removedError(f.self.Name)
		}
		if err := f.heard(h); err != nil {
			return s, err
		}
		switch {
		case h.Cluster == "":
		case s.cluster != "" && s.cluster != h.Cluster:
			return s, &Error{Kind: KindOtherCluster,
				Message: fmt.Sprintf("--join names nodes of two clusters: %s is of %s, %s is of %s", s.via[0].ID, s.cluster, h.Self.ID, h.Cluster),
				Hint:    "name the nodes of one cluster only"}
		default:
			s.cluster, s.via = h.Cluster, append(s.via, h.Self)
		}
	}
	if s.cluster != "" {
		return s, nil
	}
	return s, f.stand(seen, &s)
}

// distinct leaves each node out but once, and this one. Errors: KindDuplicate.
func (f *forming) distinct(seen []hello) ([]hello, error) {
	byName := map[string]hello{}
	for _, h := range seen {
		if h.Self.Name == f.self.Name && h.Run == f.run {
			continue
		}
		if h.Self.ID != f.self.ID {
			byName[h.Self.Name] = h
			continue
		}
		// One of the two came later. Where neither knows, the greater name yields.
		yields := h.Settled
		if h.Settled == f.settled {
			yields = f.self.Name+"/"+f.run > h.Self.Name+"/"+h.Run
		}
		if yields {
			return nil, duplicate(f.self, h.Self)
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	out := make([]hello, len(names))
	for i, name := range names {
		out[i] = byName[name]
	}
	return out, nil
}

func duplicate(self, other Member) error {
	e := &Error{Kind: KindDuplicate, Message: fmt.Sprintf("a node with the id %s runs already, at %s", other.ID, other.Peer),
		Hint: "give each node an --node-id of its own, or stop the other one"}
	if self.Name == other.Name {
		e.Message = fmt.Sprintf("this data directory, or a copy of it, is in use by the node %s at %s", other.ID, other.Peer)
		e.Hint = "stop the other one; a new node begins with an empty data directory"
	}
	return e
}

// stand becomes a candidate where nobody with a smaller name is to be, and asks for
// votes.
func (f *forming) stand(seen []hello, s *step) error {
	if f.expect == 0 {
		s.waits = append(s.waits, "no node of a cluster answers, and this one was started without --bootstrap-expect")
		return nil
	}
	electorate, once := []Member{}, true
	ids := map[string]string{}
	for _, h := range seen {
		if h.Expect != f.expect {
			if h.Expect != 0 {
				s.waits = append(s.waits, fmt.Sprintf("%s was started with --bootstrap-expect %d, this node with %d", h.Self.ID, h.Expect, f.expect))
			}
			continue
		}
		if other := ids[h.Self.ID]; other != "" {
			once = false
			s.waits = append(s.waits, fmt.Sprintf("two nodes have the id %s: %s and %s", h.Self.ID, other, h.Self.Name))
		}
		ids[h.Self.ID] = h.Self.Name
		electorate = append(electorate, h.Self)
		if f.unseen[h.Self.Name]++; !h.Settled || slices.Contains(h.Sees, f.self.Name) {
			f.unseen[h.Self.Name] = 0
		}
		if f.unseen[h.Self.Name] > unseenLooks {
			s.waits = append(s.waits, fmt.Sprintf("%s does not see this node: its --join does not name %s, or that cannot be reached from there", h.Self.ID, f.self.Peer))
		}
		f.lostCandidate(h.Self.ID, h.Vote, seen, s)
	}
	f.lostCandidate("this node", f.facts.Vote, seen, s)
	first := !slices.ContainsFunc(electorate, func(m Member) bool { return m.Name < f.self.Name })
	if f.facts.Vote == "" && first && once && 1+len(electorate) >= f.expect {
		if f.hold != "" {
			s.waits = append(s.waits, f.hold)
			return nil
		}
		facts := f.facts
		facts.Vote = f.self.Name
		if err := f.set(facts); err != nil {
			return err
		}
	}
	if f.facts.Vote != f.self.Name || !once {
		return nil
	}
	for _, m := range electorate {
		if f.votes[m.ID].Name != m.Name {
			delete(f.votes, m.ID) // of an incarnation that is gone
			s.ask = append(s.ask, m)
		}
	}
	return nil
}

// lostCandidate says that a vote went to a node that is not there.
func (f *forming) lostCandidate(who, vote string, seen []hello, s *step) {
	if vote == "" || vote == f.self.Name || slices.ContainsFunc(seen, func(h hello) bool { return h.Self.Name == vote }) {
		return
	}
	s.waits = append(s.waits, fmt.Sprintf("%s gave its vote to %s, which does not answer: start that again; if it is lost for ever and no node was ever ready, "+
		"empty the data directories of the others and start them again", who, vote))
}

// vote answers a candidate, and stores the vote before.
func (f *forming) vote(candidate string, expect int) (ballot, error) {
	facts := f.facts
	mayMove := facts.Vote == "" || f.withdrawn[facts.Vote] || facts.Vote == f.self.Name && candidate < f.self.Name
	if facts.Cluster == "" && candidate != f.self.Name && facts.Vote != candidate && expect == f.expect && mayMove {
		facts.Vote = candidate
		if err := f.set(facts); err != nil {
			return ballot{}, err
		}
	}
	return ballot{Vote: facts.Vote, Cluster: facts.Cluster}, f.broken
}

// voted counts an answer to this node's question.
func (f *forming) voted(from Member, b ballot) {
	if b.Cluster == "" && b.Vote == f.self.Name {
		f.votes[from.ID] = from
	}
}

// won reports whether this node may found.
func (f *forming) won() bool {
	return f.facts.Cluster == "" && f.facts.Vote == f.self.Name && 1+len(f.votes) >= f.expect && f.expect > 0
}

// found makes this node the founder of a cluster.
func (f *forming) found(cluster string, shards int) error {
	if !f.won() {
		return fmt.Errorf("found a cluster with %d of %d votes", 1+len(f.votes), f.expect)
	}
	facts := f.facts
	facts.Cluster, facts.Founder, facts.Shards = cluster, true, shards
	facts.Members, _ = merge([]Member{f.self}, slices.Collect(maps.Values(f.votes))...)
	return f.set(facts)
}

// join makes this node a member of a cluster that others have told.
func (f *forming) join(w welcome) error {
	switch f.facts.Cluster {
	case w.Cluster:
		return f.heard(hello{Cluster: w.Cluster, Members: w.Members, Removed: w.Removed})
	case "":
	default:
		return &Error{Kind: KindOtherCluster, Message: fmt.Sprintf("this node is of the cluster %s and was told of %s", f.facts.Cluster, w.Cluster)}
	}
	facts := f.facts
	facts.Cluster, facts.Removed, facts.Shards = w.Cluster, w.Removed, w.Shards
	facts.Members, _ = merge(slices.DeleteFunc(slices.Clone(w.Members), func(m Member) bool { return m.Name == f.self.Name }), f.self)
	return f.set(facts)
}

// lost are the names that the cluster knows of nodes with this one's id, which has nothing
// of what they had: as the welcome says, for it asked whether they are alive.
func (f *forming) lost(w welcome) (names []string) {
	if f.facts.Cluster != "" {
		return f.facts.Replaces
	}
	for _, m := range w.Members {
		if m.ID == f.self.ID && m.Name != f.self.Name {
			names = append(names, m.Name)
		}
	}
	return names
}

// otherShards refuses a number of shards that is another one than the cluster's; 0 takes
// what there is.
func otherShards(asked, has int) error {
	if has = max(has, 1); asked == 0 || asked == has {
		return nil
	}
	return &Error{Kind: KindUsage, Message: fmt.Sprintf("the cluster has %d shards, and this node was started with --shards %d", has, asked),
		Hint: "leave --shards out: a cluster keeps the number that it was founded with; memctl export and import bring memories into one that has another"}
}

// here names the fresh nodes that this one sees and that expect as many, itself first
// in the count.
func (f *forming) here(seen []hello) string {
	ids := []string{f.self.ID}
	for _, h := range seen {
		if h.Cluster == "" && h.Expect == f.expect && !slices.Contains(ids, h.Self.ID) {
			ids = append(ids, h.Self.ID)
		}
	}
	slices.Sort(ids)
	if f.expect == 0 {
		return "looking for a cluster to join"
	}
	return fmt.Sprintf("have %d of %d nodes: %s", len(ids), f.expect, strings.Join(ids, ", "))
}

// waits tells who asks for what this node waits.
func (c *Cluster) waits(why, hint string) {
	if c.opt.Waiting != nil {
		c.opt.Waiting(why, hint)
	}
}

func (c *Cluster) here(l sifted) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forming.here(l.seen)
}
