// Package raftmodel is a Raft group for simulations: the replicas of a machine in
// one process, without goroutines and without real time. A seeded source of
// randomness decides what happens next, so that a run can be repeated.
//
// Its job: to give whoever stands above a [raftfsm.Group] the same calls (propose,
// leadership, linearizable index, snapshot) and everything that may go wrong below
// them. Messages are lost, repeated and reordered. Leaders are deposed with commands
// under way, so that outcomes are unknown. Followers lag, suffixes are never
// committed, replicas crash, and disks fail. On one voter that does not sync, a loss
// of power takes committed entries.
//
// What decides on one replica is a group's own code: its store of entries, term and
// vote, its snapshots, what stands between Raft and the machine (raftfsm.Local), and
// the rule of linearizable reads (raftfsm.ReadIndex). Only the rules that the raft
// library has, and the network, are modelled.
//
// Invariants, checked at every step (see check.go): a term has one leader; logs
// that agree on an entry agree on all before it; what was committed stays.
//
// Not its job: files and formats, timing.
package raftmodel

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/raftfsm"
)

// Options configures a model.
type Options struct {
	// Seed decides everything that is not called for.
	Seed uint64
	// Machines are the replicas' states; their number is the group's size.
	Machines []raftfsm.Machine
	// Disks are where the replicas keep their snapshots, one for each machine,
	// which makes its checkpoints there.
	Disks []vfs.FS
	// Dir is the folder on those disks; "" = /raft.
	Dir string
	// Ready, if not nil, says whether a replica's machine can take entries now.
	Ready func(id int, entries []raftfsm.Entry) bool
	// Saw, if not nil, hears what a replica sees another one promise, before it counts
	// that itself.
	Saw func(witness, replica *Replica, p raftfsm.Promise)
	// PowerLost, if not nil, is asked after each handling of a snapshot's files whether
	// the replica lost its power meanwhile. The owner takes its disk back to then.
	PowerLost func(id int) bool
	// Faults says how often something goes wrong; the zero value is a network
	// that loses and repeats nothing, and a leader that nobody challenges.
	Faults Faults
}

// Faults are chances in a thousand.
type Faults struct {
	Drop, Duplicate int // of a message that is delivered
	Elections       int // of a step: a replica stands for election for no reason
	Disk            int // of a write to a replica's log or vote: an error of the device
}

// Model is a group. It is not safe for concurrent use: whoever drives it calls
// Step between the calls to its replicas.
type Model struct {
	opt      Options
	rng      *rand.Rand
	replicas []*Replica
	live     []*Replica // those that are not retired
	ids      map[string]int
	founders raftfsm.Membership
	network  []message
	cut      map[[2]int]bool
	restores int // snapshots that were installed
	late     int // snapshots that came when the replica had more
	truth    truth
}

// New makes a group whose replicas have empty logs and start as followers. Machines that
// stand at an index stand at the same one, and the logs begin there.
func New(opt Options) *Model {
	m := &Model{opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 1)), cut: map[[2]int]bool{}, truth: newTruth(), ids: map[string]int{}}
	for i := range opt.Machines {
		r := m.make(fmt.Sprintf("n%d", i))
		m.live = append(m.live, r)
		m.founders.Members = append(m.founders.Members, raftfsm.Member{ID: r.name, Addr: r.name, Voter: true})
	}
	for i, r := range m.replicas {
		if err := r.found(opt.Machines[i], opt.Disks[i]); err != nil {
			m.truth.fail("%v", err)
		}
	}
	return m
}

func (m *Model) make(name string) *Replica {
	r := &Replica{name: name, leads: make(chan raftfsm.Leadership, leadershipQueue)}
	r.journal = journal{m: m, id: len(m.replicas), disk: &raftfsm.MemDisk{NoSync: m.alone(), Fails: m.diskFails}}
	m.ids[name] = r.id
	m.replicas = append(m.replicas, r)
	return r
}

func (m *Model) diskFails() bool { return m.chance(m.opt.Faults.Disk) }

// alone: the group is a single voter for ever.
func (m *Model) alone() bool { return len(m.opt.Machines) == 1 }

