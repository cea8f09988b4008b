package sim

import (
	"errors"
	"fmt"
	"slices"

	"mneme/internal/cluster"
	"mneme/internal/keyring"
	"mneme/internal/raftfsm"
	"mneme/internal/raftfsm/raftmodel"
	"mneme/memory"
)

// tell lets a node tell those that it reaches what it remembers.
func (m *member) tell() {
	of, _ := m.saw.All()
	for _, r := range m.s.w.replicas {
		if r != m.r && m.reaches(r.member) {
			r.member.saw.Merge(of, func(node string) bool { return node == r.member.name || m.s.removed[node] || m.s.named(node) == nil })
		}
	}
}

// reaches reports whether one node's process gets an answer of another's.
func (m *member) reaches(o *member) bool {
	return m.phase != stopped && o.phase != stopped && m.s.model.Connected(m.keys, o.keys)
}

// in returns the node's replica of a group.
func (m *member) in(g *raftmodel.Model) *raftmodel.Replica {
	if g == m.s.model {
		return m.keys
	}
	return m.r.raft
}

// join brings the node's place in a group a step further; true = it has a vote.
func (m *member) join(name string, g *raftmodel.Model) bool {
	own := m.in(g)
	is, _ := raftmodel.Membership{Replica: own}.Members()
	if slices.Contains(is, raftfsm.Member{ID: m.name, Addr: m.name, Voter: true}) {
		return true
	}
	lead := m.s.leader(g, m)
	if lead == nil || lead == m.r {
		return false
	}
	at := lead.member.in(g)
	a := m.s.admission(g, at)
	place, err := a.Place(ctx, name, m.name, m.name)
	if memory.CodeOf(err) == memory.CodeConflict {
		m.s.w.fail("%s is refused by the group %s: %v", m.name, name, err)
	}
	if err != nil || place.Voter {
		return false // its own log says so soon
	}
	index, err := at.LinearizableIndex(ctx)
	if err != nil || own.Applied() < index {
		return false
	}
	_, _ = a.Promote(ctx, m.name, m.name) // or it asks again
	return false
}

// remove takes a name out of both groups, through a node that serves; true = it is out.
func (s *site) remove(by *member, name string) bool {
	s.removed[name] = true
	out := true
	for _, g := range []*raftmodel.Model{s.model, s.w.model} {
		lead := s.leader(g, by)
		if lead == nil {
			return false
		}
		at := lead.member.in(g)
		if err := s.admission(g, at).Remove(ctx, name); err != nil {
			return false
		}
		is, index := raftmodel.Membership{Replica: at}.Members()
		out = out && index <= (raftmodel.Membership{Replica: at}).Committed() && !slices.ContainsFunc(is, func(m raftfsm.Member) bool { return m.ID == name })
	}
	return out
}

// mayRemove asks package cluster whether the others have a majority without a node.
func (s *site) mayRemove(by *member, name string) bool {
	answers := map[string]bool{by.name: true}
	for _, r := range s.w.replicas {
		answers[r.member.name] = r.member == by || by.reaches(r.member)
	}
	for _, g := range []*raftmodel.Model{s.model, s.w.model} {
		is, _ := raftmodel.Membership{Replica: by.in(g)}.Members()
		if cluster.MajorityWithout(name, is, answers) != nil {
			return false
		}
	}
	return true
}

// step takes the node's process further to where it serves.
func (m *member) step() {
	s := m.s
	switch m.phase {
	case returning:
		m.ask()
	case replacing:
		if by := s.anyServing(m); by != nil && (s.removed[m.wants] || s.mayRemove(by.member, m.wants)) && s.remove(by.member, m.wants) {
			s.w.event("%s: the name %s is removed", m.name, m.wants)
			s.w.reach("came back under another name")
			m.wants, m.phase = "", keyless
		}
	case keyless:
		m.takeKeys()
	case following:
		if m.join(groupShard, s.w.model) {
			m.takeShard()
		}
	case stopped, serving:
	}
}

func (s *site) anyServing(from *member) *replica {
	for _, r := range s.w.replicas {
		if r.member.phase == serving && from.reaches(r.member) {
			return r
		}
	}
	return nil
}

// takeKeys follows keygroup.Group.CatchUp; then the shard's replica is opened.
func (m *member) takeKeys() {
	s := m.s
	if !m.join(groupKeys, s.model) {
		return
	}
	if m.known == 0 {
		lead := s.leader(s.model, m)
		if lead == nil {
			return
		}
		index, err := lead.member.keys.LinearizableIndex(ctx)
		if err != nil {
			return
		}
		m.known = index
	}
	if m.keys.Applied() < m.known {
		return
	}
	for _, id := range s.ended[:m.gone] {
		if _, err := m.r.keys.KeyByID(id); !errors.Is(err, keyring.ErrDestroyed) {
			s.w.fail("%s has taken in the keys, and still has one that was destroyed before it started: %v", m.name, err)
		}
	}
	if m.r.down && !m.r.startShard() {
		return
	}
	m.phase, m.known = following, 0
}

