package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mneme/internal/cluster"
	"mneme/internal/peer"
	"mneme/internal/raftfsm"
	"mneme/memory"
)

// present counts the nodes of a cluster that are there.
type present struct {
	answer, silent []string // ids
}

// most reports whether so many are there that the cluster can write.
func (p present) most() bool { return len(p.answer) > len(p.silent) }

// String says how many there are, and what works without the others.
func (p present) String() string {
	all := len(p.answer) + len(p.silent)
	switch {
	case len(p.silent) == 0:
		return fmt.Sprintf("all %d answer", all)
	case p.most():
		return fmt.Sprintf("%d of %d answer, %s not: reads and writes go on, and nothing is lost as long as most nodes are there", len(p.answer), all, strings.Join(p.silent, " and "))
	}
	return fmt.Sprintf("%d of %d answer, %s not: nothing is written and no node starts until most are there; the nodes that run serve local reads, of what they have", len(p.answer), all, strings.Join(p.silent, " and "))
}

// hint says what helps.
func (p present) hint() string {
	if len(p.silent) == 0 {
		return ""
	}
	if p.most() {
		return fmt.Sprintf("start %s; one that is lost for ever: memctl cluster remove NODE, and a new one in its place", strings.Join(p.silent, " and "))
	}
	return fmt.Sprintf("start %s: nothing is lost then. Only where most nodes are lost for ever: stop the others and see memctl cluster recover --help", strings.Join(p.silent, " and "))
}

// voters are the nodes that have a vote in one of the groups that this node serves: they
// count where most nodes are meant. Where it serves none yet, all members are.
func voters(n *Node) []cluster.Member {
	var groups [][]raftfsm.Member
	if keys := n.peers.keys; keys != nil {
		replicas, _ := keys.Raft().Members()
		groups = append(groups, replicas)
	}
	for _, s := range n.served {
		replicas, _ := s.candidacy().Group.Members()
		groups = append(groups, replicas)
	}
	return votersOf(n.peers.cluster.Facts().Members, groups)
}

func votersOf(members []cluster.Member, groups [][]raftfsm.Member) (voters []cluster.Member) {
	for _, replicas := range groups {
		for _, r := range replicas {
			if !r.Voter || slices.ContainsFunc(voters, func(m cluster.Member) bool { return m.Name == r.ID }) {
				continue
			}
			_, addr, _ := strings.Cut(r.Addr, "@")
			m := cluster.Member{Name: r.ID, ID: peer.IDOf(r.ID), Peer: addr}
			if i := slices.IndexFunc(members, func(m cluster.Member) bool { return m.Name == r.ID }); i >= 0 {
				m = members[i]
			}
			voters = append(voters, m)
		}
	}
	if len(voters) == 0 {
		return members
	}
	return voters
}

// presentOf tells which of these nodes are there.
func presentOf(members []cluster.Member, answers func(m cluster.Member) bool) (p present) {
	for _, m := range members {
		if answers(m) {
			p.answer = append(p.answer, m.ID)
		} else {
			p.silent = append(p.silent, m.ID)
		}
	}
	slices.Sort(p.answer)
	slices.Sort(p.silent)
	return p
}

// checkNodes says which nodes of the cluster do not answer, and which lead nothing and why.
func (d *doctor) checkNodes(ctx context.Context) []memory.Check {
	if d.n.peers == nil {
		return nil
	}
	members, voting := d.n.peers.cluster.Facts().Members, voters(d.n)
	for _, m := range voting { // a group may know one that no member told of
		if !slices.Contains(members, m) {
			members = append(members, m)
		}
	}
	reports := d.n.operator.reports(ctx, members)
	var unfit []memory.Check
	there := map[string]bool{}
	for i, r := range reports {
		there[members[i].Name] = r.Node.ID != ""
		if r.Unfit != "" && !r.Drained {
			unfit = append(unfit, memory.Check{Name: "node " + members[i].ID, State: "warn", Detail: "it leads nothing while another node can: " + r.Unfit,
				Hint: "memctl doctor at that node says what helps"})
		}
	}
	p := presentOf(voting, func(m cluster.Member) bool { return there[m.Name] })
	c := memory.Check{Name: "nodes", State: "ok", Detail: p.String(), Hint: p.hint()}
	switch {
	case !p.most():
		c.State = "fail"
	case len(p.silent) > 0:
		c.State = "warn"
	}
	return append([]memory.Check{c}, unfit...)
}

// checkClock says why the clock of this node is not used.
func (d *doctor) checkClock() (out []memory.Check) {
	if err := d.n.clock.Refusal(d.n.directory().state.Cursor().SealedAt); err != nil {
		out = append(out, memory.Check{Name: "clock", State: "warn", Detail: err.Message, Hint: err.Hint})
	}
	return out
}

// outage says in the node's log when most nodes are gone, and when they are back.
type outage struct {
	missed int // looks in a row that found too few
}

// outageAfter is how many looks in a row have to find too few: nodes that start one after
// the other, or are busy for a moment, are no outage.
const outageAfter = 2

// look takes what one look has found, and returns what is to be said: lost or back.
func (o *outage) look(p present) (lost, back bool) {
	if p.most() {
		back = o.missed >= outageAfter
		o.missed = 0
		return false, back
	}
	o.missed++
	return o.missed == outageAfter, false
}
