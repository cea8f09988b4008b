package memory

import (
	"encoding/json"
	"time"
)

// Record is one version of one memory, opened for a reader that may see it.
type Record struct {
	RecordID     string          `json:"record_id"`
	Namespace    string          `json:"namespace"`
	URI          string          `json:"uri"`
	Version      int             `json:"version"`
	Text         string          `json:"text"`
	Truncated    bool            `json:"truncated,omitempty"` // text is cut to max_text
	Kind         Kind            `json:"kind"`
	Role         string          `json:"role,omitempty"`
	Agent        string          `json:"agent"`
	Tags         []string        `json:"tags,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Subject      string          `json:"subject,omitempty"`
	Scope        Scope           `json:"scope"`
	Origin       Origin          `json:"origin"`
	Importance   *float64        `json:"importance,omitempty"`
	OccurredAt   time.Time       `json:"occurred_at"`
	CreatedAt    time.Time       `json:"created_at"` // when this version was sealed
	DerivedFrom  []string        `json:"derived_from,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	ID           string          `json:"id,omitempty"`     // the client's id
	Source       string          `json:"source,omitempty"` // CloudEvents source, if one was given
	Position     string          `json:"position"`
	Forgotten    bool            `json:"forgotten,omitempty"` // only in history
}

// RecordList is one page of records, newest first.
type RecordList struct {
	Records  []Record `json:"records"`
	Cursor   string   `json:"cursor,omitempty"` // "" = no more
	Position string   `json:"position"`
	LeftOff  *LeftOff `json:"left_off,omitempty"` // of this page, for which the budget had no room
}

// History lists the versions of one record, oldest first.
type History struct {
	RecordID string         `json:"record_id"`
	Versions []Record       `json:"versions"`
	Events   []HistoryEvent `json:"events"`
	Omitted  int            `json:"omitted,omitempty"` // older events that would have made it too long; their versions can be read one by one
	Position string         `json:"position"`
}

// HistoryEvent is one thing that happened to a record.
type HistoryEvent struct {
	Type     string    `json:"type"`
	EventID  string    `json:"event_id"`
	Agent    string    `json:"agent"`
	At       time.Time `json:"at"`
	Version  int       `json:"version,omitempty"`
	Position string    `json:"position"`
}

// Timeline is what surrounded a memory in time or in its conversation.
type Timeline struct {
	Anchor   Record   `json:"anchor"`
	Before   []Record `json:"before"` // oldest first
	After    []Record `json:"after"`  // oldest first
	Position string   `json:"position"`
	LeftOff  *LeftOff `json:"left_off,omitempty"` // on both sides, for which the budget had no room
}

// AuditRow says what one event did.
type AuditRow struct {
	Position  string    `json:"position"`
	At        time.Time `json:"at"` // sealed_at
	Type      string    `json:"type"`
	EventID   string    `json:"event_id,omitempty"`
	Agent     string    `json:"agent,omitempty"`
	RecordID  string    `json:"record_id,omitempty"`
	Scope     Scope     `json:"scope,omitempty"`
	Outcome   string    `json:"outcome"`
	Hash      string    `json:"hash"` // SHA-256 of the sealed event, hex
	System    bool      `json:"system,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
}

// AuditPage is one page of audit rows, oldest first.
type AuditPage struct {
	Rows     []AuditRow `json:"rows"`
	Cursor   string     `json:"cursor,omitempty"`
	Position string     `json:"position"`
}

// Event is a CloudEvents 1.0 event in JSON form: the shape of feeds, server-sent
// events, tail and export.
type Event struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject,omitempty"`
	Time            *time.Time      `json:"time,omitempty"`
	DataContentType string          `json:"datacontenttype,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
	Position        string          `json:"position,omitempty"`
}

// ExportLine is one line of an export: a capture with the record's identity.
// It can be imported again.
type ExportLine struct {
	Capture
	RecordID  string    `json:"record_id"`
	Version   int       `json:"version"`
	Position  string    `json:"position"`
	CreatedAt time.Time `json:"created_at"`
	Origin    Origin    `json:"origin,omitempty"`
	Source    string    `json:"source,omitempty"` // CloudEvents source, if one was given
}
