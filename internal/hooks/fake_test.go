package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mneme/client"
	"mneme/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testNow = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

const testAddr = "http://node:8787"

// fakeNode stores captures as a node does: by id, with a conflict where the body differs.
// Two texts are near where they have the same letters.
type fakeNode struct {
	mu      sync.Mutex
	records []memory.Record
	bodies  map[string]memory.Capture // by agent/id
	asked   []string
	recalls []memory.SearchRequest // the requests of asked
	onSend  func(memory.Capture)   // called with each capture
	near    []memory.SearchRequest // those for what says the same as a capture
	err     error                  // of every call
	slow    time.Duration          // that every call takes, beside what it does
	lose    int                    // answers of captures to lose, after they were stored
	sent    []string
	missing string           // a namespace that is not there
	barred  map[string]error // of captures, by namespace
	blind   error            // of searches
	choke   string           // a text that is not taken, whatever else is
	choked  error            // why it is not; nil is a defect
	unread  error            // of reads of one record
	ghosts  []memory.Record  // what a search that lags shows before the rest
	deaf    int              // answers of revisions to lose, after they were made
	meddle  int              // times that a record is changed before a revision

	forgotten []memory.Record // that were there, with their last version
	past      error           // of their histories

	sourceless memory.Code // of captures whose sources are gone
}

func newFake() *fakeNode { return &fakeNode{bodies: map[string]memory.Capture{}} }

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" .,!:\"", r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

func (n *fakeNode) Search(_ context.Context, ns string, req memory.SearchRequest) (memory.SearchResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refuse(ns); err != nil {
		return memory.SearchResponse{}, err
	}
	if err := req.Validate(); err != nil {
		return memory.SearchResponse{}, err
	}
	if req.Syntax != memory.SyntaxPlain {
		return memory.SearchResponse{}, memory.Errorf(memory.CodeInternal, "what somebody said is asked for with operators: %q", req.Query)
	}
	if n.blind != nil {
		return memory.SearchResponse{}, n.blind
	}
	if req.All {
		n.near = append(n.near, req)
	} else {
		n.asked = append(n.asked, req.Query)
		n.recalls = append(n.recalls, req)
	}
	var resp memory.SearchResponse
	for _, r := range append(slices.Clone(n.ghosts), n.records...) {
		score := 0.0
		for _, word := range strings.Fields(strings.ToLower(req.Query)) {
			if len(word) > 4 && strings.Contains(strings.ToLower(r.Text), strings.Trim(word, "?.")) {
				score = 0.9
			}
		}
		h := memory.Hit{ID: r.RecordID, URI: "mem://" + ns + "/" + r.RecordID, Text: r.Text, Snippet: r.Text, Agent: r.Agent, Scope: r.Scope, Metadata: r.Metadata, Score: score}
		if letters(r.Text) == letters(req.Query) {
			h.VectorScore = 0.97
		}
		if h.VectorScore > 0 || score > 0 && !req.All {
			resp.Results = append(resp.Results, h)
		}
	}
	resp.Results = resp.Results[:min(len(resp.Results), *req.Limit)]
	resp.NothingFound = len(resp.Results) == 0
	return resp, nil
}

func (n *fakeNode) List(_ context.Context, ns string, opts client.ListOptions) (memory.RecordList, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refuse(ns); err != nil {
		return memory.RecordList{}, err
	}
	if err := opts.Validate(); err != nil {
		return memory.RecordList{}, err
	}
	if opts.Purpose != memory.PurposeInject {
		return memory.RecordList{}, memory.Errorf(memory.CodeInternal, "a list for a prompt that is not audited")
	}
	var list memory.RecordList
	for _, r := range slices.Backward(n.records) {
		f := opts.Filter
		if (len(f.Kinds) == 0 || slices.Contains(f.Kinds, r.Kind)) && !slices.ContainsFunc(f.Tags, func(t string) bool { return !slices.Contains(r.Tags, t) }) && len(list.Records) < opts.Limit {
			list.Records = append(list.Records, r)
		}
	}
	return list, nil
}