// Replica returns the replica with a number from 0 on.
func (m *Model) Replica(i int) *Replica { return m.replicas[i] }

// Leader returns a replica whose term has begun, the newest if there are several
// that believe it, or nil.
func (m *Model) Leader() *Replica {
	return m.LeaderFor(func(*Replica) bool { return true })
}

// LeaderFor is Leader among some replicas.
func (m *Model) LeaderFor(ok func(*Replica) bool) *Replica {
	var lead *Replica
	for _, r := range m.live {
		if r.begun && (lead == nil || r.term > lead.term) && ok(r) {
			lead = r
		}
	}
	return lead
}

// Installs returns how many snapshots were installed, and how many came late: the
// replica had more by then.
func (m *Model) Installs() (done, late int) { return m.restores, m.late }

// Cut stops all messages between two replicas; Heal lets all pass again.
func (m *Model) Cut(a, b int) { m.cut[[2]int{a, b}], m.cut[[2]int{b, a}] = true, true }

// Isolate cuts a replica off from all others.
func (m *Model) Isolate(a int) {
	for b := range m.replicas {
		if a != b {
			m.Cut(a, b)
		}
	}
}

// SetFaults changes how often something goes wrong.
func (m *Model) SetFaults(f Faults) { m.opt.Faults = f }

// Connected reports whether messages pass between two replicas, where both run.
func (m *Model) Connected(a, b *Replica) bool { return !m.cut[[2]int{a.id, b.id}] }

// Whole reports whether no replicas are cut off from each other.
func (m *Model) Whole() bool { return len(m.cut) == 0 }

// Heal ends all cuts.
func (m *Model) Heal() { clear(m.cut) }

// Step lets one thing happen. The error is the first broken invariant.
func (m *Model) Step() error {
	r := m.live[m.rng.IntN(len(m.live))]
	switch {
	case m.chance(m.opt.Faults.Elections):
		r.campaign()
	case len(m.network) > 0 && m.rng.IntN(3) > 0:
		m.deliver()
	case r.role == leader && m.rng.IntN(2) == 0:
		r.replicate()
	case r.applied < r.commit:
		r.applySome(1 + m.rng.IntN(4))
	case r.disk.NoSync && m.rng.IntN(4) == 0:
		_ = r.disk.Sync()
	case m.leaderless() && (len(m.network) == 0 || m.rng.IntN(40) == 0): // or nobody would ever win
		r.campaign()
	}
	return m.truth.err
}

// Run takes up to n steps until done says so.
func (m *Model) Run(n int, done func() bool) error {
	for range n {
		if done() {
			return nil
		}
		if err := m.Step(); err != nil {
			return err
		}
	}
	if !done() {
		return fmt.Errorf("%w: %d steps, seed %d", ErrSteps, n, m.opt.Seed)
	}
	return nil
}

// ErrSteps: the steps did not suffice.
var ErrSteps = errors.New("raft model: not done in so many steps")

func (m *Model) chance(perMille int) bool { return perMille > 0 && m.rng.IntN(1000) < perMille }

// leaderless: no replica leads that a majority can hear.
func (m *Model) leaderless() bool {
	for _, r := range m.live {
		if r.role == leader && r.reach() >= r.quorum() {
			return false
		}
	}
	return true
}

func (m *Model) send(msg message) {
	if !m.cut[[2]int{msg.from, msg.to}] {
		m.network = append(m.network, msg)
	}
}

// deliver takes any message from the network: the order is lost.
func (m *Model) deliver() {
	i := m.rng.IntN(len(m.network))
	msg := m.network[i]
	if msg.kind == install && m.rng.IntN(5) > 0 {
		return // it is long, and takes its time
	}
	again := m.opt.Faults.Duplicate
	if msg.kind == install {
		again *= 8
	}
	if !m.chance(again) {
		m.network[i] = m.network[len(m.network)-1]
		m.network = m.network[:len(m.network)-1]
	}
	to := m.replicas[msg.to]
	if to.down || m.cut[[2]int{msg.from, msg.to}] || m.chance(m.opt.Faults.Drop) {
		return
	}
	to.receive(msg)
}
