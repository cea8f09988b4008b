package cluster

import (
	"maps"
	"slices"
	"strings"

	"mneme/internal/raftfsm"
	"mneme/memory"
)

// Named finds the node that an operator means by its id or its full name. Errors:
// *memory.Error.
func (c *Cluster) Named(node string) (Member, error) {
	return named(node, c.Facts().Members, removal{Cluster: c}.replicas())
}

// named finds a node among the members and the replicas of groups. Of several with one id
// the one that has a place in a group is meant: a wiped one that was refused has none.
func named(node string, members []Member, groups map[string][]raftfsm.Member) (Member, error) {
	if node == "" {
		return Member{}, memory.Errorf(memory.CodeInvalid, "the node is missing: give its id or its name")
	}
	all, placed := map[string]Member{}, map[string]bool{}
	for _, replicas := range groups {
		for _, r := range replicas {
			all[r.ID], placed[r.ID] = Member{Name: r.ID, ID: idOf(r.ID), Peer: hostport(r)}, true
		}
	}
	for _, m := range members {
		all[m.Name] = m
	}
	var meant, first []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].ID != node {
			continue
		}
		meant = append(meant, name)
		if placed[name] {
			first = append(first, name)
		}
	}
	if len(first) == 1 {
		meant = first
	}
	m, found := all[node]
	switch {
	case found:
		return m, nil
	case len(meant) == 1:
		return all[meant[0]], nil
	case len(meant) > 1:
		return Member{}, memory.Errorf(memory.CodeConflict, "several nodes have the id %s: %s", node, strings.Join(meant, ", ")).
			WithHint("name one of them in full")
	}
	return Member{}, memory.Errorf(memory.CodeNotFound, "no node of the cluster is called %.100q: there are %s", node, strings.Join(slices.Sorted(maps.Keys(all)), ", ")).
		WithHint("memctl cluster status shows the nodes")
}
