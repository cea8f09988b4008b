package node

import (
	"cmp"
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
	answer []string // ids
	silent []cluster.NodeStatus
}

// most reports whether so many are there that the cluster can write.
func (p present) most() bool { return len(p.answer) > len(p.silent) }

// String says how many there are, and what works without the others.
func (p present) String() string {
	all := len(p.answer) + len(p.silent)
	if len(p.silent) == 0 {
		return fmt.Sprintf("all %d answer", all)
	}
	var silent []string
	for _, s := range p.silent {
		why := strings.TrimPrefix(s.Why, "does not answer: ")
		switch {
		case why == "":
			silent = append(silent, s.ID)
		case s.Reachable:
			silent = append(silent, fmt.Sprintf("%s (it runs, and %s)", s.ID, why))
		default:
			silent = append(silent, fmt.Sprintf("%s (%s)", s.ID, why))
		}
	}
	without := "reads and writes go on, and nothing is lost as long as most nodes are there"
	if !p.most() {
		without = "nothing is written and no node starts until most are there; the nodes that run serve local reads, of what they have"
	}
	return fmt.Sprintf("%d of %d answer, %s not: %s", len(p.answer), all, strings.Join(silent, " and "), without)
}

// hint says what helps.
func (p present) hint() string {
	if len(p.silent) == 0 {
		return ""
	}
	var start, renew, see []string
	for _, s := range p.silent {
		switch {
		case s.Kind == cluster.KindCertificates:
			renew = append(renew, s.ID)
		case s.Runs:
			see = append(see, s.ID)
		default:
			start = append(start, s.ID)
		}
	}
	var do []string
	if start != nil {
		do = append(do, "start "+strings.Join(start, " and "))
	}
	if renew != nil {
		do = append(do, fmt.Sprintf("see to the certificates of %s and of this node, which nodes take while they run (memctl cluster certs --out DIR NODE)", strings.Join(renew, " and ")))
	}
	if see != nil {
		do = append(do, fmt.Sprintf("see what %s does, which runs: memctl doctor there, and its log", strings.Join(see, " and ")))
	}
	what := strings.Join(do, "; ")
	if p.most() {
		return what + "; one that is lost for ever: memctl cluster remove NODE, and a new one in its place"
	}
	return what + ": nothing is lost then. Only where most nodes are lost for ever: stop the others and see memctl cluster recover --help"
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
			p.silent = append(p.silent, cluster.NodeStatus{ID: m.ID, Name: m.Name})
		}
	}
	slices.Sort(p.answer)
	slices.SortFunc(p.silent, func(a, b cluster.NodeStatus) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// because gives the silent ones the reasons that a look has found.
func (p present) because(nodes []cluster.NodeStatus) present {
	for i, s := range p.silent {
		if at := slices.IndexFunc(nodes, func(n cluster.NodeStatus) bool { return n.Name == s.Name }); at >= 0 {
			p.silent[i] = nodes[at]
		}
	}
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
	nodes, reports := d.n.operator.look(ctx, members)
	var unfit []memory.Check
	there := map[string]bool{}
	for i, r := range reports {
		there[members[i].Name] = r.Node.ID != ""
		if r.Unfit != "" && !r.Drained {
			unfit = append(unfit, memory.Check{Name: "node " + members[i].ID, State: "warn", Detail: "it leads nothing while another node can: " + r.Unfit,
				Hint: "memctl doctor at that node says what helps"})
		}
	}
	for _, s := range nodes { // what memctl cluster status says
		there[s.Name] = there[s.Name] && s.Reachable
	}
	p := presentOf(voting, func(m cluster.Member) bool { return there[m.Name] }).because(nodes)
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
