package memory

import "time"

// Progress says how far a long administrative action has come. Total is 0
// while it is unknown. Unit is what is counted, such as "events" or "bytes".
type Progress struct {
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
	Unit  string `json:"unit,omitempty"`
}

// ProgressLine is one line of the newline-delimited JSON that a long
// administrative action answers with: any number of lines with Progress and
// then exactly one with Result or Error. R is the action's report.
type ProgressLine[R any] struct {
	Progress *Progress `json:"progress,omitempty"`
	Result   *R        `json:"result,omitempty"`
	Error    *Problem  `json:"error,omitempty"`
}

// VersionInfo names a build.
type VersionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go,omitempty"`
	OS      string `json:"os,omitempty"`
	Arch    string `json:"arch,omitempty"`
}

// RepairShard is what repairing one shard's log gave.
type RepairShard struct {
	ID        int    `json:"id"`
	Epoch     uint32 `json:"epoch"`    // after the repair
	Restored  uint64 `json:"restored"` // frames written again from state
	Events    uint64 `json:"events"`   // events in those frames
	Position  string `json:"position"`
	StateHash string `json:"state_hash,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// ClockReport says which time a node goes by after its clock was accepted.
type ClockReport struct {
	Now time.Time `json:"now"`
}

// RepairReport is the result of a log repair.
type RepairReport struct {
	Shards []RepairShard `json:"shards"`
}
