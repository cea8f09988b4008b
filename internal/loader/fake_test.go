package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mneme/client"
	"mneme/internal/importer"
	"mneme/memory"
)

// fakeNode keeps the memories of any namespaces; each page of a list holds two.
type fakeNode struct {
	mu      sync.Mutex
	records []*fakeRecord // in the order in which they came
	ids     map[string]*fakeRecord
	changes []memory.GraphChange
	batches int
	lists   int    // pages that were listed
	pasts   int    // histories that were read
	more    uint64 // memories that are counted, and not there

	take   func(items []memory.Capture) error       // is handed each batch before it is taken
	refuse func(c memory.Capture) *memory.ItemError // for one item
	read   func(rec *memory.Record)                 // may change a record after it was read
}

type fakeRecord struct {
	versions  []memory.Record
	forgotten bool
	erased    bool
	timed     bool   // it was said when it happened
	given     string // the capture as it came
}

func (r *fakeRecord) now() *memory.Record { return &r.versions[len(r.versions)-1] }

func newFakeNode() *fakeNode { return &fakeNode{ids: map[string]*fakeRecord{}} }

func (n *fakeNode) Namespace(_ context.Context, ns string) (memory.Namespace, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	info := memory.Namespace{Name: ns, Records: n.more}
	for _, r := range n.records {
		if !r.forgotten && r.now().Namespace == ns {
			info.Records++
		}
	}
	return info, nil
}

func (n *fakeNode) CreateNamespace(_ context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	return memory.Namespace{Name: req.Name}, nil
}

