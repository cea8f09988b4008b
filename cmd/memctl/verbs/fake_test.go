package verbs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mneme/memory"
)

// fakeNow is the time of every test.
var fakeNow = time.Date(2024, 5, 10, 12, 0, 0, 0, time.UTC)

// fakeNode is a small in-memory stand-in for a memnode's REST interface.
type fakeNode struct {
	mu         sync.Mutex
	namespaces map[string]*fakeNamespace
	token      string                // required if not empty
	drop       int                   // answers of captures to lose
	busy       int                   // requests to refuse as overloaded
	batches    int                   // capture requests that came through
	largest    int                   // items in the largest of them
	as         string                // who read or wrote last
	writing    bool                  // the log is yet to be written from the state
	stopped    *memory.WritesStopped // why the leader takes no writes
	doctorFail bool                  // doctor and log verify find something
	drained    bool                  // n1 is
	statuses   map[string]string     // settings of faults
}

type fakeNamespace struct {
	info    memory.Namespace
	records []*fakeRecord
	keys    map[string]*fakeRecord // agent/client id
	audit   []memory.AuditRow
	graph   memory.Graph
	asked   map[string]bool // keys of captures that were refused once

	building *memory.SpaceBuilding
	kept     []memory.SpaceKept
	compared *memory.SpaceComparison
}

type fakeRecord struct {
	versions []memory.Record
	dead     bool
}

func (r *fakeRecord) current() memory.Record { return r.versions[len(r.versions)-1] }

func newFakeNode() *fakeNode {
	return &fakeNode{namespaces: map[string]*fakeNamespace{}, statuses: map[string]string{}}
}

func (n *fakeNode) handler() http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, f func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			n.mu.Lock()
			defer n.mu.Unlock()
			if err := n.admit(r); err != nil {
				fakeProblem(w, err)
				return
			}
			if err := f(w, r); err != nil {
				fakeProblem(w, err)
			}
		})
	}
	on("GET /v1/namespaces", n.listNamespaces)
	on("POST /v1/namespaces", n.createNamespace)
	on("GET /v1/namespaces/{ns}", n.showNamespace)
	on("PATCH /v1/namespaces/{ns}", n.patchNamespace)
	on("DELETE /v1/namespaces/{ns}", n.deleteNamespace)
	on("GET /v1/namespaces/{ns}/embedder", n.showEmbedder)
	on("POST /v1/namespaces/{ns}/embedder", n.switchEmbedder)
	on("DELETE /v1/namespaces/{ns}/embedder/building", n.cancelSwitch)
	on("POST /v1/namespaces/{ns}/events", n.capture)
	on("GET /v1/namespaces/{ns}/events", n.events)
	on("POST /v1/namespaces/{ns}/search", n.search)
	on("POST /v1/search", n.searchNamespaces)
	on("GET /v1/namespaces/{ns}/records", n.list)
	on("GET /v1/namespaces/{ns}/records/{id}", n.get)
	on("PATCH /v1/namespaces/{ns}/records/{id}", n.revise)
	on("DELETE /v1/namespaces/{ns}/records/{id}", n.forget)
	on("GET /v1/namespaces/{ns}/records/{id}/history", n.history)
	on("GET /v1/namespaces/{ns}/records/{id}/timeline", n.timeline)
	on("GET /v1/namespaces/{ns}/audit", n.audit)
	on("GET /v1/namespaces/{ns}/audit/reads", n.auditedReads)
	n.graphRoutes(on)
	n.adminRoutes(on)
	return mux
}

