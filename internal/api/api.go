// Package api holds the parameters that transports hand to the parts they call:
// who reads, how fresh, which page. REST, NATS and MCP fill the same values, so
// that the reading and the writing side know one shape for all of them.
//
// Invariant: plain values without behaviour beyond validation of themselves.
//
// Not its job: parsing a transport's syntax (rest, natsapi), answering.
package api

import (
	"time"

	"mneme/memory"
)

// Access says on whose behalf a read happens, where, and how fresh it must be.
type Access struct {
	Namespace   string
	As          string             // the agent that reads; "" sees the team's memories only
	AtLeast     string             // wait until the node has reached this position; "" = no
	Consistency memory.Consistency // "" = local
}

// CaptureOptions is what a transport knows about captures besides the items.
type CaptureOptions struct {
	Origin memory.Origin // "" = memory.OriginCapture
	// Source is the CloudEvents source of each item, "" where there was none.
	// It is nil or as long as the items.
	Source []string
}

// ListRequest selects one page of records. Zero fields do not filter.
type ListRequest struct {
	Cursor       string // from the page before
	Limit        int    // 0 = the reader's default
	Kinds        []memory.Kind
	Tags         []string // all of them
	Agents       []string
	Scope        memory.Scope
	Conversation string
	Since, Until *time.Time // on occurred_at: Since inclusive, Until exclusive
}

// AuditRequest selects one page of audit rows. Zero fields do not filter.
type AuditRequest struct {
	Cursor       string     // from the page before
	From         string     // rows after this position
	Limit        int        // 0 = the reader's default
	Actor        string     // rows of this agent
	Since, Until *time.Time // on sealed_at: Since inclusive, Until exclusive
}
