package raftmodel

import (
	"slices"

	"mneme/internal/raftfsm"
)

// The rules of Raft as in Ongaro's dissertation, figure 3.1 and section 5.

type role int

const (
	follower role = iota
	candidate
	leader
)

type messageKind int

const (
	askVote messageKind = iota
	giveVote
	appendEntries
	appended
	install
)

type message struct {
	kind     messageKind
	from, to int
	term     uint64
	// askVote: the candidate's last entry. appendEntries: the entry before.
	// install: the one entry is the last that snap holds. appended: index is the
	// last entry known to agree, or where to go on if not ok.
	index, indexTerm uint64
	entries          []entry
	commit           uint64
	ok               bool
	snap             []byte
	members          raftfsm.Membership // that hold at the end of snap
}

// entry is one entry of a log. A marker begins a term and is no command.
type entry struct {
	index, term uint64
	data        []byte
	marker      bool
	members     []raftfsm.Member // from this entry on; nil = it changes nothing
	chain       uint64           // over this entry and all before it
}

func (e entry) stored() raftfsm.LogEntry {
	return raftfsm.LogEntry{Entry: raftfsm.Entry{Index: e.index, Term: e.term, Data: e.data}, Marker: e.marker, Members: e.members}
}

// setTerm begins a term. The store keeps what it could not write for later.
func (r *Replica) setTerm(term uint64) {
	if err := r.local.SetTerm(term); err != nil {
		r.m.truth.fail("replica %d: term %d: %v", r.id, term, err)
	}
	r.term = term
}

// campaign is what a follower does that has not heard from a leader.
func (r *Replica) campaign() {
	if r.down || r.role == leader || !r.hasVote(r.id) {
		return
	}
	r.observe(r.term+1, -1)
	if r.local.Vote(r.term, r.ID()) != nil {
		return
	}
	r.role, r.elects = candidate, map[int]bool{r.id: true}
	end := r.lastEntry()
	for _, to := range r.peers() {
		if r.hasVote(to) {
			r.m.send(message{kind: askVote, from: r.id, to: to, term: r.term, index: end.index, indexTerm: end.term})
		}
	}
	r.count()
}

// observe takes a term that is not lower and, if known, who leads it.
func (r *Replica) observe(term uint64, lead int) {
	if term > r.term || r.role != follower {
		r.StepDown()
	}
	if term > r.term {
		r.setTerm(term)
		r.lead = -1
	}
	if lead >= 0 && lead != r.lead {
		r.lead = lead
		r.tell(raftfsm.Leadership{Kind: raftfsm.LeaderKnown, Term: term, LeaderID: r.m.replicas[lead].ID()})
	}
}

func (r *Replica) count() {
	if r.role != candidate || r.votes(func(id int) bool { return r.elects[id] }) < r.quorum() {
		return
	}
	r.m.truth.elected(r)
	if r.add(entry{index: r.last() + 1, term: r.term, marker: true}) != nil {
		r.StepDown()
		return
	}
	r.role, r.lead = leader, r.id
	r.next, r.match = map[int]uint64{}, map[int]uint64{}
	r.m.follow(r)
	r.advance()
	r.replicate()
}

// replicate sends each peer what it lacks.
func (r *Replica) replicate() {
	for _, to := range r.peers() {
		if r.role != leader {
			continue
		}
		prev, ok := r.at(r.next[to] - 1)
		if !ok {
			r.sendState(to)
			continue
		}
		from := prev.index - r.base.index
		entries := r.log[from:min(from+uint64(1+r.m.rng.IntN(4)), uint64(len(r.log)))]
		r.m.send(message{kind: appendEntries, from: r.id, to: to, term: r.term, index: prev.index,
			indexTerm: prev.term, entries: slices.Clone(entries), commit: r.commit})
	}
}

// sendState sends the snapshot to a peer that lies before the log's beginning.
func (r *Replica) sendState(to int) {
	if r.sendable == nil {
		var err error
		if r.sendable, err = r.local.Read(); err != nil {
			r.m.truth.fail("replica %d: read its snapshot of %d: %v", r.id, r.base.index, err)
			return
		}
	}
	r.m.send(message{kind: install, from: r.id, to: to, term: r.term, entries: []entry{r.base}, members: r.groups[0], snap: r.sendable})
}

