package memory

import (
	"net/url"
	"strconv"
	"time"
)

// Access says on whose behalf a read happens, where, and how fresh it must be.
type Access struct {
	Namespace   string      `json:"-"`
	As          string      `json:"as,omitempty"`          // the agent that reads; "" sees the team's memories only
	AtLeast     string      `json:"at_least,omitempty"`    // wait until the node has reached this position; "" = no
	Consistency Consistency `json:"consistency,omitempty"` // "" = local
}

// Validate checks what needs no namespace.
func (a *Access) Validate() *Error {
	if a.As != "" {
		if err := CheckName("agent", a.As); err != nil {
			return err
		}
	}
	return checkConsistency(a.Consistency)
}

// GetRequest names one record, by id, or the beginning of it, or by uri.
type GetRequest struct {
	ID      string `json:"id,omitempty"`
	URI     string `json:"uri,omitempty"`
	Version int    `json:"version,omitempty"` // 0 = the current one
}

// Validate checks what needs no namespace.
func (r *GetRequest) Validate() *Error {
	if (r.ID == "") == (r.URI == "") {
		return Errorf(CodeInvalid, "name a record by id or by uri, one of them")
	}
	if r.Version < 0 {
		return Errorf(CodeInvalid, "version is %d, it must be positive", r.Version)
	}
	return CheckURIPath(r.URI)
}

// DefaultSurroundings is how many records a timeline has on each side.
const DefaultSurroundings = 3

// TimelineRequest asks for what surrounded one record.
type TimelineRequest struct {
	ID     string `json:"id"`
	Before *int   `json:"before,omitempty"` // nil = DefaultSurroundings
	After  *int   `json:"after,omitempty"`
	Fit
}

// Validate checks what needs no namespace.
func (r *TimelineRequest) Validate() *Error {
	if r.ID == "" {
		return Errorf(CodeInvalid, "id is missing")
	}
	for _, n := range []*int{r.Before, r.After} {
		if n != nil && (*n < 0 || *n > MaxLimit) {
			return Errorf(CodeInvalid, "before and after must lie between 0 and %d", MaxLimit)
		}
	}
	return r.Fit.validate(recordFields)
}

// Sides is how many records to show before and after.
func (r *TimelineRequest) Sides() (before, after int) {
	before, after = DefaultSurroundings, DefaultSurroundings
	if r.Before != nil {
		before = *r.Before
	}
	if r.After != nil {
		after = *r.After
	}
	return before, after
}

// Values gives the request as query parameters; the id is in the path.
func (r *TimelineRequest) Values() url.Values {
	v := url.Values{}
	for name, n := range map[string]*int{"before": r.Before, "after": r.After} {
		if n != nil {
			v.Set(name, strconv.Itoa(*n))
		}
	}
	r.Fit.values(v)
	return v
}

// DefaultPage is how many rows a page has where the request does not say.
const DefaultPage = 50

// ListRequest selects one page of living records. Zero fields do not filter.
type ListRequest struct {
	Cursor  string // from the page before
	Limit   int    // 0 = DefaultPage
	Filter  Filter
	Purpose Purpose
	Fit
}

// Validate checks what needs no namespace.
func (r *ListRequest) Validate() *Error {
	if err := checkPage(r.Limit); err != nil {
		return err
	}
	if err := checkPurpose(r.Purpose); err != nil {
		return err
	}
	if err := r.Fit.validate(recordFields); err != nil {
		return err
	}
	return r.Filter.validate()
}

// Values gives the request as query parameters.
func (r *ListRequest) Values() url.Values {
	v := url.Values{}
	f := &r.Filter
	setPage(v, r.Cursor, r.Limit)
	for _, k := range f.Kinds {
		v.Add("kind", string(k))
	}
	for _, t := range f.Tags {
		v.Add("tag", t)
	}
	for _, a := range f.Agents {
		v.Add("agent", a)
	}
	setValue(v, "scope", string(f.Scope))
	setValue(v, "conversation", f.Conversation)
	setValue(v, "purpose", string(r.Purpose))
	setTime(v, "since", f.Since)
	setTime(v, "until", f.Until)
	r.Fit.values(v)
	return v
}

// NamespacesRequest selects one page of the namespaces.
type NamespacesRequest struct {
	Cursor string // from the page before
	Limit  int    // 0 = DefaultPage
}

// Validate checks limit and cursor.
func (r *NamespacesRequest) Validate() *Error {
	if r.Cursor != "" && CheckName("namespace", r.Cursor) != nil {
		return Errorf(CodeInvalid, "the cursor is not one of a list of namespaces").WithHint("begin without a cursor")
	}
	return checkPage(r.Limit)
}

// Values gives the request as query parameters.
func (r *NamespacesRequest) Values() url.Values {
	v := url.Values{}
	setPage(v, r.Cursor, r.Limit)
	return v
}

// AuditRequest selects one page of audit rows. Zero fields do not filter.
type AuditRequest struct {
	Cursor       string     // from the page before
	From         string     // rows after this position
	Limit        int        // 0 = DefaultPage
	Actor        string     // rows of this agent
	Type         string     // rows of this type of event, such as memory.forgotten
	Since, Until *time.Time // on sealed_at: Since inclusive, Until exclusive
}

// Validate checks what needs no namespace.
func (r *AuditRequest) Validate() *Error {
	if r.Actor != "" {
		if err := CheckName("agent", r.Actor); err != nil {
			return err
		}
	}
	return checkPage(r.Limit)
}

// After is the position behind which the page begins; "" = the beginning.
func (r *AuditRequest) After() string {
	if r.Cursor != "" {
		return r.Cursor
	}
	return r.From
}

// Values gives the request as query parameters.
func (r *AuditRequest) Values() url.Values {
	v := url.Values{}
	setPage(v, r.Cursor, r.Limit)
	setValue(v, "from", r.From)
	setValue(v, "actor", r.Actor)
	setValue(v, "type", r.Type)
	setTime(v, "since", r.Since)
	setTime(v, "until", r.Until)
	return v
}

func checkPage(limit int) *Error {
	if limit < 0 || limit > MaxLimit {
		return Errorf(CodeInvalid, "limit is %d, it must lie between 1 and %d", limit, MaxLimit)
	}
	return nil
}

func checkConsistency(c Consistency) *Error {
	switch c {
	case "", ConsistencyLocal, ConsistencyLinearizable:
		return nil
	}
	return Errorf(CodeInvalid, "consistency %q is unknown", clip(string(c), 40)).WithHint("levels are local and linearizable")
}

func setPage(v url.Values, cursor string, limit int) {
	setValue(v, "cursor", cursor)
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
}

func setValue(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func setTime(v url.Values, name string, t *time.Time) {
	if t != nil {
		v.Set(name, t.UTC().Format(time.RFC3339Nano))
	}
}