func fakeProblem(w http.ResponseWriter, err error) {
	p := memory.ProblemOf(err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func answer(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func (n *fakeNode) admit(r *http.Request) error {
	if n.token != "" && r.Header.Get("Authorization") != "Bearer "+n.token {
		return memory.Errorf(memory.CodeUnauthenticated, "a token is needed")
	}
	if n.busy > 0 {
		n.busy--
		return memory.Errorf(memory.CodeOverloaded, "too busy")
	}
	if as := r.URL.Query().Get("as"); as != "" {
		n.as = as
	}
	if as := r.Header.Get("Mneme-Agent"); as != "" {
		n.as = as
	}
	return nil
}

func (n *fakeNode) ns(r *http.Request) (*fakeNamespace, error) {
	name := r.PathValue("ns")
	if ns := n.namespaces[name]; ns != nil {
		return ns, nil
	}
	return nil, memory.Errorf(memory.CodeNotFound, "there is no namespace %q", name)
}

func (n *fakeNode) record(r *http.Request) (*fakeNamespace, *fakeRecord, error) {
	ns, err := n.ns(r)
	if err != nil {
		return nil, nil, err
	}
	var begun []*fakeRecord
	beginning, ok := memory.IDBeginning(r.PathValue("id"))
	for _, rec := range ns.records {
		if rec.current().RecordID == r.PathValue("id") {
			return ns, rec, nil
		}
		if ok && r.Method == "GET" && strings.HasSuffix(rec.current().URI, "/"+r.PathValue("id")) { // a uri counts first
			return ns, rec, nil
		}
		if ok && r.Method == "GET" && strings.HasPrefix(rec.current().RecordID, beginning) {
			begun = append(begun, rec)
		}
	}
	switch len(begun) {
	case 0:
		return nil, nil, memory.Errorf(memory.CodeNotFound, "there is no memory %s", r.PathValue("id"))
	case 1:
		return ns, begun[0], nil
	}
	return nil, nil, memory.Errorf(memory.CodeInvalid, "%q begins the ids of %d memories", beginning, len(begun))
}

// log notes one event and returns its position.
func (ns *fakeNamespace) log(typ, agent, recordID string) string {
	pos := fmt.Sprintf("p0.1.%d.0", len(ns.audit)+1)
	ns.audit = append(ns.audit, memory.AuditRow{Position: pos, At: fakeNow.Add(-time.Hour), Type: typ, EventID: "ev-" + pos,
		Agent: agent, RecordID: recordID, Outcome: "applied", Hash: "00"})
	return pos
}

// listNamespaces gives one on each page.
func (n *fakeNode) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	list := memory.NamespaceList{Namespaces: []memory.Namespace{}}
	for _, name := range slices.Sorted(maps.Keys(n.namespaces)) {
		if name <= r.FormValue("cursor") {
			continue
		}
		if len(list.Namespaces) > 0 {
			list.Cursor = list.Namespaces[0].Name
			break
		}
		list.Namespaces = append(list.Namespaces, n.namespaces[name].view())
	}
	return answer(w, list)
}

func (ns *fakeNamespace) view() memory.Namespace {
	info := ns.info
	info.Records = uint64(len(ns.records))
	return info
}

func (n *fakeNode) createNamespace(w http.ResponseWriter, r *http.Request) error {
	var req memory.CreateNamespace
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return err
	}
	if n.namespaces[req.Name] != nil {
		return memory.Errorf(memory.CodeConflict, "namespace %q exists", req.Name)
	}
	if req.Settings["search.min_score"] == "2" {
		return memory.Errorf(memory.CodeInvalid, "setting search.min_score: \"2\" must be a number from 0 to 1")
	}
	if req.DryRun {
		return answer(w, memory.Namespace{Name: req.Name})
	}
	ns := &fakeNamespace{keys: map[string]*fakeRecord{}, asked: map[string]bool{}, info: memory.Namespace{Name: req.Name, ID: "01NAMESPACE", CreatedAt: fakeNow.Add(-time.Hour),
		Settings: req.Settings, Embedder: memory.EmbedderInfo{Provider: "builtin", Model: "static", Dimensions: 256, Space: "s1"}, Position: "p0.1.0.0"}}
	n.namespaces[req.Name] = ns
	w.WriteHeader(http.StatusCreated)
	return answer(w, ns.view())
}

func (n *fakeNode) showNamespace(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	return answer(w, ns.view())
}

func (n *fakeNode) patchNamespace(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	var req memory.PatchNamespace
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return err
	}
	if req.DryRun {
		return answer(w, ns.view())
	}
	if ns.info.Settings == nil {
		ns.info.Settings = map[string]string{}
	}
	for k, v := range req.Settings {
		delete(ns.info.Settings, k)
		if v != nil {
			ns.info.Settings[k] = *v
		}
	}
	return answer(w, ns.view())
}

