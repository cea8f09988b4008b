package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"mneme/internal/cluster"
	"mneme/internal/ingest"
	"mneme/internal/keyring"
	"mneme/internal/raftfsm"
	"mneme/internal/raftfsm/raftmodel"
)

// A cluster: nodes with keyrings of their own, which are the machines of a second Raft
// group. Nodes come, go, and come back with nothing under another name. What decides is
// the code of packages cluster, keygroup, keyring and replica; who knows what of whom is
// simpler than it is: that a node was removed, all hear at once.

// site is what the nodes of a cluster have together. Its choices are drawn from a stream
// of their own, so that they leave those of the other actors as they are.
type site struct {
	w       *world
	rng     *rand.Rand
	model   *raftmodel.Model // of the group of keys
	least   int              // nodes, at least and at most
	most    int
	nodes   int             // that there ever were
	removed map[string]bool // names
	leaving *replica        // is stopped, and to be removed
	copies  map[string]*copied

	made   map[keyring.KeyID]bool // keys that the group agreed on
	tables map[uint64][32]byte    // what a keyring at an index holds
	ended  []keyring.KeyID        // keys whose destruction was acknowledged
	people int                    // whose memories may be erased
}

// phase is how far a node's process has come.
type phase int

const (
	stopped   phase = iota
	returning       // asks what the others remember of it
	replacing       // waits until its former name is removed
	keyless         // takes in the keys
	following       // takes in the shard
	serving
)

// member is what a replica's node has as one of several.
type member struct {
	s     *site
	r     *replica
	id    string
	name  string // <id>-<incarnation>
	times int    // incarnations
	keys  *raftmodel.Replica
	saw   *cluster.Promises
	phase phase
	wants string // former name that is to be removed
	cam   camera
	gone  int // destructions that were acknowledged before it started
	known uint64
	owes  bool // its writer has keys to destroy

	checked uint64 // up to where the state's frames were opened
}

// The names of the Raft groups.
const (
	groupKeys  = "keys"
	groupShard = "0"
)

const keysDir = "/raftkeys"

// newSite makes the nodes of a cluster, which begin as its founders with equal keyrings.
func newSite(w *world, sh shape) {
	s := &site{w: w, rng: rand.New(rand.NewPCG(w.seed, 2)), least: 3, most: sh.nodes + 1, removed: map[string]bool{}, copies: map[string]*copied{},
		made: map[keyring.KeyID]bool{}, tables: map[uint64][32]byte{}}
	s.most = min(s.most, 5)
	w.site = s
	keys, data := raftmodel.Options{Seed: w.seed + 1, Dir: keysDir}, raftmodel.Options{Seed: w.seed}
	var first []byte
	for i := range sh.nodes {
		r := s.newNode(fmt.Sprint("n", i), 1, i > 0)
		w.replicas = append(w.replicas, r)
		if i == 0 {
			var err error
			first, err = r.keys.Machine().Snapshot()
			w.must(err)
			s.made[r.keys.Cluster().ID()] = true // they all begin with it
		} else {
			w.must(r.keys.Machine().Restore(first))
		}
		r.id, r.member.phase = i, serving
		keys.Machines, keys.Disks = append(keys.Machines, r.member.keysMachine()), append(keys.Disks, r.member.disk())
		data.Machines, data.Disks = append(data.Machines, r), append(data.Disks, r.member.disk())
	}
	keys.Saw, data.Saw = s.sees(groupKeys), s.sees(groupShard)
	keys.PowerLost, data.PowerLost = s.powerLost, s.powerLost
	data.Ready = func(id int, entries []raftfsm.Entry) bool { return s.at(id).member.ready(entries) }
	s.model, w.model = raftmodel.New(keys), raftmodel.New(data)
	for i, r := range w.replicas {
		r.raft, r.member.keys = w.model.Replica(i), s.model.Replica(i)
		r.member.name = r.raft.ID()
	}
	s.nodes = sh.nodes
}

// newNode makes a node with an empty disk.
func (s *site) newNode(id string, times int, blank bool) *replica {
	r := &replica{w: s.w, fs: newMem()}
	m := &member{s: s, r: r, id: id, name: cluster.Name(id, fmt.Sprint(times)), times: times, saw: cluster.NewPromises()}
	m.cam.of = r
	r.member = m
	r.open()
	m.openKeys(true, blank)
	return r
}

// at is the node whose replicas have a number.
func (s *site) at(id int) *replica {
	for _, r := range s.w.replicas {
		if r.raft != nil && r.id == id {
			return r
		}
	}
	return nil
}

func (s *site) named(name string) *replica {
	for _, r := range s.w.replicas {
		if r.member.name == name {
			return r
		}
	}
	return nil
}