func (n *fakeNode) refuse(ns string) error {
	time.Sleep(n.slow)
	if n.err != nil {
		return n.err
	}
	if ns == n.missing {
		return memory.NoNamespace(ns)
	}
	return nil
}

func (n *fakeNode) CaptureBatch(_ context.Context, ns string, items []memory.Capture, opts client.CaptureOptions) (memory.CaptureResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refuse(ns); err != nil {
		return memory.CaptureResponse{}, err
	}
	item := items[0]
	if err := item.Validate(); err != nil {
		return memory.CaptureResponse{}, err
	}
	if opts.Origin != memory.OriginHook {
		return memory.CaptureResponse{}, memory.Errorf(memory.CodeInternal, "origin %q", opts.Origin)
	}
	if err := n.barred[ns]; err != nil {
		return memory.CaptureResponse{}, err
	}
	if item.Text == n.choke && n.choked != nil {
		return memory.CaptureResponse{}, n.choked
	}
	if item.Text == n.choke {
		return memory.CaptureResponse{}, memory.Errorf(memory.CodeInternal, "a defect")
	}
	for _, id := range item.DerivedFrom {
		if !slices.ContainsFunc(n.records, func(r memory.Record) bool { return r.RecordID == id }) {
			return memory.CaptureResponse{Results: []memory.CaptureResult{{ID: item.ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: cmp.Or(n.sourceless, memory.CodeInvalid), Detail: "derived_from: there is no record " + id}}}}, nil
		}
	}
	n.sent = append(n.sent, item.Text)
	if n.onSend != nil {
		n.onSend(item)
	}
	r := memory.CaptureResult{ID: item.ID, Status: memory.StatusCreated}
	before, spent := n.bodies[item.Agent+"/"+item.ID]
	switch {
	case !spent:
		r.RecordID = fmt.Sprintf("01JC2Y3K5V8Q0T4W6X7Z%06d", len(n.records)+len(n.forgotten))
		n.records = append(n.records, memory.Record{RecordID: r.RecordID, ID: item.ID, Text: item.Text, Agent: item.Agent, Origin: opts.Origin, Kind: item.Kind, Role: item.Role, Scope: cmp.Or(item.Scope, memory.ScopeTeam), Tags: item.Tags,
			Conversation: item.Conversation, DerivedFrom: item.DerivedFrom, Metadata: item.Metadata, Version: 1, CreatedAt: testNow.Add(time.Duration(len(n.records)) * time.Second)})
		n.bodies[item.Agent+"/"+item.ID] = item
	default:
		r.RecordID = n.recordOf(item).RecordID
		if r.Status = memory.StatusDuplicate; !sameBody(before, item) {
			r.Status, r.Error = memory.StatusConflict, &memory.ItemError{Code: memory.CodeConflict, Detail: "used"}
		}
	}
	if n.lose > 0 {
		n.lose--
		return memory.CaptureResponse{}, memory.Errorf(memory.CodeOutcomeUnknown, "the answer was lost")
	}
	return memory.CaptureResponse{Results: []memory.CaptureResult{r}}, nil
}

func sameBody(a, b memory.Capture) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return reflect.DeepEqual(x, y)
}

func (n *fakeNode) recordOf(item memory.Capture) *memory.Record {
	for i := range n.records {
		if n.records[i].Agent == item.Agent && n.records[i].ID == item.ID {
			return &n.records[i]
		}
	}
	for i := range n.forgotten {
		if n.forgotten[i].Agent == item.Agent && n.forgotten[i].ID == item.ID {
			return &n.forgotten[i]
		}
	}
	return &memory.Record{} // was forgotten
}

func (n *fakeNode) Get(_ context.Context, ns, id string, _ client.GetOptions) (memory.Record, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refuse(ns); err != nil {
		return memory.Record{}, err
	}
	if n.unread != nil {
		return memory.Record{}, n.unread
	}
	for _, r := range n.records {
		if r.RecordID == id {
			return r, nil
		}
	}
	return memory.Record{}, memory.Errorf(memory.CodeNotFound, "there is no memory %s", id)
}