func (n *fakeNode) deleteNamespace(w http.ResponseWriter, r *http.Request) error {
	if _, err := n.ns(r); err != nil {
		return err
	}
	delete(n.namespaces, r.PathValue("ns"))
	return json.NewEncoder(w).Encode(map[string]string{"name": r.PathValue("ns"), "position": "p0.0.0.1"})
}

func (n *fakeNode) capture(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
		return err
	}
	items, single := make([]memory.Capture, 1), raw[0] == '{'
	if single {
		err = json.Unmarshal(raw, &items[0])
	} else {
		err = json.Unmarshal(raw, &items)
	}
	if err != nil {
		return memory.Errorf(memory.CodeInvalid, "body: %w", err)
	}
	n.batches++
	n.largest = max(n.largest, len(items))
	var resp memory.CaptureResponse
	for _, item := range items {
		resp.Results = append(resp.Results, ns.add(r.PathValue("ns"), memory.Origin(r.FormValue("origin")), item))
	}
	resp.Position = fmt.Sprintf("p0.1.%d.0", len(ns.audit))
	if n.drop > 0 {
		n.drop--
		panic(http.ErrAbortHandler)
	}
	if res := resp.Results[0]; single && res.Error != nil {
		return memory.Errorf(res.Error.Code, "%s", res.Error.Detail)
	}
	return answer(w, resp)
}

func (ns *fakeNamespace) add(name string, origin memory.Origin, c memory.Capture) memory.CaptureResult {
	if strings.Contains(c.Text, "REJECT") {
		return memory.CaptureResult{ID: c.ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: memory.CodeQuota, Detail: "quota is used up"}}
	}
	key := c.Agent + "/" + c.ID
	if strings.Contains(c.Text, "BUSY") && !ns.asked[key] { // taken when it is sent again
		ns.asked[key] = true
		return memory.CaptureResult{ID: c.ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: memory.CodeOverloaded, Detail: "too busy"}}
	}
	if old := ns.keys[key]; old != nil {
		cur := old.current()
		res := memory.CaptureResult{ID: c.ID, RecordID: cur.RecordID, Position: cur.Position, Status: memory.StatusDuplicate}
		if cur.Text != c.Text {
			res.Status = memory.StatusConflict
			res.Error = &memory.ItemError{Code: memory.CodeConflict, Detail: "the id was used for something else"}
		}
		return res
	}
	c.Normalise()
	rec := memory.Record{RecordID: fmt.Sprintf("01J%023d", len(ns.records)+1), Namespace: name, Version: 1, Text: c.Text, Kind: c.Kind, Role: c.Role,
		Agent: c.Agent, Tags: c.Tags, Conversation: c.Conversation, Subject: c.Subject, Scope: c.Scope, Importance: c.Importance,
		OccurredAt: fakeNow.Add(-2 * time.Hour), CreatedAt: fakeNow.Add(-time.Hour), DerivedFrom: c.DerivedFrom, Metadata: c.Metadata, ID: c.ID, Origin: origin}
	if c.OccurredAt != nil {
		rec.OccurredAt = *c.OccurredAt
	}
	rec.URI = "mem://" + name + "/" + rec.RecordID
	if c.URI != "" {
		full, bad := memory.FullURI(name, c.URI)
		if bad != nil {
			return memory.CaptureResult{ID: c.ID, Status: memory.StatusRejected, Error: &memory.ItemError{Code: bad.Code, Detail: bad.Message}}
		}
		rec.URI = full
	}
	rec.Position = ns.log("memory.captured", c.Agent, rec.RecordID)
	fr := &fakeRecord{versions: []memory.Record{rec}}
	ns.records = append(ns.records, fr)
	ns.keys[key] = fr
	return memory.CaptureResult{ID: c.ID, RecordID: rec.RecordID, Position: rec.Position, Status: memory.StatusCreated}
}

