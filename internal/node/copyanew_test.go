package node

import (
	"fmt"
	"testing"

	"mneme/internal/cluster"
	"mneme/memory"
)

// A copy is taken anew while all other voters answer and have checked theirs since, or are
// known to be damaged; another node that would do the same is named, the first one by name.
func TestWhatACopyWaitsFor(t *testing.T) {
	member := func(id string) cluster.Member { return cluster.Member{Name: id + "-x", ID: id} }
	says := func(id string, c copyReport) nodeReport { return nodeReport{Node: memory.NodeStatus{ID: id}, Copy: c} }
	damaged := memory.CopyStatus{Damage: "1.blk does not check at 7"}
	asked := map[string]uint64{"n2-x": 4, "n3-x": 2}
	for what, c := range map[string]struct {
		reports []nodeReport // of n2, n3 and of n4, which has no vote
		why     string
		sound   string
		claims  string
	}{
		"both have checked":           {[]nodeReport{says("n2", copyReport{Ended: 4}), says("n3", copyReport{Ended: 3}), {}}, "", "map[n2-x:true n3-x:true]", ""},
		"one has not yet":             {[]nodeReport{says("n2", copyReport{Ended: 3}), says("n3", copyReport{Ended: 3}), {}}, "n2 checks its own copy first", "", ""},
		"one does not answer":         {[]nodeReport{says("n2", copyReport{Ended: 4}), {}, {}}, "n3 does not answer", "", ""},
		"one is damaged, too":         {[]nodeReport{says("n2", copyReport{CopyStatus: damaged, Ended: 9}), says("n3", copyReport{Ended: 2}), {}}, "", "map[n3-x:true]", ""},
		"both do the same":            {[]nodeReport{says("n2", copyReport{CopyStatus: damaged, Claims: true}), says("n3", copyReport{CopyStatus: damaged, Claims: true}), {}}, "", "map[]", "n2-x"},
		"one joins and was not asked": {[]nodeReport{says("n2", copyReport{Ended: 4}), says("n3", copyReport{Ended: 2}), says("n4", copyReport{Ended: 1})}, "n4 does not check its own copy", "", ""},
		"one has a program of before": {[]nodeReport{says("n2", copyReport{}), says("n3", copyReport{Ended: 2}), {}}, "n2 checks its own copy first", "", ""},
	} {
		v := anewView{members: []cluster.Member{member("n2"), member("n3"), member("n4")}, voting: []cluster.Member{member("n1"), member("n2"), member("n3")},
			reports: c.reports, asked: asked}
		why := ""
		if err := v.judge(); err != nil {
			why = err.Error()
		}
		if why != c.why || c.why == "" && fmt.Sprint(v.sound) != c.sound || v.claims != c.claims {
			t.Errorf("%s: %q, sound %v, %q claims", what, why, v.sound, v.claims)
		}
	}
	v := anewView{sound: map[string]bool{"n2-x": true}}
	for leader, want := range map[string]string{"n2-x": "", "n3-x": "n3 leads shard 0, and its own copy is not known to be whole", "n1-x": "this node leads shard 0 yet", "": "nobody leads shard 0"} {
		why := ""
		if err := v.leads("shard 0", leader, "n1-x"); err != nil {
			why = err.Error()
		}
		if why != want {
			t.Errorf("%q leads: %q, want %q", leader, why, want)
		}
	}
}
