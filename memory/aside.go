package memory

import "time"

// Sorts of what a repair sets aside.
const (
	AsideNode     = "node"      // what a node had under another name, or before it went on as another cluster
	AsideState    = "state"     // a state that was built again
	AsideRaftLog  = "raft_log"  // a log of Raft's that was begun anew
	AsideSnapshot = "snapshot"  // a snapshot of a state
	AsideLogBlock = "log_block" // a copy of a block of the log
)

// Aside is something that a repair has moved out of the way. Nothing uses it any more.
type Aside struct {
	Path  string    `json:"path"` // below the data directory, with slashes
	Kind  string    `json:"kind"`
	Why   string    `json:"why"`
	At    time.Time `json:"at"` // when it was set aside
	Bytes int64     `json:"bytes"`
}

// AsideList is what repairs have set aside on a node, the oldest first.
type AsideList struct {
	Aside []Aside `json:"aside"`
	Bytes int64   `json:"bytes"` // of all
}

// RemoveAside asks for what was set aside before a time to be removed.
type RemoveAside struct {
	Before time.Time `json:"before"`
	DryRun bool      `json:"dry_run,omitempty"` // only say what would be removed
}

// AsideRemoval is what was removed, or would be, and what is younger.
type AsideRemoval struct {
	Removed []Aside `json:"removed"`
	Kept    []Aside `json:"kept"`
	Bytes   int64   `json:"bytes"` // of what was removed
	DryRun  bool    `json:"dry_run,omitempty"`
}
