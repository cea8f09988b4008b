package memory

import "time"

// ClusterStatus describes a cluster as one of its nodes sees it now.
type ClusterStatus struct {
	ClusterID string         `json:"cluster_id"`
	Nodes     []ClusterNode  `json:"nodes"`
	Shards    []ClusterShard `json:"shards"`
}

// RoleUnreachable is that of a NodeStatus which did not answer.
const RoleUnreachable = "unreachable"

// The roles of a ClusterNode.
const (
	RoleVoter   = "voter"   // it counts for majorities
	RoleLearner = "learner" // it follows until it has caught up
)

// ClusterNode is one node of a cluster.
type ClusterNode struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"` // the id and what the node drew for its data directory
	Address   string `json:"address"`        // where the other nodes reach it
	Role      string `json:"role"`
	Reachable bool   `json:"reachable"` // it answered in time
	// Why it does not answer, or takes no part though it does, in a few words that follow
	// its name: "listens and does not answer". Empty where all is well.
	Why     string `json:"why,omitempty"`
	Drained bool   `json:"drained,omitempty"` // it leads nothing, because it was asked not to
}

// TransferLead asks for a node to lead.
type TransferLead struct {
	Node string `json:"node"` // its id, or its full name
}

// LeadTransfer says who leads after a TransferLead.
type LeadTransfer struct {
	Leader string `json:"leader"` // the node's id
	Moved  bool   `json:"moved"`  // false: it led already
}

// DrainNode asks for a node to hand over what it leads, and to lead nothing until this is
// undone or the node starts again.
type DrainNode struct {
	Node string `json:"node,omitempty"` // its id, or its full name; "" = the one that is asked
	Undo bool   `json:"undo,omitempty"`
}

// NodeDrain says how a node is after a DrainNode.
type NodeDrain struct {
	Node    string `json:"node"`
	Drained bool   `json:"drained"`
	Leader  string `json:"leader"` // the id of the node that leads now
}

// RemoveNode asks for a node to be taken out of the cluster for ever.
type RemoveNode struct {
	Node string `json:"node"` // its id, or its full name: the id, "-", and its incarnation
	// Force removes a node that still answers, too. It ends.
	Force bool `json:"force,omitempty"`
}

// NodeRemoval says which nodes were removed, by their full names.
type NodeRemoval struct {
	Removed []string `json:"removed"`
}

// UpgradeStatus says how far an upgrade of the nodes' programs has come.
type UpgradeStatus struct {
	// Level is the feature level that the logs of all shards may use: programs that do not
	// know it cannot run any more. Known is what all nodes know; 0 where one did not say. Until
	// Level is Known, each node can be put back to the program before.
	Level int           `json:"level"`
	Known int           `json:"known"`
	Nodes []UpgradeNode `json:"nodes"`
}

// UpgradeNode is a node in an UpgradeStatus.
type UpgradeNode struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	Version   string `json:"version"`
	Level     int    `json:"level"` // the highest that its program knows; 0: it does not say
	Reachable bool   `json:"reachable"`
}

// ClusterShard is one shard with its replicas.
type ClusterShard struct {
	ID       int              `json:"id"`
	Leader   string           `json:"leader"` // a node's id; "" = nobody leads, as far as is known
	Term     uint64           `json:"term"`
	Copies   *LogCopies       `json:"copies,omitempty"` // none where the log is on an external NATS
	Replicas []ClusterReplica `json:"replicas"`         // of the nodes that answered
	// WritesStopped is why the shard takes no writes now; none where it takes them.
	WritesStopped *WritesStopped `json:"writes_stopped,omitempty"`
}

// LogCopies says how many copies a shard's log has, one at a node.
type LogCopies struct {
	// Have counts those that are whole, as far as the nodes that answered know.
	Have int `json:"have"`
	// Want is how many the nodes that have a vote call for: with five nodes five, else three.
	Want int `json:"want"`
}

// ClusterReplica is what one node holds of a shard.
type ClusterReplica struct {
	Node      string `json:"node"`
	Position  string `json:"position"`
	StateHash string `json:"state_hash"`
	// Halted is why it applies nothing; mostly "".
	Halted string `json:"halted,omitempty"`
	// Behind is how many frames of the log it lacks, against the one that has most.
	Behind uint64 `json:"behind"`
	// Log is the node's own copy of the log.
	Log ClusterCopy `json:"log"`
}

// ClusterCopy is what the log server of one node holds of a shard's log. All zero: it
// has no copy, or is no part of the node.
type ClusterCopy struct {
	Last uint64 `json:"last"` // sequence of the last frame
	// Current: it has what was agreed on, as far as that server knows. A copy is whole
	// if it is current and its last frame is the log's.
	Current bool `json:"current"`
	// CheckedAt is when the node last read the files of its copies and found them sound;
	// zero if it has not since its start.
	CheckedAt time.Time `json:"checked_at,omitzero"`
	Damage    string    `json:"damage,omitempty"` // what does not check in them
}

// RecoverReport says what the data directory of a stopped node of a cluster holds, and, if
// it was asked for, what it became.
type RecoverReport struct {
	Node      string   `json:"node"`       // its id
	ClusterID string   `json:"cluster_id"` // of the cluster that it is, or was, of
	Others    []string `json:"others"`     // the ids of the other members that it knows
	// Running is what other members say that are there. Nothing is recovered then.
	Running []string       `json:"running,omitempty"`
	Shards  []RecoverShard `json:"shards"`
	// Keys counts the changes of the keys that it has.
	Keys uint64 `json:"keys"`
	// Damage is what cannot be read, with what follows from it.
	Damage []string `json:"damage,omitempty"`
	// Recovered: the directory is the only member of a new cluster now, or was before.
	Recovered  bool   `json:"recovered"`
	Before     bool   `json:"before,omitempty"`      // an earlier call has recovered it
	NewCluster string `json:"new_cluster,omitempty"` // its id
	Aside      string `json:"aside,omitempty"`       // where the former log and Raft files lie
}

// RecoverShard is a shard in a RecoverReport.
type RecoverShard struct {
	ID    uint16 `json:"id"`
	State string `json:"state"` // the position at which its state stands
	// Raft and Log are the last sequences that its Raft log and its copy of the log hold.
	Raft uint64 `json:"raft"`
	Log  uint64 `json:"log"`
	// Reaches is the last sequence that it can recover. What was acknowledged behind it, on
	// nodes that are gone, is lost, and cannot be known.
	Reaches  uint64    `json:"reaches"`
	Term     uint64    `json:"term"`      // the highest Raft term that it knows of
	SealedAt time.Time `json:"sealed_at"` // of the last event in its state
}

// InitReport says what the data directory of a stopped node on its own holds, and, if it was
// asked for, of which cluster it is the first node now.
type InitReport struct {
	Node      string      `json:"node"`   // the id that it gets, or has
	Shards    []InitShard `json:"shards"` // of an init that goes on where it was cut short: none
	Done      bool        `json:"done"`
	Before    bool        `json:"before,omitempty"` // an earlier call has done it
	ClusterID string      `json:"cluster_id,omitempty"`
	Aside     string      `json:"aside,omitempty"` // where its former log and Raft files lie
}

// InitShard is a shard in an InitReport, all of which is in its state.
type InitShard struct {
	ID       uint16 `json:"id"`
	Position string `json:"position"`
	Events   uint64 `json:"events"`
}