func (n *fakeNode) CaptureBatch(_ context.Context, ns string, items []memory.Capture, opts client.CaptureOptions) (resp memory.CaptureResponse, err error) {
	if n.take != nil {
		if err := n.take(items); err != nil {
			return resp, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.batches++
	for _, c := range items {
		resp.Results = append(resp.Results, n.capture(ns, c, opts.Origin))
	}
	return resp, nil
}

func (n *fakeNode) capture(ns string, c memory.Capture, origin memory.Origin) memory.CaptureResult {
	if n.refuse != nil {
		if e := n.refuse(c); e != nil {
			return memory.CaptureResult{ID: c.ID, Status: memory.StatusRejected, Error: e}
		}
	}
	given, _ := json.Marshal(c)
	key := ns + "/" + c.Agent + "/" + c.ID
	if old := n.ids[key]; old != nil && c.ID != "" {
		if old.given == string(given) {
			return memory.CaptureResult{ID: c.ID, Status: memory.StatusDuplicate, RecordID: old.now().RecordID}
		}
		return taken(old, c)
	}
	record := fmt.Sprintf("01J%023d", len(n.records)+1)
	uri := "mem://" + ns + "/" + record
	if c.URI != "" {
		uri = "mem://" + ns + "/" + c.URI
		if old := n.named(uri); old != nil {
			return taken(old, c)
		}
	}
	c.Normalise()
	rec := &fakeRecord{given: string(given), versions: []memory.Record{{RecordID: record, Namespace: ns, Version: 1, ID: c.ID, URI: uri, Text: c.Text, Kind: c.Kind, Role: c.Role, Agent: c.Agent,
		Tags: c.Tags, Conversation: c.Conversation, Scope: c.Scope, Importance: c.Importance, DerivedFrom: c.DerivedFrom, Metadata: c.Metadata, Origin: origin}}}
	if c.OccurredAt != nil {
		rec.now().OccurredAt, rec.timed = *c.OccurredAt, true
	}
	n.records = append(n.records, rec)
	n.ids[key] = rec
	return memory.CaptureResult{ID: c.ID, Status: memory.StatusCreated, RecordID: record}
}

func taken(by *fakeRecord, c memory.Capture) memory.CaptureResult {
	return memory.CaptureResult{ID: c.ID, Status: memory.StatusConflict, RecordID: by.now().RecordID, Error: &memory.ItemError{Code: memory.CodeConflict, Detail: "it is taken"}}
}

// named is the living record with a uri, nil if there is none.
func (n *fakeNode) named(uri string) *fakeRecord {
	for _, r := range n.records {
		if !r.forgotten && r.now().URI == uri {
			return r
		}
	}
	return nil
}

// me is who imports.
const me = "ann"

// acting refuses what nobody does, or somebody else.
func acting(as string) error {
	if as != me {
		return memory.Errorf(memory.CodeForbidden, "%q acts, and not %q", as, me)
	}
	return nil
}

func (n *fakeNode) List(_ context.Context, ns string, opts client.ListOptions) (page memory.RecordList, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := acting(opts.As); err != nil {
		return page, err
	}
	n.lists++
	for i, r := range n.records {
		rec := *r.now()
		if r.forgotten || rec.Namespace != ns || rec.RecordID <= opts.Cursor || opts.Filter.Conversation != "" && rec.Conversation != opts.Filter.Conversation || rec.Scope == memory.ScopeAgent && rec.Agent != opts.As {
			continue
		}
		page.Records = append(page.Records, fitted(rec, opts.Fit))
		if len(page.Records) == 2 && i+1 < len(n.records) {
			page.Cursor = rec.RecordID
			return page, nil
		}
	}
	return page, nil
}

func (n *fakeNode) find(ns, id string) (*fakeRecord, error) {
	for _, r := range n.records {
		if rec := r.now(); rec.RecordID == id && rec.Namespace == ns && !r.forgotten {
			return r, nil
		}
	}
	return nil, memory.Errorf(memory.CodeNotFound, "there is no record %s", id)
}

func (n *fakeNode) Get(_ context.Context, ns, id string, opts client.GetOptions) (memory.Record, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if memory.CheckName("namespace", ns) != nil {
		return memory.Record{}, memory.Errorf(memory.CodeInternal, "there is no path to namespace %q", ns)
	}
	r, err := n.find(ns, id)
	if err != nil || r.now().Scope == memory.ScopeAgent && r.now().Agent != opts.As {
		return memory.Record{}, memory.Errorf(memory.CodeNotFound, "there is no record %s", id)
	}
	rec := *r.now()
	if opts.Version > rec.Version {
		return memory.Record{}, memory.Errorf(memory.CodeNotFound, "record %s has no version %d", id, opts.Version)
	}
	if opts.Version > 0 {
		rec = r.versions[opts.Version-1]
	}
	if n.read != nil {
		n.read(r.now())
	}
	return rec, nil
}

func (n *fakeNode) Revise(_ context.Context, ns, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, err := n.find(ns, id)
	if err = errors.Join(acting(opts.As), err); err != nil {
		return memory.RevisionResponse{}, err
	}
	rec := *r.now()
	if opts.IfVersion != 0 && opts.IfVersion != rec.Version {
		return memory.RevisionResponse{}, memory.Errorf(memory.CodeConflict, "record %s is at version %d by now", id, rec.Version)
	}
	if rev.URI != nil {
		if old := n.named("mem://" + ns + "/" + *rev.URI); old != nil && old != r {
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeConflict, "uri %q names another living memory", *rev.URI)
		}
		rec.URI = "mem://" + ns + "/" + *rev.URI
	}
	if rev.Text != nil {
		rec.Text = *rev.Text
	}
	if rev.Metadata != nil {
		rec.Metadata = *rev.Metadata
	}
	if rev.OccurredAt != nil {
		rec.OccurredAt, r.timed = *rev.OccurredAt, true
	} else if !r.timed {
		rec.OccurredAt = rec.OccurredAt.Add(time.Hour) // it happens now
	}
	if rev.Tags != nil {
		rec.Tags = *rev.Tags
	}
	if rev.DerivedFrom != nil {
		rec.DerivedFrom = *rev.DerivedFrom
	}
	if rev.Kind != nil {
		rec.Kind = *rev.Kind
	}
	if rev.Role != nil {
		rec.Role = *rev.Role
	}
	if rev.Conversation != nil {
		rec.Conversation = *rev.Conversation
	}
	if rev.Importance != nil {
		rec.Importance = rev.Importance
	}
	rec.Version++
	r.versions = append(r.versions, rec)
	return memory.RevisionResponse{RecordID: id, Version: rec.Version}, nil
}

func (n *fakeNode) Forget(_ context.Context, ns, id string, opts client.WriteOptions) (memory.ForgetResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, err := n.find(ns, id)
	if err = errors.Join(acting(opts.As), err); err == nil {
		r.forgotten = true
	}
	return memory.ForgetResponse{RecordID: id}, err
}

// Audit has two rows for each forgotten record, and one of a forget that was refused for each
// other one; each page holds those of one.
func (n *fakeNode) Audit(_ context.Context, ns string, opts client.AuditOptions) (page memory.AuditPage, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := acting(opts.As); err != nil {
		return page, err
	}
	for _, r := range n.records {
		if rec := r.now(); rec.Namespace == ns && rec.RecordID > opts.Cursor {
			row := memory.AuditRow{Type: "memory.forgotten", Outcome: "conflict", RecordID: rec.RecordID}
			if r.forgotten {
				row.Outcome = "forgotten"
				page.Rows = append(page.Rows, row)
			}
			page.Rows = append(page.Rows, row)
			page.Cursor = rec.RecordID
			return page, nil
		}
	}
	return page, nil
}

func (n *fakeNode) History(_ context.Context, ns, id string, opts client.ReadOptions) (memory.History, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := acting(opts.As); err != nil {
		return memory.History{}, err
	}
	n.pasts++
	for _, r := range n.records {
		if rec := r.now(); rec.RecordID == id && rec.Namespace == ns && !r.erased {
			return memory.History{RecordID: id, Versions: r.versions}, nil
		}
	}
	return memory.History{}, memory.Errorf(memory.CodeNotFound, "there is no record %s", id)
}

func (n *fakeNode) ChangeGraph(_ context.Context, _ string, change memory.GraphChange) (memory.GraphChanged, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	had := map[string]bool{}
	for _, before := range n.changes {
		for _, op := range before.Operations {
			for _, e := range op.CreateEntities {
				had[e.Name] = true
			}
		}
	}
	n.changes = append(n.changes, change)
	var done memory.GraphChanged
	for _, op := range change.Operations { // all relations and observations are new
		res := memory.GraphResult{Relations: op.CreateRelations}
		for _, e := range op.CreateEntities {
			if !had[e.Name] {
				res.Entities = append(res.Entities, e)
			}
		}
		for _, o := range op.AddObservations {
			res.Added = append(res.Added, memory.GraphAdded{Entity: o.Entity, Added: o.Contents})
		}
		done.Results = append(done.Results, res)
	}
	return done, nil
}

// ReadGraph has the entities of changes with the types that they had first. One that is called large
// is too large to be read.
func (n *fakeNode) ReadGraph(_ context.Context, _ string, req memory.GraphRequest, opts client.ReadOptions) (g memory.Graph, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := acting(opts.As); err != nil {
		return g, err
	}
	seen := map[string]bool{}
	for _, change := range n.changes {
		for _, op := range change.Operations {
			for _, e := range op.CreateEntities {
				if slices.Contains(req.Names, e.Name) && !seen[e.Name] {
					g.Entities = append(g.Entities, e)
				}
				if seen[e.Name] = true; e.Name == "large" && slices.Contains(req.Names, e.Name) {
					return memory.Graph{}, memory.Errorf(memory.CodeTooLarge, "it is too large")
				}
			}
		}
	}
	return g, nil
}

// living are the records of a namespace that were not forgotten, by uri.
func (n *fakeNode) living(ns string) map[string]memory.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[string]memory.Record{}
	for _, r := range n.records {
		if rec := *r.now(); !r.forgotten && rec.Namespace == ns {
			out[memory.URIPath(rec.URI)] = rec
		}
	}
	return out
}

