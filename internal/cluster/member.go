package cluster

import (
	"cmp"
	"slices"

	"mneme/internal/peer"
)

// Member is a node as the others know it.
type Member struct {
	// Name is <id>-<incarnation>: a node whose data directory was lost comes back
	// under another one.
	Name string `json:"name"`
	// ID is what people call it.
	ID string `json:"id"`
	// Peer and Route are where other nodes reach its peer port and its NATS route.
	Peer  string `json:"peer"`
	Route string `json:"route,omitempty"`
	// Version counts the changes of its addresses. Only the node itself makes one.
	Version uint64 `json:"version"`
}

// Facts are what a node knows for ever.
type Facts struct {
	ID          string `json:"id"`
	Incarnation string `json:"incarnation"`
	// Cluster is the cluster's id, empty until it is known.
	Cluster string `json:"cluster,omitempty"`
	// Shards is how many shards the cluster has, as its founder was told; 0 is 1.
	Shards int `json:"shards,omitempty"`
	// Vote is the name of the node that this one wants to found the cluster.
	Vote string `json:"vote,omitempty"`
	// Founder says that this node drew the cluster's id and has yet to begin its Raft
	// groups, see Cluster.Begun.
	Founder bool `json:"founder,omitempty"`
	// Groups are the Raft groups that this node has, or may have, a vote in.
	Groups []string `json:"groups,omitempty"`
	// Members are sorted by name and hold this node.
	Members []Member `json:"members,omitempty"`
	// Removed are the names of nodes that were removed, sorted. None of them comes
	// back.
	Removed []string `json:"removed,omitempty"`
	// Former are the clusters whose place this one took when it was recovered from the
	// data of one node, and TermFloor is the highest Raft term that node knew of.
	Former []string `json:"former,omitempty"`
	// Origin are the clusters that the node on its own was of, of whose data this one was made.
	Origin    []string `json:"origin,omitempty"`
	TermFloor uint64   `json:"term_floor,omitempty"`
	// Rejoin, if not empty, is why this node does not come back under this name.
	Rejoin string `json:"rejoin,omitempty"`
	// Replaces are names that this node had before it came back with nothing, and that
	// are not removed yet, as far as it knows.
	Replaces []string `json:"replaces,omitempty"`
}

// Store keeps the facts. Save replaces all of them or none, and returns once they
// survive a loss of power.
type Store interface {
	Load() (Facts, error)
	Save(Facts) error
}

// Name is what Raft, NATS and the peer port call a node.
func Name(id, incarnation string) string { return id + "-" + incarnation }

// Name returns the node's name.
func (f Facts) Name() string { return Name(f.ID, f.Incarnation) }

// idOf returns the id in a name, which the node's certificate is for.
func idOf(name string) string { return peer.IDOf(name) }

// without returns the facts without nodes that were removed.
func (f Facts) without(names ...string) (Facts, bool) {
	gone := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(f.Removed), names...))))
	if len(gone) == len(f.Removed) {
		return f, false
	}
	f.Removed = gone
	f.Members = slices.DeleteFunc(slices.Clone(f.Members), func(m Member) bool { return f.removed(m.Name) })
	return f, true
}

func (f Facts) isMember(name string) bool {
	return slices.ContainsFunc(f.Members, func(m Member) bool { return m.Name == name })
}

func (f Facts) removed(name string) bool {
	_, found := slices.BinarySearch(f.Removed, name)
	return found
}

// merge takes news of members. What is newer of the same name counts.
func merge(members []Member, news ...Member) (merged []Member, changed bool) {
	merged = slices.Clone(members)
	for _, m := range news {
		at, found := slices.BinarySearchFunc(merged, m.Name, func(m Member, name string) int { return cmp.Compare(m.Name, name) })
		switch {
		case m.Name == "":
		case !found:
			merged, changed = slices.Insert(merged, at, m), true
		case m.Version > merged[at].Version:
			merged[at], changed = m, true
		}
	}
	return merged, changed
}
