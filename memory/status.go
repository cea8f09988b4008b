package memory

import "time"

// Namespace describes one namespace.
type Namespace struct {
	Name           string            `json:"name"`
	ID             string            `json:"id"`
	CreatedAt      time.Time         `json:"created_at"`
	Settings       map[string]string `json:"settings"`
	Embedder       EmbedderInfo      `json:"embedder"`
	Space          string            `json:"space"`
	Records        uint64            `json:"records"`
	PendingVectors uint64            `json:"pending_vectors"`
	StateHash      string            `json:"state_hash"`
	Position       string            `json:"position"`
}

// NamespaceList is one page of the namespaces by name.
type NamespaceList struct {
	Namespaces []Namespace `json:"namespaces"`
	Cursor     string      `json:"cursor,omitempty"` // of the next page
}

// CreateNamespace asks for a new namespace.
type CreateNamespace struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings,omitempty"`
	DryRun   bool              `json:"dry_run,omitempty"` // only say whether it would be done
}

// PatchNamespace changes settings; a nil value resets one to its default.
type PatchNamespace struct {
	Settings map[string]*string `json:"settings"`
	DryRun   bool               `json:"dry_run,omitempty"` // only say whether it would be done
}

// EmbedderInfo names an embedder and its vector space.
type EmbedderInfo struct {
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	Dimensions int    `json:"dimensions"`
	Space      string `json:"space"`
}

// EmbedderStatus says what turns a namespace's text into vectors, and how far a
// change of it has come.
type EmbedderStatus struct {
	Namespace string         `json:"namespace"`
	State     string         `json:"state"` // "ready" or "building"
	Embedder  EmbedderInfo   `json:"embedder"`
	Records   uint64         `json:"records"`
	Vectors   uint64         `json:"vectors"` // records that have vectors
	Pending   uint64         `json:"pending_vectors"`
	Building  *SpaceBuilding `json:"building,omitempty"`
	Kept      []SpaceKept    `json:"kept"` // spaces before, oldest first
	// LastSwitch is what the last change of the embedder found before it.
	LastSwitch *SpaceComparison `json:"last_switch,omitempty"`
	Position   string           `json:"position"`
}

// States of EmbedderStatus.
const (
	EmbedderReady    = "ready"
	EmbedderBuilding = "building"
)

// SpaceBuilding is a vector space that is built beside the current one.
type SpaceBuilding struct {
	Embedder EmbedderInfo `json:"embedder"`
	Phase    string       `json:"phase"` // "filling", "comparing", "waiting"
	Done     uint64       `json:"done"`  // records that have vectors in it
	Total    uint64       `json:"total"`
	Skipped  uint64       `json:"skipped"` // records with nothing in them that it can embed
	Rate     float64      `json:"records_per_second"`
	ETAS     float64      `json:"eta_s"` // seconds to go; 0 = not known
	Error    string       `json:"error,omitempty"`
	ErrorAt  *time.Time   `json:"error_at,omitempty"`
	RetryAt  *time.Time   `json:"retry_at,omitempty"`
}

// Phases of SpaceBuilding.
const (
	PhaseFilling   = "filling"   // records get their vectors
	PhaseComparing = "comparing" // both spaces are searched for a sample
	PhaseWaiting   = "waiting"   // after an error, for the next attempt
)

// SpaceKept is a space that a namespace had before.
type SpaceKept struct {
	Embedder EmbedderInfo `json:"embedder"`
	Records  uint64       `json:"records"` // living ones that have vectors in it
	Until    time.Time    `json:"until"`
}

// SpaceComparison is what was found before a namespace changed its space.
type SpaceComparison struct {
	At         time.Time    `json:"at"`
	From       EmbedderInfo `json:"from"`
	To         EmbedderInfo `json:"to"`
	Records    uint64       `json:"records"`
	OldVectors uint64       `json:"old_vectors"` // records with vectors in From
	NewVectors uint64       `json:"new_vectors"` // … and in To
	Sample     int          `json:"sample"`      // records whose neighbours were looked for
	// Recall is the share of the sample's ten nearest, by an exact scan of the
	// new space, that a search of it found.
	Recall float64 `json:"recall"`
	// Agreement is the share of the sample's ten nearest that both spaces give.
	// Models differ, so this is for information.
	Agreement float64 `json:"agreement"`
}

// SwitchEmbedder asks for another embedder of a namespace.
type SwitchEmbedder struct {
	Provider   string `json:"provider"`
	Model      string `json:"model,omitempty"`
	Dimensions int    `json:"dimensions,omitempty"`
}

// NodeStatus is one node of the cluster.
type NodeStatus struct {
	ID string `json:"id"`
	// Name is the id and what the node drew for its data directory; empty for a node on its own.
	Name string `json:"name,omitempty"`
	// Learner says that it has no vote: it does not count for majorities.
	Learner bool   `json:"learner,omitempty"`
	Role    string `json:"role"`
	Address string `json:"address"`
	Version string `json:"version"`
}