// takeShard follows route.Router.Linear: the node serves when it has what was acknowledged
// before.
func (m *member) takeShard() {
	s := m.s
	lead := s.leader(s.w.model, m)
	if lead == nil || lead.host == nil || lead.host.phase != "open" || lead.host.w.Settled(ended()) != nil {
		return
	}
	index, err := lead.raft.LinearizableIndex(ctx)
	if err != nil || lead.raft.Term() != lead.host.w.Term() || lead.raft.Applied() < index || m.r.state.Cursor().Seq < lead.state.Cursor().Seq {
		return
	}
	m.phase = serving
	s.w.event("%s serves", m.name)
	s.w.reach("node serves again")
}

// ask follows cluster.Returning.MayTakePart.
func (m *member) ask() {
	s, w := m.s, m.s.w
	files, promised := map[string]raftfsm.Inspection{}, map[string]raftfsm.Promise{}
	var facts cluster.Facts
	facts.ID, facts.Incarnation = m.id, fmt.Sprint(m.times)
	for name, g := range map[string]*raftmodel.Model{groupKeys: s.model, groupShard: w.model} {
		is, _ := raftmodel.Membership{Replica: m.in(g)}.Members()
		files[name] = raftfsm.Inspection{Members: is, Log: true}
	}
	var err error
	if promised[groupKeys], err = (raftmodel.Membership{Replica: m.keys}).Promised(m.disk()); err == nil {
		promised[groupShard], err = raftmodel.Membership{Replica: m.r.raft}.Promised(m.disk())
	}
	if m.cam.picture != nil {
		m.r.crash()
		return
	}
	w.must(err)
	for name := range s.removed {
		facts.Removed = append(facts.Removed, name)
	}
	slices.Sort(facts.Removed)
	answers, others, takePart, forgotten := map[string]bool{m.name: true}, 0, 0, false
	for _, r := range w.replicas {
		facts.Members = append(facts.Members, cluster.Member{Name: r.member.name, ID: r.member.id})
		if r == m.r {
			continue
		}
		others++
		if !m.reaches(r.member) {
			continue
		}
		answers[r.member.name] = true
		if f, forgot := r.member.saw.Forgotten(m.name, promised); forgot {
			w.event("%s promised %+v in the group %s, as %s saw, and its files tell %+v", m.name, f.Had, f.Group, r.member.name, promised[f.Group])
			forgotten = true
		}
		if r.member.phase == serving {
			takePart++
		}
	}
	switch v, _ := facts.Judge(files, forgotten, answers, takePart, others); {
	case v == cluster.ComeBackEmpty:
		w.event("%s has forgotten a promise", m.name)
		w.reach("node that has forgotten a promise")
		s.comeBack(m.r)
	case v == cluster.TakePart, v == cluster.TakePartLater && s.rng.IntN(10) == 0:
		if err := m.keys.Restart(m.keysMachine(), m.disk()); err != nil {
			m.startFailed(err)
			return
		}
		if m.phase = keyless; m.wants != "" {
			m.phase = replacing
		}
	}
}

// startFailed takes why a replica did not start: the process ends.
func (m *member) startFailed(err error) {
	switch {
	case errors.Is(err, raftfsm.ErrStorage):
		m.s.w.bite("error of Raft's disk at the start")
	case !errors.Is(err, raftmodel.ErrPower):
		m.s.w.must(err)
	}
	m.r.crash()
}

// comeBack lets a node begin again with nothing, under another incarnation.
func (s *site) comeBack(old *replica) {
	m := old.member
	s.forget(old)
	r := s.newNode(m.id, m.times+1, true)
	r.member.wants = m.name
	s.enter(r, replacing)
}

// forget ends a node for good.
func (s *site) forget(r *replica) {
	w := s.w
	if r.member.phase != stopped {
		r.crash()
	}
	s.model.Retire(r.member.keys)
	w.model.Retire(r.raft)
	w.reads = slices.DeleteFunc(w.reads, func(q *read) bool { return q.r == r || q.to == r })
	w.replicas = slices.DeleteFunc(w.replicas, func(o *replica) bool { return o == r })
	if w.alone == r {
		w.alone = nil
	}
	delete(s.copies, r.member.name)
	w.must(errors.Join(r.state.Close(), r.keys.Close()))
}

// enter starts a node that is in no group yet.
func (s *site) enter(r *replica, at phase) {
	w, m := s.w, r.member
	var err error
	m.keys, err = s.model.Add(m.name, m.keysMachine(), m.disk())
	w.must(err)
	r.raft, err = w.model.Add(m.name, r, m.disk())
	w.must(err)
	r.id = raftmodel.Membership{Replica: r.raft}.Number()
	if (raftmodel.Membership{Replica: m.keys}).Number() != r.id {
		w.fail("%s has the numbers %d and %d", m.name, r.id, raftmodel.Membership{Replica: m.keys}.Number())
	}
	w.replicas = append(w.replicas, r)
	m.phase, m.gone = at, len(s.ended)
	w.event("%s is %d, and begins with nothing", m.name, r.id)
}

// start begins a process with what is on the disk.
func (m *member) start() {
	m.phase, m.known, m.gone = returning, 0, len(m.s.ended)
}
