package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"mneme/memory"
)

// ReadOptions is what every read takes.
type ReadOptions struct {
	As          string // the agent that reads; empty means Options.Agent
	AtLeast     string // wait until the node has reached this position
	Consistency memory.Consistency
}

// values adds what every read takes to a request's own parameters; v may be nil.
func (c *Client) values(o ReadOptions, v url.Values) url.Values {
	if v == nil {
		v = url.Values{}
	}
	as := o.As
	if as == "" {
		as = c.opts.Agent
	}
	set(v, "as", as)
	set(v, "at_least", o.AtLeast)
	set(v, "consistency", string(o.Consistency))
	return v
}

func set(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}

func setInt(v url.Values, key string, n int) {
	if n != 0 {
		v.Set(key, strconv.Itoa(n))
	}
}

// Search finds memories, best first. An empty req.As means Options.Agent.
func (c *Client) Search(ctx context.Context, namespace string, req memory.SearchRequest) (memory.SearchResponse, error) {
	if req.As == "" {
		req.As = c.opts.Agent
	}
	var resp memory.SearchResponse
	err := c.do(ctx, call{method: "POST", path: []string{"namespaces", namespace, "search"}, body: req}, &resp)
	return resp, err
}

// SearchNamespaces finds memories in several namespaces at once, best first, each with its
// namespace. The position of the answer is one for each shard concerned, with commas
// between them, and good for at_least. An empty req.As means Options.Agent.
func (c *Client) SearchNamespaces(ctx context.Context, namespaces []string, req memory.SearchRequest) (memory.SearchResponse, error) {
	if req.As == "" {
		req.As = c.opts.Agent
	}
	var resp memory.SearchResponse
	err := c.do(ctx, call{method: "POST", path: []string{"search"}, body: memory.SearchNamespaces{Namespaces: namespaces, SearchRequest: req}}, &resp)
	return resp, err
}

// GetOptions selects what Get returns.
type GetOptions struct {
	ReadOptions
	Version int // 0 means the current one
}

// Get returns one record by its id, or by a beginning of it, of 6 characters or more,
// that no other record has which the agent may see.
func (c *Client) Get(ctx context.Context, namespace, id string, opts GetOptions) (memory.Record, error) {
	q := c.values(opts.ReadOptions, nil)
	setInt(q, "version", opts.Version)
	var rec memory.Record
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "records", id}, query: q}, &rec)
	return rec, err
}

// GetByURI returns the living record with a uri, in full or as a path inside
// the namespace.
func (c *Client) GetByURI(ctx context.Context, namespace, uri string, opts ReadOptions) (memory.Record, error) {
	full, bad := memory.FullURI(namespace, uri)
	if bad != nil {
		return memory.Record{}, bad
	}
	q := c.values(opts, nil)
	q.Set("uri", full)
	var list memory.RecordList
	if err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "records"}, query: q}, &list); err != nil {
		return memory.Record{}, err
	}
	if len(list.Records) == 0 {
		return memory.Record{}, memory.Errorf(memory.CodeNotFound, "there is no memory at %s", full).
			WithHint("it may belong to an agent: name yourself to see your own")
	}
	return list.Records[0], nil
}

// ListOptions selects and pages records.
type ListOptions struct {
	ReadOptions
	memory.ListRequest
}

// List returns one page of records, newest first. An empty cursor in the answer
// means that there are no more.
func (c *Client) List(ctx context.Context, namespace string, opts ListOptions) (memory.RecordList, error) {
	q := c.values(opts.ReadOptions, opts.Values())
	var list memory.RecordList
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "records"}, query: q}, &list)
	return list, err
}

// History returns every version of a record, oldest first.
func (c *Client) History(ctx context.Context, namespace, id string, opts ReadOptions) (memory.History, error) {
	var h memory.History
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "records", id, "history"}, query: c.values(opts, nil)}, &h)
	return h, err
}

// TimelineOptions says how much of the surroundings to return.
type TimelineOptions struct {
	ReadOptions
	Before, After *int // nil means memory.DefaultSurroundings
	memory.Fit
}

// Timeline returns what surrounded a record.
func (c *Client) Timeline(ctx context.Context, namespace, id string, opts TimelineOptions) (memory.Timeline, error) {
	q := c.values(opts.ReadOptions, (&memory.TimelineRequest{ID: id, Before: opts.Before, After: opts.After, Fit: opts.Fit}).Values())
	var t memory.Timeline
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "records", id, "timeline"}, query: q}, &t)
	return t, err
}

// WriteOptions is what revisions and forgets take.
type WriteOptions struct {
	As string // the agent that acts; empty means Options.Agent
	// IfVersion, if not 0, makes the write a conflict unless the record
	// stands at that version.
	IfVersion int
}

// header says who acts and upon which version; agent acts if nobody is named.
func (o WriteOptions) header(agent string) http.Header {
	h := http.Header{}
	as := o.As
	if as == "" {
		as = agent
	}
	if as != "" {
		h.Set("Mneme-Agent", as)
	}
	if o.IfVersion != 0 {
		h.Set("If-Match", strconv.Itoa(o.IfVersion))
	}
	return h
}

// Revise makes a new version of a record; nil fields of rev stay as they are.
// It is never repeated by the client: a lost answer is CodeOutcomeUnknown.
func (c *Client) Revise(ctx context.Context, namespace, id string, rev memory.Revision, opts WriteOptions) (memory.RevisionResponse, error) {
	var resp memory.RevisionResponse
	err := c.do(ctx, call{method: "PATCH", path: []string{"namespaces", namespace, "records", id},
		body: rev, header: opts.header(c.opts.Agent), write: true, sure: true}, &resp)
	return resp, err
}

// Forget removes a record from every present answer.
func (c *Client) Forget(ctx context.Context, namespace, id string, opts WriteOptions) (memory.ForgetResponse, error) {
	var resp memory.ForgetResponse
	err := c.do(ctx, call{method: "DELETE", path: []string{"namespaces", namespace, "records", id},
		header: opts.header(c.opts.Agent), write: true, sure: true}, &resp)
	return resp, err
}

// AuditOptions selects and pages audit rows.
type AuditOptions struct {
	ReadOptions
	memory.AuditRequest
}

// Audit returns one page of audit rows, oldest first.
func (c *Client) Audit(ctx context.Context, namespace string, opts AuditOptions) (memory.AuditPage, error) {
	q := c.values(opts.ReadOptions, opts.Values())
	var page memory.AuditPage
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "audit"}, query: q}, &page)
	return page, err
}

// AuditedReadsOptions selects and pages audited reads.
type AuditedReadsOptions struct {
	ReadOptions
	memory.AuditedReadsRequest
}

// AuditedReads returns one page of the reads that a namespace has audited, newest first: those
// for prompts, where its setting audit.injections is on.
func AuditedReads(ctx context.Context, c *Client, namespace string, opts AuditedReadsOptions) (memory.AuditedReadPage, error) {
	var page memory.AuditedReadPage
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "audit", "reads"}, query: c.values(opts.ReadOptions, opts.Values())}, &page)
	return page, err
}