func (r *Replica) receive(msg message) {
	if msg.term > r.term {
		r.observe(msg.term, -1)
	}
	answer := message{from: r.id, to: msg.from, term: r.term}
	switch msg.kind {
	case askVote:
		answer.kind, answer.ok = giveVote, r.grants(msg)
		r.m.send(answer)
	case giveVote:
		if msg.ok && msg.term == r.term && r.role == candidate {
			r.m.saw(r, msg.from, raftfsm.Promise{Term: r.term, Voted: true})
			r.elects[msg.from] = true
			r.count()
		}
	case appendEntries:
		answer.kind = appended
		if msg.term == r.term {
			r.observe(msg.term, msg.from)
			if n := len(msg.entries); n > 0 && msg.entries[n-1].term == msg.term {
				r.m.saw(r, msg.from, raftfsm.Promise{Term: msg.term, Index: msg.entries[n-1].index})
			}
			answer.index, answer.ok = r.take(msg)
		}
		r.m.send(answer)
	case appended:
		r.answered(msg)
	case install:
		answer.kind = appended
		if msg.term == r.term {
			r.observe(msg.term, msg.from)
			answer.index, answer.ok = r.install(msg)
		}
		if r.down {
			return // the power went
		}
		r.m.send(answer) // also to a leader of the past, which learns the term from it
	}
}

// grants decides on a candidate's request. A vote counts once it is stored.
func (r *Replica) grants(msg message) bool {
	end := r.lastEntry()
	newer := msg.indexTerm > end.term || (msg.indexTerm == end.term && msg.index >= end.index)
	if msg.term != r.term || !newer {
		return false
	}
	candidate := r.m.replicas[msg.from].ID()
	if r.last() > 0 && !r.hasVote(msg.from) { // one that was removed, and does not know it
		return false
	}
	voted, err := r.local.Voted(r.term)
	if err != nil || voted != "" {
		return err == nil && voted == candidate
	}
	return r.local.Vote(r.term, candidate) == nil
}

// take appends what a leader sent and returns up to where the logs agree, or
// where the leader should go back to.
func (r *Replica) take(msg message) (uint64, bool) {
	if msg.index < r.base.index { // committed here, and so equal
		skip := min(r.base.index-msg.index, uint64(len(msg.entries)))
		msg.entries = msg.entries[skip:]
		msg.index += skip
		if msg.index < r.base.index {
			return r.base.index, true
		}
	} else if prev, ok := r.at(msg.index); !ok || prev.term != msg.indexTerm {
		return min(msg.index-1, r.last()), false
	}
	for _, e := range msg.entries {
		if have, ok := r.at(e.index); ok && have.term == e.term {
			continue
		}
		r.m.truth.cut(r, e.index)
		if r.journal.cut(e.index) != nil {
			return r.last(), false
		}
		if r.add(entry{index: e.index, term: e.term, data: e.data, marker: e.marker, members: e.members}) != nil {
			return r.last(), false
		}
	}
	agreed := msg.index + uint64(len(msg.entries))
	r.commitTo(min(msg.commit, agreed))
	return agreed, true
}

func (r *Replica) answered(msg message) {
	if r.role != leader || msg.term != r.term {
		return
	}
	if !msg.ok {
		r.next[msg.from] = max(min(msg.index+1, r.next[msg.from]), r.match[msg.from]+1)
		return
	}
	if e, ok := r.at(msg.index); ok && e.term == r.term {
		r.m.saw(r, msg.from, raftfsm.Promise{Term: r.term, Index: msg.index})
	}
	r.match[msg.from] = max(r.match[msg.from], msg.index)
	r.next[msg.from] = r.match[msg.from] + 1
	r.advance()
}

// saw tells that a replica sees that another replica made a promise.
func (m *Model) saw(witness *Replica, id int, p raftfsm.Promise) {
	if m.opt.Saw != nil {
		m.opt.Saw(witness, m.replicas[id], p)
	}
}

// advance commits what a majority of the voters has, once an entry of the present term
// is among it. A leader that has no vote any more, by what is committed, steps down.
func (r *Replica) advance() {
	r.match[r.id] = r.last()
	var have []uint64
	for _, s := range r.members().Members {
		if s.Voter {
			have = append(have, r.match[r.m.named(s.ID)])
		}
	}
	slices.Sort(have)
	index := have[len(have)-r.quorum()]
	if e, ok := r.at(index); ok && e.term == r.term {
		r.commitTo(index)
	}
	if r.members().Index <= r.commit && !r.hasVote(r.id) {
		r.StepDown()
	}
}

func (r *Replica) commitTo(index uint64) {
	for i := r.commit + 1; i <= index; i++ {
		e, _ := r.at(i)
		r.m.truth.commit(r, e)
		r.commit = i
	}
}
