package memory

import (
	"net/url"
	"time"
)

// AuditedRead is a read that a namespace has audited: who was given which memories, and what
// for. It names them, and holds no word of them or of the query.
type AuditedRead struct {
	Position    string      `json:"position"` // of its event
	EventID     string      `json:"event_id"`
	At          time.Time   `json:"at"` // when the event was sealed, which is before the answer was given
	Namespace   string      `json:"namespace"`
	Agent       string      `json:"agent,omitempty"` // that was reading, as it said
	Scope       Scope       `json:"scope"`           // of what was given; a read of both scopes is two of these
	Purpose     Purpose     `json:"purpose"`
	Consistency Consistency `json:"consistency"`
	ReadAt      string      `json:"read_at"` // the position that the answer was read at
	// QueryHash is a hash of the query under a key of the namespace, in hex: equal queries
	// have equal hashes. Empty where a vector was all that was asked with.
	QueryHash string  `json:"query_hash,omitempty"`
	Given     []Given `json:"given"` // in the order of the answer
}

// Given is a version of a record that was given to a reader. Both stay when the record is
// forgotten or erased.
type Given struct {
	RecordID string `json:"record_id"`
	Version  int    `json:"version"`
}

// AuditedReadPage is one page of audited reads, newest first. A page may have fewer than were
// asked for, or none, and still a cursor: it looks into a few thousand reads at most.
type AuditedReadPage struct {
	Reads    []AuditedRead `json:"reads"`
	Cursor   string        `json:"cursor,omitempty"`
	Position string        `json:"position"`
}

// AuditedReadsRequest selects one page of audited reads. Zero fields do not filter.
type AuditedReadsRequest struct {
	Cursor       string     // from the page before
	Limit        int        // 0 = DefaultPage
	Agent        string     // reads by this agent
	Record       string     // reads that gave this record
	Since, Until *time.Time // on At: Since inclusive, Until exclusive
}

// Validate checks what needs no namespace.
func (r *AuditedReadsRequest) Validate() *Error {
	if r.Agent != "" {
		if err := CheckName("agent", r.Agent); err != nil {
			return err
		}
	}
	if r.Record != "" && !ValidULID(r.Record) {
		return Errorf(CodeInvalid, "%q is not a record id", clip(r.Record, 40)).WithHint("give the whole id, as memctl get shows it")
	}
	return checkPage(r.Limit)
}

// Values gives the request as query parameters.
func (r *AuditedReadsRequest) Values() url.Values {
	v := url.Values{}
	setPage(v, r.Cursor, r.Limit)
	setValue(v, "agent", r.Agent)
	setValue(v, "record", r.Record)
	setTime(v, "since", r.Since)
	setTime(v, "until", r.Until)
	return v
}