func (n *fakeNode) search(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	var req memory.SearchRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return err
	}
	n.as = first(req.As, n.as)
	resp := found(ns, req)
	if req.Budget != nil && len(resp.Results) > 1 { // here any budget is for one
		resp.LeftOff = &memory.LeftOff{Count: len(resp.Results) - 1, Hint: "ask for less"}
		resp.Results = resp.Results[:1]
	}
	return answerShown(w, resp, req.Fields)
}

// searchNamespaces gives what is found in one after the other.
func (n *fakeNode) searchNamespaces(w http.ResponseWriter, r *http.Request) error {
	var req memory.SearchNamespaces
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return err
	}
	n.as = first(req.As, n.as)
	resp := memory.SearchResponse{Results: []memory.Hit{}, Mode: memory.ModeHybrid, TookMS: 1.5, Position: "p0.1.1.0,p1.0.2.0", Namespaces: req.Namespaces}
	for _, name := range req.Namespaces {
		ns := n.namespaces[name]
		if ns == nil {
			return memory.NoNamespace(name)
		}
		for _, h := range found(ns, req.SearchRequest).Results {
			h.Namespace = name
			resp.Results = append(resp.Results, h)
		}
	}
	return answerShown(w, resp, req.Fields)
}

func answerShown(w http.ResponseWriter, v shown, fields []string) error {
	doc, err := v.Shown(fields)
	if err != nil {
		return err
	}
	return answer(w, doc)
}

// fitOf reads how much of each record a request wants.
func fitOf(r *http.Request) memory.Fit {
	var f memory.Fit
	if n, err := strconv.Atoi(r.URL.Query().Get("max_text")); err == nil {
		f.MaxText = &n
	}
	if names := r.URL.Query().Get("fields"); names != "" {
		f.Fields = strings.Split(names, ",")
	}
	return f
}