func (n *fakeNode) load(t *testing.T, change func(*Options), files ...string) (*Summary, string, error) {
	t.Helper()
	return loadInto(t, n, change, files...)
}

// loadInto imports files into the namespace team as the agent ann, and returns what was noted.
func loadInto(t *testing.T, n Node, change func(*Options), files ...string) (*Summary, string, error) {
	t.Helper()
	var said strings.Builder
	opt := plain(&said)
	if change != nil {
		change(&opt)
	}
	sum, err := Load(t.Context(), n, opt, files)
	return sum, said.String(), err
}

// plain are the options of an import into the namespace team as the agent ann.
func plain(said *strings.Builder) Options {
	return Options{Agent: "ann", In: strings.NewReader(""),
		Of:      func(string) (importer.Options, error) { return importer.Options{Namespace: "team", Agent: "ann"}, nil },
		Note:    func(format string, args ...any) { fmt.Fprintf(said, format+"\n", args...) },
		Bar:     func(string) Bar { return Bar{func(memory.Progress) {}, func() {}} },
		Confirm: func(Question) error { return nil },
		Taking:  func(ns, file string) string { return "revise " + ns + " with " + file },
		Sleep:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// loaded is load where nothing is in the way; it returns the counts.
func (n *fakeNode) loaded(t *testing.T, change func(*Options), files ...string) Counts {
	t.Helper()
	sum, said, err := n.load(t, change, files...)
	if err != nil || len(sum.Namespaces) != 1 {
		t.Fatalf("%+v, %v\n%s", sum, err, said)
	}
	return *sum.Namespaces[0]
}

// lines are JSON lines of values.
func lines(t *testing.T, values ...any) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	for _, v := range values {
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

// texts are the texts of records in order.
func texts(recs map[string]memory.Record) []string {
	var out []string
	for _, rec := range recs {
		out = append(out, rec.Text)
	}
	slices.Sort(out)
	return out
}

// from are the records that the agent ann sees of a source and in a format.
func (n *fakeNode) from(t *testing.T, name, format string) []memory.Record {
	t.Helper()
	var found []memory.Record
	if err := Imported(t.Context(), n, "team", "ann", memory.Filter{}, func(rec memory.Record, p importer.Provenance) {
		if p.IsFrom(name, format) {
			found = append(found, rec)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// fitted is a record as a list shows it.
func fitted(rec memory.Record, fit memory.Fit) memory.Record {
	if fit.MaxText != nil {
		rec.Text = rec.Text[:min(len(rec.Text), *fit.MaxText)]
	}
	if len(fit.Fields) == 0 {
		return rec
	}
	b, err := json.Marshal(rec)
	all, some := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	err = errors.Join(err, json.Unmarshal(b, &all))
	for _, name := range fit.Fields {
		if v, ok := all[name]; ok {
			some[name] = v
		}
	}
	b, merr := json.Marshal(some)
	var out memory.Record
	if err = errors.Join(err, merr, json.Unmarshal(b, &out)); err != nil {
		panic(err)
	}
	return out
}