// sees notes promises of a group where they are seen.
func (s *site) sees(group string) func(witness, other *raftmodel.Replica, p raftfsm.Promise) {
	return func(witness, other *raftmodel.Replica, p raftfsm.Promise) {
		if r := s.named(witness.ID()); r != nil {
			r.member.saw.Saw(other.ID(), group, p)
		}
	}
}

// leader is a node that leads a group and that another one reaches.
func (s *site) leader(group *raftmodel.Model, from *member) *replica {
	lead := group.LeaderFor(func(o *raftmodel.Replica) bool {
		r := s.named(o.ID())
		return r != nil && (r.member == from || from.reaches(r.member))
	})
	if lead == nil {
		return nil
	}
	return s.named(lead.ID())
}

// members is a replica of a group as package cluster changes its members. A change that
// is not committed soon goes on without whoever asked for it.
type members struct {
	s *site
	m *raftmodel.Model
	raftmodel.Membership
}

var _ cluster.Group = members{}

func (g members) Leader() (id, addr string) { return g.ID(), g.ID() }

func (g members) await(f *raftfsm.Future) error {
	for range 1 + g.s.rng.IntN(200) {
		if answered(f) {
			break
		}
		g.s.w.must(g.m.Step())
	}
	if !answered(f) {
		return errLater
	}
	_, _, err := f.Wait(ctx)
	return err
}

func (g members) AddNonvoter(_ context.Context, id, addr string, prev uint64) error {
	g.s.w.reach("non-voter added")
	return g.await(g.Membership.AddNonvoter(id, addr, prev))
}

func (g members) Promote(_ context.Context, id, addr string, prev uint64) error {
	g.s.w.reach("promoted")
	return g.await(g.Membership.Promote(id, addr, prev))
}

func (g members) Remove(_ context.Context, id string, prev uint64) error {
	g.s.w.reach("removed from a group")
	return g.await(g.Membership.Remove(id, prev))
}

func (s *site) admission(g *raftmodel.Model, r *raftmodel.Replica) *cluster.Admission {
	return cluster.NewAdmission(members{s, g, raftmodel.Membership{Replica: r}}, func(name string) bool { return s.removed[name] })
}

// whole reports whether every node serves, and nobody comes or goes.
func (s *site) whole() bool {
	return s.leaving == nil && !slices.ContainsFunc(s.w.replicas, func(r *replica) bool { return r.member.phase != serving })
}

// step lets the group of keys go on, and what nodes do beside it.
func (s *site) step() {
	w := s.w
	if s.rng.IntN(2) == 0 {
		w.must(s.model.Step())
	}
	r := w.replicas[s.rng.IntN(len(w.replicas))]
	m := r.member
	switch {
	case s.rng.IntN(8) == 0:
		m.tell()
	case m.phase == stopped && (!w.faulty || s.rng.IntN(30) == 0):
		r.restart()
	case m.phase != serving:
		m.step()
	case m.owes && s.rng.IntN(8) == 0:
		m.destroy()
	}
	if s.leaving != nil {
		if by := s.anyServing(m); by != nil && s.remove(by.member, s.leaving.member.name) {
			w.event("%s is removed", s.leaving.member.name)
			w.reach("node removed")
			s.forget(s.leaving)
			s.leaving = nil
		}
	}
}

// after follows what the group of keys did.
func (s *site) after() {
	w := s.w
	for _, r := range slices.Clone(w.replicas) {
		m := r.member
		for len(m.keys.Leadership()) > 0 {
			<-m.keys.Leadership()
		}
		if m.phase == stopped {
			continue
		}
		if m.cam.picture != nil || m.keys.Down() && m.phase > replacing || r.raft.Down() && m.phase > keyless {
			w.bite("power lost while a snapshot was handled")
			r.crash()
			continue
		}
		if err := m.keys.Halted(); err != nil {
			w.fail("%s halts the group of keys: %v", m.name, err)
		}
		if m.keys.DiskFailed() && !r.failed {
			r.failed = true
			w.bite("error of Raft's disk")
		}
		if !r.down {
			m.opens()
		}
	}
}

// settled reports whether all nodes serve, with equal keyrings that have nothing that ended.
func (s *site) settled() bool {
	if !s.whole() {
		return false
	}
	for _, r := range s.w.replicas {
		if r.keys.Machine().ChangedAt() != s.w.replicas[0].keys.Machine().ChangedAt() && r.keys.Machine().EndedAt() != s.w.replicas[0].keys.Machine().EndedAt() {
			return false
		}
		v := r.state.View()
		left, err := ingest.EndedKeys(v, r.keys)
		s.w.must(errors.Join(err, v.Close()))
		if left > 0 {
			return false
		}
	}
	return true
}