func found(ns *fakeNamespace, req memory.SearchRequest) memory.SearchResponse {
	resp := memory.SearchResponse{Results: []memory.Hit{}, Mode: memory.ModeHybrid, TookMS: 1.5, Position: "p0.1.1.0"}
	for _, fr := range ns.records {
		rec := fr.current()
		kindOK := req.Filter == nil || len(req.Filter.Kinds) == 0 || slices.Contains(req.Filter.Kinds, rec.Kind)
		if fr.dead || !kindOK || !strings.Contains(strings.ToLower(rec.Text), strings.ToLower(req.Query)) || len(resp.Results) == *req.Limit {
			continue
		}
		h := memory.Hit{ID: rec.RecordID, RecordID: rec.RecordID, URI: rec.URI, Text: rec.Text, Snippet: rec.Text, Kind: rec.Kind, Agent: rec.Agent, Tags: rec.Tags,
			OccurredAt: rec.OccurredAt, CreatedAt: rec.CreatedAt, Version: rec.Version, Score: 0.87, MatchedBy: []string{"text"}, Position: rec.Position}
		h.Text, h.Truncated = req.Text(rec.Text)
		if req.Explain {
			h.Explain = &memory.Explain{Parts: []memory.ExplainPart{{Source: "text", Weight: 0.3, Value: 0.5, Raw: 7}},
				Terms: []memory.ExplainTerm{{Term: "deploy", Score: 1.25}}}
			if strings.Contains(req.Query, "needs") {
				h.Explain.Terms = append(h.Explain.Terms, memory.ExplainTerm{Term: "revew", ReadAs: "review", Kind: "edit", Score: 0.5})
				h.Explain.NewerThan, h.Explain.OlderThan = fmt.Sprintf("01J%023d", 2), fmt.Sprintf("01J%023d", 3)
			}
		}
		resp.Results = append(resp.Results, h)
	}
	switch req.Query {
	case "dep* tu*":
		resp.Corrections = []memory.Correction{{Word: "dep*", Kind: "many"}, {Word: "dep*", ReadAs: "deploys", Kind: "begins", Weight: 1, Docs: 2}, {Word: "dep*", ReadAs: "depots", Kind: "begins", Weight: 1, Docs: 2},
			{Word: "tu*", ReadAs: "tuesdays", Kind: "begins", Weight: 1, Docs: 1}}
	case `"review needs"`:
		resp.Corrections = []memory.Correction{{Word: req.Query, ReadAs: "review needs", Kind: "phrase", Docs: 1}}
	case `"needs reviews"`:
		resp.Corrections = []memory.Correction{{Word: req.Query, ReadAs: "needs reviews", Kind: "phrase"}}
	case `ferry "deploys moon" "moon tide"`:
		resp.Corrections = []memory.Correction{{Word: `"deploys moon"`, ReadAs: "deploys moon", Kind: "phrase", Weight: 1, Docs: 1}, {Word: `"moon tide"`, ReadAs: "moon tide", Kind: "phrase", Weight: 1}}
	case "Tuesdys deplois":
		resp.Corrections = []memory.Correction{{Word: "Tuesdys", ReadAs: "tuesdays", Kind: "edit", Weight: 0.8, Distance: 1, Docs: 1},
			{Word: "pg", ReadAs: "postgres", Kind: "alias", Weight: 0.4, Docs: 1}, {Word: "pg", ReadAs: "database", Kind: "related", Weight: 0.2, Docs: 2},
			{Word: "deplois", ReadAs: "deploys", Kind: "edit", Weight: 0.8, Distance: 1, Docs: 2}, {Word: "deplois", ReadAs: "deploy\nment", Kind: "edit", Weight: 0.8, Distance: 1, Docs: 1},
			{Word: "deplois", ReadAs: "deploys", Kind: "edit", Weight: 0.8, Distance: 1, Docs: 1}}
	}
	return resp
}

func (n *fakeNode) list(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit == 0 || n.statuses["page"] != "" {
		limit = 2
	}
	start, _ := strconv.Atoi(strings.TrimPrefix(q.Get("cursor"), "c"))
	fit := fitOf(r)
	out := memory.RecordList{Records: []memory.Record{}, Position: "p0.1.1.0"}
	i := 0
	for _, fr := range slices.Backward(ns.records) {
		rec := fr.current()
		if fr.dead || q.Get("uri") != "" && rec.URI != q.Get("uri") || q.Get("kind") != "" && q.Get("kind") != string(rec.Kind) {
			continue
		}
		if i++; i <= start {
			continue
		}
		if len(out.Records) == limit {
			out.Cursor = "c" + strconv.Itoa(start+limit)
			break
		}
		if q.Get("uri") == "" {
			rec.Text, rec.Truncated = fit.Text(rec.Text)
		}
		out.Records = append(out.Records, rec)
	}
	return answerShown(w, out, fit.Fields)
}

func (n *fakeNode) get(w http.ResponseWriter, r *http.Request) error {
	_, fr, err := n.record(r)
	if err != nil {
		return err
	}
	if fr.dead {
		return memory.Errorf(memory.CodeNotFound, "%s was forgotten", r.PathValue("id"))
	}
	v, _ := strconv.Atoi(r.URL.Query().Get("version"))
	if v > len(fr.versions) {
		return memory.Errorf(memory.CodeNotFound, "there is no version %d", v)
	}
	if v == 0 {
		v = len(fr.versions)
	}
	return answer(w, fr.versions[v-1])
}