func (n *fakeNode) History(_ context.Context, ns, id string, _ client.ReadOptions) (memory.History, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refuse(ns); err != nil {
		return memory.History{}, err
	}
	if n.past != nil {
		return memory.History{}, n.past
	}
	for _, r := range append(slices.Clone(n.forgotten), n.records...) {
		if r.RecordID == id {
			return memory.History{RecordID: id, Versions: []memory.Record{r}}, nil
		}
	}
	return memory.History{}, memory.Errorf(memory.CodeNotFound, "there is no memory %s", id)
}

// forget takes a record away, as it is then.
func (n *fakeNode) forget(i int, metadata string) {
	n.records[i].Metadata = json.RawMessage(metadata)
	n.forgotten = append(n.forgotten, n.records[i])
	n.records = slices.Delete(n.records, i, i+1)
}

func (n *fakeNode) Revise(_ context.Context, ns, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.refuse(ns); err != nil {
		return memory.RevisionResponse{}, err
	}
	for i := range n.records {
		r := &n.records[i]
		if r.RecordID != id {
			continue
		}
		if n.meddle > 0 {
			n.meddle--
			r.Version++
		}
		if opts.IfVersion != r.Version {
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeConflict, "another version")
		}
		r.Version++
		r.Metadata = *rev.Metadata
		if n.deaf > 0 {
			n.deaf--
			return memory.RevisionResponse{}, memory.Errorf(memory.CodeOutcomeUnknown, "the answer was lost")
		}
	}
	return memory.RevisionResponse{RecordID: id}, nil
}

func (n *fakeNode) texts() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []string{}
	for _, r := range n.records {
		out = append(out, r.Text)
	}
	return out
}

func (n *fakeNode) set(f func()) { n.mu.Lock(); defer n.mu.Unlock(); f() }

// world is the disk, the node and the clock of a test, and what was noted.
type world struct {
	t    *testing.T
	dir  string
	addr string
	node *fakeNode
	now  time.Time
	set  Settings
	mu   sync.Mutex
	said []string
	ids  int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), addr: testAddr, node: newFake(), now: testNow, set: DefaultSettings()}
}

func (w *world) disk() *Disk {
	w.t.Helper()
	d, err := OpenDisk(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) runner(agent string) *Runner {
	w.t.Helper()
	return &Runner{Node: w.node, Addr: w.addr, Disk: w.disk(), Settings: w.set, Namespace: "team-a", Agent: agent,
		Now:   func() time.Time { return w.now },
		NewID: func() string { w.mu.Lock(); defer w.mu.Unlock(); w.ids++; return fmt.Sprint("nonce-", w.ids) },
		Note: func(f string, args ...any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, fmt.Sprintf(f, args...))
		}}
}

// hook is one hook, from payload to answer. A minute passes before it.
func (w *world) hook(agent, event, payload string) string {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	return w.atOnce(agent, event, payload)
}

func (w *world) atOnce(agent, event, payload string) string {
	w.t.Helper()
	e, err := Normalise(agent, event, []byte(payload))
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.runner(agent)
	r.Keep(w.t.Context(), &e)
	text := r.Recall(w.t.Context(), &e)
	if r.Send(w.t.Context()) {
		w.drain(agent)
	}
	return string(Output(e, text, ""))
}

// drain sends what waits, as the process does that a hook leaves it to.
func (w *world) drain(agent string) Drained {
	return w.runner(agent).Drain(w.t.Context(), DrainOptions{Yield: true})
}

func (w *world) prompt(session, text string) string {
	w.t.Helper()
	return w.hook(ClaudeCode, "UserPromptSubmit", toJSON(map[string]string{"session_id": session, "cwd": "/home/u/proj", "prompt": text}))
}

func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func (w *world) notes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.said, "\n")
}

func (w *world) stored(want ...string) {
	w.t.Helper()
	if got := w.node.texts(); !slices.Equal(got, want) {
		w.t.Errorf("stored %q, want %q\n%s", got, want, w.notes())
	}
}
