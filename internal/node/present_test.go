package node

import (
	"net"
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

// Of a node that ran and did not answer the status and doctor contradicted each other, and
// neither said why: doctor said to start it.
func TestStatusAndDoctorSayTheSameOfANode(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	at := tr.nodes[0]
	agree := func(why, detail, hint string) {
		t.Helper()
		st, err := at.operator.Cluster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range st.Nodes {
			want := ""
			if n.ID == tr.id(2) {
				want = why
			}
			if n.Why != want || n.Reachable != (want == "") {
				t.Errorf("the status of %+v, want %q", n, want)
			}
		}
		c := at.doctor.checkNodes(t.Context())[0]
		if !strings.HasPrefix(c.Detail, detail) || !strings.HasPrefix(c.Hint, hint) {
			t.Errorf("doctor says %+v, want %q and %q", c, detail, hint)
		}
	}
	agree("", "all 3 answer", "")
	shut(t, tr.nodes[2])
	tr.nodes[2] = nil
	agree("does not answer: connection refused", "2 of 3 answer, n3 (connection refused) not: reads", "start n3; one that is lost")
	still, err := net.Listen("tcp", tr.cfgs[2].Cluster.PeerAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer still.Close()
	agree("listens and does not answer", "2 of 3 answer, n3 (listens and does not answer) not: reads", "see what n3 does, which runs")
}

// What helps is not the same for all nodes that do not answer.
func TestWhatHelpsWithNodesThatDoNotAnswer(t *testing.T) {
	silent := func(s ...cluster.NodeStatus) present { return present{answer: []string{"n1"}, silent: s} }
	for _, tc := range []struct {
		p     present
		words []string
	}{
		{silent(), []string{"all 1 answer"}},
		{silent(cluster.NodeStatus{ID: "n2", Why: "is not ready yet", Reachable: true, Runs: true}, cluster.NodeStatus{ID: "n3"}),
			[]string{"1 of 3 answer, n2 (it runs, and is not ready yet) and n3 not: nothing is written", "start n3; see what n2 does", "memctl cluster recover --help"}},
		{silent(cluster.NodeStatus{ID: "n2", Why: "has a certificate that is valid from A to B", Runs: true, Kind: cluster.KindCertificates}),
			[]string{"n2 (has a certificate that is valid from A to B) not", "the certificates of n2 and of this node"}},
	} {
		for _, w := range tc.words {
			if !strings.Contains(tc.p.String()+" "+tc.p.hint(), w) {
				t.Errorf("%q, %q do not say %q", tc.p, tc.p.hint(), w)
			}
		}
	}
}
