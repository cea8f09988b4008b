package node

import (
	"math"
	"testing"
	"time"

	"mneme/memory"
)

// A replica stays behind when it has not come, for a while, to where another one was, and no
// more once it has. It is passed when another one has applied what stopped it.
func TestReplicaStaysBehind(t *testing.T) {
	for name, c := range map[string]struct {
		looks         [][4]uint64 // seconds after the one before, own, stopped, others
		stays, passed string      // one letter a look: y or n
	}{
		"all go on":                {[][4]uint64{{0, 5, 0, 5}, {9, 7, 0, 8}, {9, 8, 0, 9}}, "nnn", "nnn"},
		"it stands still":          {[][4]uint64{{0, 5, 0, 6}, {1, 5, 0, 7}, {3, 5, 0, 7}, {1, 5, 0, 7}, {1, 6, 0, 7}}, "nnnyn", "nnnnn"},
		"it goes on, always late":  {[][4]uint64{{0, 5, 0, 7}, {4, 6, 0, 9}, {4, 8, 0, 12}, {4, 10, 0, 14}}, "nnnn", "nnnn"},
		"nobody answers meanwhile": {[][4]uint64{{0, 5, 0, 6}, {9, 5, 0, 0}, {9, 5, 0, 0}, {1, 6, 0, 0}}, "nyyn", "nnnn"},
		"all stop at one entry":    {[][4]uint64{{0, 5, 6, 5}, {9, 5, 6, 0}, {9, 5, 6, 0}}, "nnn", "nnn"},
		"it stops alone":           {[][4]uint64{{0, 5, 6, 5}, {1, 5, 6, 6}, {1, 7, 0, 7}}, "nnn", "nyn"},
	} {
		var l lag
		now := time.Now()
		stays, passed := "", ""
		letter := func(yes bool) string {
			if yes {
				return "y"
			}
			return "n"
		}
		for _, look := range c.looks {
			now = now.Add(time.Duration(look[0]) * time.Second)
			l.look(look[1], look[2], look[3], now)
			stays, passed = stays+letter(l.stays.Load()), passed+letter(l.passed.Load())
		}
		if stays != c.stays || passed != c.passed {
			t.Errorf("%s: stays behind %s, want %s; passed %s, want %s", name, stays, c.stays, passed, c.passed)
		}
	}
}

// leadsNothingBehind has the copy of the directory of the node that leads the other shard
// stay behind: it kept the lead, and answered for no namespace that it had not heard of.
func (tr *trio) leadsNothingBehind() {
	tr.t.Helper()
	late := tr.leaderOf(1)
	staysBehind := func(target uint64, since time.Time) {
		l := &tr.nodes[late].served[shard0].lag
		l.mu.Lock()
		defer l.mu.Unlock()
		l.target, l.since = target, since
	}
	staysBehind(math.MaxUint64, time.Now().Add(-time.Hour))
	await(tr.t, "another node to lead", func() bool { return !tr.nodes[late].served[1].candidacy().Leads() })
	err := (leading{tr.nodes[(late+1)%3]}).mayLead(tr.t.Context(), tr.nodes[late].dir.name())
	refusedWith(tr.t, err, memory.CodeConflict, "stays behind", "choose another")
	staysBehind(0, time.Time{})
	await(tr.t, "it to be fit again", func() bool { return (leading{tr.nodes[late]}).eligible() == nil })
}
