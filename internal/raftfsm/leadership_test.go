package raftfsm

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// Nobody listens while leadership wanders; afterwards every term is told, on each
// replica in order, begun and ended in turn, and no term has two leaders.
func TestLeadershipLosesNoTransition(t *testing.T) {
	c := openCluster(t, 3)
	c.join(t, 1)
	c.join(t, 2)
	ctx := testCtx(t)
	led := map[uint64]string{} // by term, as the leader's own begun term says it
	for range 4 {
		lead := c.leader(t)
		_, term, _ := lead.group.leads.get()
		if term == 0 {
			continue // it was deposed in between
		}
		led[term] = lead.group.opt.ID
		if err := lead.group.TransferLeadership(ctx); err != nil {
			t.Log(err) // too slow a machine; another one may lead nevertheless
		}
	}
	last := c.leader(t)
	index := last.put(t, "a=1")
	c.same(t, index)
	var mu sync.Mutex
	told := map[uint64]string{}
	var read sync.WaitGroup
	for _, s := range c.shards {
		read.Go(func() {
			var open uint64
			for l := range s.group.Leadership() {
				mu.Lock()
				switch l.Kind {
				case TermBegan:
					if open != 0 || told[l.Term] != "" || l.LeaderID != s.group.opt.ID {
						t.Errorf("%s: %+v while term %d is open, led by %q", s.group.opt.ID, l, open, told[l.Term])
					}
					open, told[l.Term] = l.Term, l.LeaderID
				case TermEnded:
					if open != l.Term {
						t.Errorf("%s: %+v while term %d is open", s.group.opt.ID, l, open)
					}
					open = 0
				case LeaderKnown:
					if l.LeaderID == s.group.opt.ID {
						t.Errorf("%s: %+v", s.group.opt.ID, l)
					}
				}
				mu.Unlock()
			}
		})
	}
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		for term := range led {
			if told[term] == "" {
				return false
			}
		}
		return true
	}
	for !all() && ctx.Err() == nil {
		runtime.Gosched()
	}
	for _, s := range c.shards {
		s.close(t)
	}
	read.Wait()
	for term, id := range led {
		if told[term] != id {
			t.Errorf("term %d of %s was told as %q: %v", term, id, told[term], told)
		}
	}
	if len(led) < 2 {
		t.Fatalf("leadership did not wander: %v", led)
	}
}

// A follower that opens learns who leads without waiting for anything.
func TestFollowerLearnsWhoLeads(t *testing.T) {
	c := openCluster(t, 2)
	c.join(t, 1)
	for l := range c.shards[1].group.Leadership() {
		if l.Kind == LeaderKnown && l.LeaderID == "n1" && l.LeaderAddr == "addr-0" && l.Term == c.shards[0].group.Term() {
			return
		}
		t.Logf("%+v", l)
	}
}

// A term that is over must not begin late, nor begin twice.
func TestTermBeginsOnceAndInTime(t *testing.T) {
	l := newLeadership()
	self := func(term uint64) Leadership { return Leadership{Kind: TermBegan, Term: term, LeaderID: "me"} }
	l.observeState(true, 3)
	l.observeState(false, 3)
	l.begin(3, self(3))
	l.observeLeader(4, "other", "x")
	l.observeLeader(4, "other", "x")
	l.observeState(true, 5)
	l.begin(3, self(3))
	l.begin(5, self(5))
	l.begin(5, self(5))
	l.observeState(false, 5)
	l.observeLeader(4, "other", "x")
	l.catchUp(func() (bool, Leadership) { return true, Leadership{Term: 9} })
	want := "[{leader known 4 other x} {term began 5 me } {term ended 5  } {leader known 4 other x}]"
	if got := fmt.Sprint(l.queue); got != want {
		t.Fatalf("told %s\nwant %s", got, want)
	}
	fresh := newLeadership()
	fresh.catchUp(func() (bool, Leadership) { return false, Leadership{Kind: LeaderKnown, Term: 2, LeaderID: "a"} })
	if len(fresh.queue) != 1 {
		t.Fatalf("what was before the observer is lost: %v", fresh.queue)
	}
}