// LogStatus describes a shard's event log.
type LogStatus struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Lost  uint64 `json:"lost"`
	// Unreachable is why the node could not ask the log; First, Last and Lost say nothing then.
	Unreachable string `json:"unreachable,omitempty"`
	Diverged    string `json:"diverged,omitempty"` // why writes are stopped
	// Void counts messages since the node's start that are no frames of the log's
	// writer: they take a sequence and change nothing.
	Void uint64 `json:"void,omitempty"`
	// Scrub is the slow reading of the whole log.
	Scrub ScrubStatus `json:"scrub,omitzero"`
	// Repair says how far a repair is, in sequences, while there is one.
	Repair *Progress `json:"repair,omitempty"`
}

// ScrubStatus says how far the slow reading of the whole log is, in sequences,
// and how the last one ended.
type ScrubStatus struct {
	Running    bool      `json:"running"`
	Done       uint64    `json:"done"`
	Total      uint64    `json:"total"`
	FinishedAt time.Time `json:"finished_at,omitzero"` // when a pass last found the log sound
	Problem    string    `json:"problem,omitempty"`    // what the last pass found
}

// CopyStatus says how the files are in which a node among others keeps its own copy of the
// log, and what the log's servers have agreed on.
type CopyStatus struct {
	Running   bool      `json:"running,omitempty"`   // they are being read
	CheckedAt time.Time `json:"checked_at,omitzero"` // when they were last found sound
	Damage    string    `json:"damage,omitempty"`    // what does not check
	FoundAt   time.Time `json:"found_at,omitzero"`   // since when that is known
	// Waits is what keeps the node from taking its copy from the others.
	Waits string `json:"waits,omitempty"`
}

// ShardStatus describes one shard on the answering node.
type ShardStatus struct {
	ID              int       `json:"id"`
	Leader          string    `json:"leader"`
	Epoch           uint32    `json:"epoch"`
	Position        string    `json:"position"`
	StateHash       string    `json:"state_hash"`
	PipelineVersion uint32    `json:"pipeline_version"`
	Log             LogStatus `json:"log"`
	Records         uint64    `json:"records"`
	PendingVectors  uint64    `json:"pending_vectors"`
	Halted          string    `json:"halted,omitempty"`
	StoppedAt       string    `json:"stopped_at,omitempty"` // the event at which it has halted, if that is why
	// WritesStopped is why the shard takes no writes now, as the node that leads it says;
	// none where it takes them, and where that node was not asked.
	WritesStopped *WritesStopped `json:"writes_stopped,omitempty"`
	// Lacks is how many frames of the log the state does not hold since a start without
	// room on the disk. Nothing is read until there is room to apply them.
	Lacks uint64 `json:"lacks,omitempty"`
	// Erasing is there while what was deleted for good leaves the files.
	Erasing *ErasingStatus `json:"erasing,omitempty"`
}

