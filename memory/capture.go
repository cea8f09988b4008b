package memory

import (
	"encoding/json"
	"time"
)

// Limits of what one request may carry.
const (
	MaxTextBytes     = 256 << 10
	MaxBatchItems    = 1000
	MaxBatchBytes    = 8 << 20
	MaxLimit         = 200
	MaxMetadataBytes = 16 << 10
	MaxMetadataDepth = 32 // objects and arrays in one another
	MaxFilterValues  = 256
	MaxNamespaces    = 64 // that one search goes over
	MaxQueryBytes    = 16 << 10
	MaxTags          = 32
	MaxTagRunes      = 64
	MaxURIBytes      = 1024
	MaxClientID      = 128
	MaxConversation  = 256
	MaxSubject       = 256
	MaxDerivedFrom   = 64
	MaxSnippetRunes  = 700
	MinIDBeginning   = 6 // characters of an id that may stand for it
	DefaultLimit     = 6
)

// Kind classifies a memory.
type Kind string

// The kinds. An empty kind means KindOther.
const (
	KindPreference  Kind = "preference"
	KindFact        Kind = "fact"
	KindDecision    Kind = "decision"
	KindError       Kind = "error"
	KindPractice    Kind = "practice"
	KindToolUsage   Kind = "tool-usage"
	KindObservation Kind = "observation"
	KindMessage     Kind = "message"
	KindOther       Kind = "other"
)

// Kinds lists every kind in the order of the documentation.
var Kinds = []Kind{KindPreference, KindFact, KindDecision, KindError, KindPractice,
	KindToolUsage, KindObservation, KindMessage, KindOther}

// Scope says who in a namespace can see a memory.
type Scope string

// The scopes of a capture. An empty scope means ScopeTeam.
const (
	ScopeTeam  Scope = "team"
	ScopeAgent Scope = "agent"
)

// Origin says how a memory came to be.
type Origin string

// The origins.
const (
	OriginCapture Origin = "capture"
	OriginImport  Origin = "import"
	OriginHook    Origin = "hook"
	OriginDerived Origin = "derived"
)

// Wait says how far a write must have come before it is answered.
type Wait string

// The levels. An empty level means WaitApplied.
const (
	WaitAccepted   Wait = "accepted"
	WaitApplied    Wait = "applied"
	WaitSearchable Wait = "searchable"
)

// Capture is what an agent wants remembered.
type Capture struct {
	ID           string          `json:"id,omitempty"` // the client's idempotency key
	Agent        string          `json:"agent,omitempty"`
	Text         string          `json:"text"`
	Kind         Kind            `json:"kind,omitempty"`
	Role         string          `json:"role,omitempty"`
	URI          string          `json:"uri,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Subject      string          `json:"subject,omitempty"`
	Scope        Scope           `json:"scope,omitempty"`
	Importance   *float64        `json:"importance,omitempty"` // 0..1
	OccurredAt   *time.Time      `json:"occurred_at,omitempty"`
	DerivedFrom  []string        `json:"derived_from,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"` // a JSON object
}

// ItemStatus is the outcome of one captured item.
type ItemStatus string

// The outcomes.
const (
	StatusCreated   ItemStatus = "created"
	StatusDuplicate ItemStatus = "duplicate"
	StatusConflict  ItemStatus = "conflict"
	StatusRejected  ItemStatus = "rejected"
)

// ItemError says why one item of a batch failed.
type ItemError struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// CaptureResult is the outcome of one item.
type CaptureResult struct {
	ID       string     `json:"id,omitempty"` // the client's id, if it gave one
	RecordID string     `json:"record_id,omitempty"`
	Position string     `json:"position,omitempty"`
	Status   ItemStatus `json:"status"`
	Vectors  string     `json:"vectors,omitempty"` // "pending" when wait=searchable ran out
	Error    *ItemError `json:"error,omitempty"`
}

// CaptureResponse answers a capture: one result an item, in order. Position is
// that of the last event of the batch.
type CaptureResponse struct {
	Position string          `json:"position"`
	Results  []CaptureResult `json:"results"`
	Vectors  string          `json:"vectors,omitempty"`
}

// Revision changes a record: a field that is nil stays as it is.
type Revision struct {
	Text         *string          `json:"text,omitempty"`
	Kind         *Kind            `json:"kind,omitempty"`
	Role         *string          `json:"role,omitempty"`
	URI          *string          `json:"uri,omitempty"`
	Tags         *[]string        `json:"tags,omitempty"`
	Conversation *string          `json:"conversation,omitempty"`
	Importance   *float64         `json:"importance,omitempty"`
	OccurredAt   *time.Time       `json:"occurred_at,omitempty"`
	DerivedFrom  *[]string        `json:"derived_from,omitempty"`
	Metadata     *json.RawMessage `json:"metadata,omitempty"`
}

// RevisionResponse answers a revision.
type RevisionResponse struct {
	RecordID string `json:"record_id"`
	Version  int    `json:"version"`
	Position string `json:"position"`
}

// ForgetResponse answers a forget.
type ForgetResponse struct {
	RecordID string `json:"record_id"`
	Position string `json:"position"`
}
