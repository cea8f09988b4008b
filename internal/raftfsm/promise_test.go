package raftfsm

import (
	"path/filepath"
	"testing"
)

func TestPromisesKept(t *testing.T) {
	for _, c := range []struct {
		name        string
		files, made Promise
		keeps       bool
	}{
		{"nothing promised", Promise{}, Promise{}, true},
		{"files of an earlier term", Promise{Term: 2, Voted: true, Index: 9}, Promise{Term: 3}, false},
		{"files of a later term, whose leader replaced entries", Promise{Term: 4}, Promise{Term: 3, Voted: true, Index: 9}, true},
		{"a vote forgotten", Promise{Term: 3, Index: 9}, Promise{Term: 3, Voted: true}, false},
		{"an entry forgotten", Promise{Term: 3, Voted: true, Index: 8}, Promise{Term: 3, Index: 9}, false},
		{"an entry that was not seen", Promise{Term: 3, Index: 10}, Promise{Term: 3, Index: 9}, true},
	} {
		if got := c.files.Keeps(c.made); got != c.keeps {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := (Promise{Term: 3, Voted: true}).And(Promise{Term: 3, Index: 7}).And(Promise{Term: 2, Index: 9}); got != (Promise{3, true, 7}) {
		t.Errorf("%+v", got)
	}
}

// Whoever counts a vote or an entry of another replica has seen it promised, followers
// have seen what their leader holds, and what a replica's files tell keeps all of it.
func TestPromisesAreSeen(t *testing.T) {
	net := newPorts(t, 3)
	c := openClusterOver(t, net, 3)
	c.join(t, 1)
	c.join(t, 2)
	first := c.leader(t)
	first.putMany(t, 0, 200)
	if err := first.group.TransferLeadership(testCtx(t)); err != nil {
		t.Fatal(err)
	}
	lead := c.leader(t)
	at := lead.put(t, "last=1")
	term := lead.group.Stats().Term
	for i := range c.shards {
		if err := c.shards[i].group.WaitApplied(testCtx(t), at); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range c.shards {
		s.close(t)
	}
	net.mu.Lock()
	defer net.mu.Unlock()
	voted, acked, led := 0, 0, 0
	for by, p := range net.promised {
		if p.Term != term {
			continue
		}
		if by[0] == lead.group.opt.ID && p.Voted {
			voted++
		}
		if by[0] == lead.group.opt.ID && p.Index >= at {
			acked++
		}
		if by[1] == lead.group.opt.ID && p.Index >= at {
			led++
		}
	}
	if voted == 0 || acked == 0 || led == 0 {
		t.Errorf("of term %d to %d: %d votes, %d acknowledged, %d heard it from the leader: %v", term, at, voted, acked, led, net.promised)
	}
	for i := range c.shards {
		found, err := Inspect(Options{Dir: filepath.Join(c.dirs[i], "raft"), ID: replicaID(i)})
		if err != nil || !found.Log || len(found.Members) != 3 {
			t.Fatal(found, err)
		}
		for by, p := range net.promised {
			if by[1] == replicaID(i) && !found.Promise.Keeps(p) {
				t.Errorf("%s saw %s promise %+v, its files tell %+v", by[0], by[1], p, found.Promise)
			}
		}
	}
}
