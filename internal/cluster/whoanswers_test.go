package cluster

import (
	"testing"

	"mneme/internal/raftfsm"
)

// Files that know only voters that were removed since do not keep a node waiting for them.
func TestVotersThatWereRemovedAreNotWaitedFor(t *testing.T) {
	voters := func(ids ...string) (out []raftfsm.Member) {
		for _, id := range ids {
			out = append(out, raftfsm.Member{ID: id, Voter: true})
		}
		return out
	}
	f := Facts{ID: "n3", Incarnation: "b", Removed: []string{"n1-a", "n2-a", "n3-a"},
		Members: []Member{{Name: "n1-b", ID: "n1"}, {Name: "n2-b", ID: "n2"}, {Name: "n3-b", ID: "n3"}}}
	files := map[string]raftfsm.Inspection{"0": {Members: voters("n1-a", "n2-a", "n3-a")}}
	if g, most, _ := f.whoAnswers(files, map[string]bool{"n3-b": true}); most {
		t.Error("nobody answered", g)
	}
	if g, most, all := f.whoAnswers(files, map[string]bool{"n1-b": true, "n3-b": true}); !most || all {
		t.Error("two of three answered", g, most, all)
	}
	if g, most, all := f.whoAnswers(files, map[string]bool{"n1-b": true, "n2-b": true, "n3-b": true}); !most || !all {
		t.Error("all answered", g, most, all)
	}
}
