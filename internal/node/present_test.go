package node

import (
	"strings"
	"testing"

	"mneme/internal/cluster"
	"mneme/internal/raftfsm"
)

// A node that was refused is a member without a vote, and does not count: writes go on.
// One that only a group knows does.
func TestOnlyVotersCount(t *testing.T) {
	members := []cluster.Member{{Name: "n1-a", ID: "n1", Peer: "h:1"}, {Name: "n2-a", ID: "n2", Peer: "h:2"},
		{Name: "n3-b", ID: "n3", Peer: "h:3"}, {Name: "n3-c", ID: "n3", Peer: "h:3"}, {Name: "n3-d", ID: "n3", Peer: "h:3"}}
	replicas := []raftfsm.Member{{ID: "n1-a", Addr: "n1-a@h:1", Voter: true}, {ID: "n2-a", Addr: "n2-a@h:2", Voter: true}, {ID: "n3-a", Addr: "n3-a@h:3", Voter: true}, {ID: "n3-b", Addr: "n3-b@h:3"}}
	voters := votersOf(members, [][]raftfsm.Member{replicas[:1], replicas})
	if len(voters) != 3 || voters[1] != members[1] || voters[2] != (cluster.Member{Name: "n3-a", ID: "n3", Peer: "h:3"}) {
		t.Errorf("%+v", voters)
	}
	p := presentOf(voters, func(m cluster.Member) bool { return m.ID != "n3" })
	if !p.most() || !strings.Contains(p.String(), "2 of 3 answer, n3 not: reads and writes go on") {
		t.Error(p)
	}
	if voters = votersOf(members, nil); len(voters) != len(members) {
		t.Errorf("without a group %+v", voters)
	}
}