// WritesStopped is why a shard takes no writes, and what helps.
type WritesStopped struct {
	Node string `json:"node,omitempty"` // the id of the node that leads; "" = none does
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

// ErasingStatus says how far the removal of deleted namespaces from the node's
// files has come. They have left every answer before, and their keys are gone.
type ErasingStatus struct {
	Step  string    `json:"step"` // keys, readers, tables, state, caches, storage key, raft, files or end
	Since time.Time `json:"since"`
	Error string    `json:"error,omitempty"` // of the last attempt; it is tried again
}

// GuardStatus is the state of the recall guard: ok, tripped or none.
type GuardStatus struct {
	State  string  `json:"state"`
	Recall float64 `json:"recall"`
}

// VectorStatus names the vector engine and what its guard found.
type VectorStatus struct {
	Engine      string      `json:"engine"`
	RecallGuard GuardStatus `json:"recall_guard"`
}

// Status describes a node and its shards.
type Status struct {
	ClusterID string        `json:"cluster_id"`
	Nodes     []NodeStatus  `json:"nodes"`
	Shards    []ShardStatus `json:"shards"`
	// Copy is the answering node's own copy of the log; none where it keeps none beside others.
	Copy     *CopyStatus  `json:"copy,omitempty"`
	Embedder EmbedderInfo `json:"embedder"`
	Vector   VectorStatus `json:"vector"`
	Auth     string       `json:"auth"`
	// AdminSocket is the file through which the operator reaches the node
	// without a token, on its machine only.
	AdminSocket string `json:"admin_socket,omitempty"`
	// Certificates are those that the node shows; none without TLS.
	Certificates []CertificateStatus `json:"certificates,omitempty"`

	Version string  `json:"version"`
	Dev     bool    `json:"dev,omitempty"`
	UptimeS float64 `json:"uptime_s"`
}

// CertificateStatus is a certificate that a node shows.
type CertificateStatus struct {
	For       string    `json:"for"` // "clients" or "nodes"
	ExpiresAt time.Time `json:"expires_at"`
	// ClientsVerified says that a client must show a certificate, too.
	ClientsVerified bool `json:"clients_verified,omitempty"`
}

// RebuildShard is what rebuilding one shard gave.
type RebuildShard struct {
	ID        int    `json:"id"`
	Position  string `json:"position"`
	StateHash string `json:"state_hash"`
	Events    uint64 `json:"events"`
	TookMS    int64  `json:"took_ms"`
	Before    string `json:"state_hash_before,omitempty"`
}

// RebuildReport is the result of a rebuild.
type RebuildReport struct {
	Shards []RebuildShard `json:"shards"`
}

// VerifyShard is what verifying one shard's log gave.
type VerifyShard struct {
	ID       int      `json:"id"`
	First    uint64   `json:"first"`
	Last     uint64   `json:"last"`
	Frames   uint64   `json:"frames"`
	Events   uint64   `json:"events"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
	Hint     string   `json:"hint,omitempty"`
}

// VerifyCopy is what verifying the answering node's own copy of the log gave.
type VerifyCopy struct {
	Node    string `json:"node"`
	Files   int    `json:"files"`
	Bytes   uint64 `json:"bytes"`
	OK      bool   `json:"ok"`
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// VerifyReport is the result of a log verification.
type VerifyReport struct {
	Shards []VerifyShard `json:"shards"`
	Copy   *VerifyCopy   `json:"copy,omitempty"` // none where the log has no other copies, or is on an external NATS
}

// Check is one line of a doctor's report: ok, warn or fail.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// DoctorReport is what doctor found.
type DoctorReport struct {
	Checks []Check `json:"checks"`
	OK     bool    `json:"ok"`
}

// Rejected is a message that was refused before the log.
type Rejected struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace"`
	Agent     string    `json:"agent"`
	Code      Code      `json:"code"`
	Reason    string    `json:"reason"`
	Size      int       `json:"size"`
	Via       string    `json:"via"` // rest, nats
	Body      string    `json:"body,omitempty"`
	// WellFormed says of a message that is handed in that its body could be read: it
	// tells whom the message is about, and is not kept.
	WellFormed bool `json:"-"`
}

// RejectedList lists refused messages, newest first.
type RejectedList struct {
	Rejected []Rejected        `json:"rejected"`
	Counts   map[string]uint64 `json:"counts"` // by code, since the node started
	// NotListed is how many of them came too fast to be listed.
	NotListed uint64 `json:"not_listed,omitempty"`
}

// Quarantined is an event that is in the log and changes nothing: it could not be
// understood, or no node could apply it and an operator put it in quarantine.
type Quarantined struct {
	Position string `json:"position"`
	Code     string `json:"code"` // operator: an operator did it
	Detail   string `json:"detail"`
	// Of one that an operator put there:
	By     string     `json:"by,omitempty"` // the agent that did it
	At     *time.Time `json:"at,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// PutInQuarantine asks for the event at which a shard has stopped on most nodes to be put
// in quarantine, so that the shard goes on without it.
type PutInQuarantine struct {
	Position string `json:"position"`
	Reason   string `json:"reason,omitempty"`  // at most 1024 bytes
	By       string `json:"as,omitempty"`      // the agent that does it; "" = operator
	DryRun   bool   `json:"dry_run,omitempty"` // only say whether it would be done
}

// InQuarantine says what became of a PutInQuarantine.
type InQuarantine struct {
	Quarantined
	Type    string `json:"type,omitempty"` // of the event
	Why     string `json:"why,omitempty"`  // it could not be applied
	Already bool   `json:"already,omitempty"`
	DryRun  bool   `json:"dry_run,omitempty"`
	// Next is the position of another event at which the shard has stopped then; mostly "".
	Next string `json:"next,omitempty"`
}

// QuarantineList lists quarantined events, oldest first.
type QuarantineList struct {
	Quarantined []Quarantined `json:"quarantined"`
}

// BackupReport says what a backup holds.
type BackupReport struct {
	Log      string `json:"log,omitempty"`
	Keys     string `json:"keys,omitempty"`
	Position string `json:"position"`
	Frames   uint64 `json:"frames"`
	Events   uint64 `json:"events"`
	Bytes    int64  `json:"bytes"`
	// StateHash is that of the state at Position, of several shards separated by commas as the
	// positions are; "" where the log goes further than the state.
	StateHash       string `json:"state_hash,omitempty"`
	PipelineVersion uint32 `json:"pipeline_version,omitempty"`

	Stopped *StoppedMember `json:"stopped,omitempty"` // of a stopped node of a cluster
}

// StoppedMember is the node of a cluster of whose files a backup was made. What other nodes
// acknowledged without it is not there.
type StoppedMember struct {
	Node  string   `json:"node"`
	Lacks []string `json:"lacks"` // what the node knew of, and the backup does not hold
}
