package raftmodel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"mneme/internal/raftfsm"
)

// site is a group whose membership changes.
type site struct {
	t     *testing.T
	m     *Model
	lists map[string]*list
}

func newSite(t *testing.T, seed uint64, n int, faults Faults) *site {
	m, lists := newModel(t, seed, n, faults)
	s := &site{t: t, m: m, lists: map[string]*list{}}
	for i, l := range lists {
		s.lists[m.Replica(i).ID()] = l
	}
	return s
}

func (s *site) add(name string) *Replica {
	l := &list{fs: vfs.NewMem()}
	s.lists[name] = l
	r, err := s.m.Add(name, l, l.fs)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// change makes a change until it is done.
func (s *site) change(change func(Membership) *raftfsm.Future) {
	s.t.Helper()
	for {
		f := change(Membership{mustLead(s.t, s.m)})
		if err := s.m.Run(50_000, func() bool { return classify(s.t, f) != open }); err != nil {
			s.t.Fatal(err)
		}
		if classify(s.t, f) == done {
			return
		}
		if err := s.m.Step(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// alike wants all members to come to one state.
func (s *site) alike() {
	s.t.Helper()
	var f *raftfsm.Future
	s.change(func(c Membership) *raftfsm.Future { f = c.Propose(context.Background(), []byte("more")); return f })
	if err := s.m.Run(100_000, func() bool {
		lead := s.m.Leader()
		return lead != nil && !slices.ContainsFunc(append(lead.peers(), lead.id), func(id int) bool { return s.m.replicas[id].applied != lead.last() })
	}); err != nil {
		s.t.Fatal(err)
	}
	lead := s.m.Leader()
	for _, id := range lead.peers() {
		if a, b := s.lists[lead.ID()].State, s.lists[s.m.replicas[id].ID()].State; !reflect.DeepEqual(a, b) {
			s.t.Fatalf("replicas differ:\n%+v\n%+v", a, b)
		}
	}
}

func TestMembersChange(t *testing.T) {
	s := newSite(t, 3, 3, Faults{})
	s.alike()
	added := s.add("late")
	s.change(func(c Membership) *raftfsm.Future { return c.AddNonvoter("late", "", 0) })
	s.alike()
	if added.hasVote(added.id) || added.quorum() != 2 {
		t.Fatalf("a non-voter votes: %+v", added.members())
	}
	added.Elect()
	if added.role != follower {
		t.Fatal("a non-voter stands for election")
	}
	s.change(func(c Membership) *raftfsm.Future { return c.Promote("late", "", 0) })
	s.alike()
	if added.quorum() != 3 {
		t.Fatalf("a quorum of four is %d", added.quorum())
	}
	old := mustLead(t, s.m)
	s.change(func(c Membership) *raftfsm.Future { return c.Remove(old.ID(), 0) })
	s.alike()
	if now := s.m.Leader(); now == old || now.quorum() != 2 {
		t.Fatalf("%s leads, a quorum is %d", now.ID(), now.quorum())
	}
	old.Elect()
	before := mustLead(t, s.m).term
	if old.hasVote(old.id) {
		t.Fatal("the one that was removed has not heard of it: take a seed with which it does")
	}
	if old.role != follower || s.m.Leader().term != before {
		t.Fatal("one that was removed stands for election")
	}
}

// One that joins behind what the leader has cut from its log gets the membership with the
// snapshot, and has it after a restart.
func TestJoinerGetsTheMembersWithTheSnapshot(t *testing.T) {
	s := newSite(t, 4, 3, Faults{})
	s.alike()
	late := s.add("other")
	s.m.Isolate(late.id)
	s.change(func(c Membership) *raftfsm.Future { return c.AddNonvoter("other", "", 0) })
	if err := mustLead(t, s.m).Snapshot(); err != nil {
		t.Fatal(err)
	}
	s.m.Heal()
	s.alike()
	if late.base.index == 0 || len(late.members().Members) != 4 {
		t.Fatalf("base %d, members %+v", late.base.index, late.members())
	}
	late.Crash()
	s.lists["other"] = s.lists["other"].crash()
	if err := late.Restart(s.lists["other"], s.lists["other"].fs); err != nil {
		t.Fatal(err)
	}
	if len(late.members().Members) != 4 {
		t.Fatalf("after a restart the members are %+v", late.members())
	}
	s.alike()
}

// A leader that cannot commit a change has it cut from its log, and goes by the one before.
func TestAChangeThatIsNotCommittedIsTakenBack(t *testing.T) {
	s := newSite(t, 5, 3, Faults{})
	s.alike()
	old := mustLead(t, s.m)
	s.m.Isolate(old.id)
	f := Membership{old}.Remove(s.m.Replica((old.id+1)%3).ID(), 0)
	if again := (Membership{old}).Remove("n0", 0); classify(t, again) != refused {
		t.Fatal("two changes at a time")
	}
	if err := s.m.Run(20_000, func() bool { return s.m.Leader() != old }); err != nil {
		t.Fatal(err)
	}
	s.m.Heal()
	s.alike()
	if classify(t, f) != unknown || len(old.members().Members) != 3 {
		t.Fatalf("class %d, members %+v", classify(t, f), old.members())
	}
}

// A leader whose log alone has its own removal stands for no election, as the raft library
// has it, and votes for nobody whose log ends before: where its vote is needed, nobody is
// elected any more. So a leader must not remove itself.
func TestALeaderThatRemovesItself(t *testing.T) {
	s := newSite(t, 6, 3, Faults{})
	s.alike()
	s.change(func(c Membership) *raftfsm.Future {
		return c.Remove(s.m.Replica((c.id+1)%3).ID(), 0)
	})
	lead := mustLead(t, s.m)
	s.m.Isolate(lead.id)
	Membership{lead}.Remove(lead.ID(), 0)
	lead.StepDown()
	s.m.Heal()
	if err := s.m.Run(20_000, func() bool { return s.m.Leader() != nil }); !errors.Is(err, ErrSteps) {
		t.Errorf("somebody leads: %v", err)
	}
}

// Whatever happens while members come and go, no broken rule is met, and those that are
// left are alike.
func TestStormOfMembers(t *testing.T) {
	changed := 0
	for run := range *runsFlag {
		seed := uint64(run) + 1
		s := newSite(t, seed, 3, Faults{Drop: 100, Duplicate: 100, Elections: 10, Disk: 1})
		rng := rand.New(rand.NewPCG(seed, 9))
		for i := range 3000 {
			r := s.m.live[rng.IntN(len(s.m.live))]
			switch rng.IntN(60) {
			case 0, 1, 2, 3:
				r.Propose(context.Background(), []byte(fmt.Sprint("c", i)))
			case 4, 5:
				if err := r.Snapshot(); err != nil && !r.down && !errors.Is(err, raftfsm.ErrNotCaughtUp) {
					t.Fatal(err)
				}
			case 6:
				s.m.Isolate(r.id)
			case 7, 8, 9:
				s.m.Heal()
			case 10:
				if !r.down {
					r.Crash()
				}
			case 11, 12, 13:
				s.restart()
			case 14:
				if len(s.m.live) < 6 {
					s.add(fmt.Sprint("m", i))
				}
			case 15, 16, 17, 18:
				if classify(t, s.anyChange(r, rng)) == open {
					changed++
				}
			default:
				if err := s.m.Step(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		s.m.Heal()
		s.m.opt.Faults = Faults{}
		s.restart()
		s.alike()
		if s.m.truth.err != nil {
			t.Fatalf("seed %d: %v", seed, s.m.truth.err)
		}
	}
	if changed < 100 {
		t.Errorf("%d changes", changed)
	}
}

func (s *site) restart() {
	for _, r := range s.m.live {
		if r.DiskFailed() && !r.down {
			r.Crash()
		}
		if r.down {
			s.lists[r.name] = s.lists[r.name].crash()
			if err := r.Restart(s.lists[r.name], s.lists[r.name].fs); err != nil && !errors.Is(err, raftfsm.ErrStorage) {
				s.t.Fatal(err)
			}
		}
	}
}

// anyChange lets a replica that leads change the place of another one.
func (s *site) anyChange(lead *Replica, rng *rand.Rand) *raftfsm.Future {
	who, c := s.m.live[rng.IntN(len(s.m.live))], Membership{lead}
	switch members, index := c.Members(); {
	case !lead.hasVote(who.id) && who.last() < lead.commit: // whose vote nobody may need yet
		return c.AddNonvoter(who.ID(), "", index)
	case !lead.hasVote(who.id) || len(members) < 3:
		return c.Promote(who.ID(), "", 0)
	case who == lead:
		// TestALeaderThatRemovesItself says why not.
		lead.StepDown()
		return lead.Propose(context.Background(), nil)
	default:
		return c.Remove(who.ID(), index)
	}
}
