package verbs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mneme/memory"
)

func (n *fakeNode) revise(w http.ResponseWriter, r *http.Request) error {
	ns, fr, err := n.record(r)
	if err != nil {
		return err
	}
	cur := fr.current()
	if m := r.Header.Get("If-Match"); m != "" && m != strconv.Itoa(cur.Version) {
		return memory.Errorf(memory.CodeConflict, "it stands at version %d", cur.Version)
	}
	var rev memory.Revision
	if err := json.NewDecoder(r.Body).Decode(&rev); err != nil {
		return err
	}
	if rev.Text != nil {
		cur.Text = *rev.Text
	}
	if rev.Kind != nil {
		cur.Kind = *rev.Kind
	}
	if rev.Tags != nil {
		cur.Tags = *rev.Tags
	}
	if rev.Conversation != nil {
		cur.Conversation = *rev.Conversation
	}
	if rev.Metadata != nil {
		cur.Metadata = *rev.Metadata
	}
	cur.Version++
	cur.Position = ns.log("memory.revised", r.Header.Get("Mneme-Agent"), cur.RecordID)
	fr.versions = append(fr.versions, cur)
	return answer(w, memory.RevisionResponse{RecordID: cur.RecordID, Version: cur.Version, Position: cur.Position})
}

func (n *fakeNode) forget(w http.ResponseWriter, r *http.Request) error {
	ns, fr, err := n.record(r)
	if err != nil {
		return err
	}
	fr.dead = true
	id := fr.current().RecordID
	return answer(w, memory.ForgetResponse{RecordID: id, Position: ns.log("memory.forgotten", r.Header.Get("Mneme-Agent"), id)})
}

func (n *fakeNode) history(w http.ResponseWriter, r *http.Request) error {
	_, fr, err := n.record(r)
	if err != nil {
		return err
	}
	h := memory.History{RecordID: fr.current().RecordID, Versions: fr.versions, Position: "p0.1.1.0"}
	for _, v := range fr.versions {
		h.Events = append(h.Events, memory.HistoryEvent{Type: "version", EventID: "e", Agent: v.Agent, At: v.CreatedAt, Version: v.Version, Position: v.Position})
	}
	return answer(w, h)
}

func (n *fakeNode) timeline(w http.ResponseWriter, r *http.Request) error {
	ns, fr, err := n.record(r)
	if err != nil {
		return err
	}
	before, _ := strconv.Atoi(r.URL.Query().Get("before"))
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	at := 0
	for i, other := range ns.records {
		if other == fr {
			at = i
		}
	}
	tl := memory.Timeline{Anchor: fr.current(), Position: "p0.1.1.0"}
	for i, other := range ns.records {
		switch {
		case i < at && i >= at-before:
			tl.Before = append(tl.Before, other.current())
		case i > at && i <= at+after:
			tl.After = append(tl.After, other.current())
		}
	}
	return answerShown(w, tl, fitOf(r).Fields)
}

// after returns the index of the first row behind a position.
func (ns *fakeNamespace) after(pos string) int {
	for i, row := range ns.audit {
		if row.Position == pos {
			return i + 1
		}
	}
	return 0
}

func (n *fakeNode) audit(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	page := memory.AuditPage{Rows: []memory.AuditRow{}}
	start := ns.after(q.Get("from"))
	if c := q.Get("cursor"); c != "" {
		start, _ = strconv.Atoi(c)
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit == 0 {
		limit = 2
	}
	for i := start; i < len(ns.audit); i++ {
		if of := q.Get("type"); of != "" && of != ns.audit[i].Type {
			continue
		}
		if actor := q.Get("actor"); actor != "" && actor != ns.audit[i].Agent {
			continue
		}
		if len(page.Rows) == limit {
			page.Cursor = strconv.Itoa(i)
			break
		}
		page.Rows = append(page.Rows, ns.audit[i])
	}
	return answer(w, page)
}

// auditedReads tells of one read for each capture, by who made it, in pages of two.
func (n *fakeNode) auditedReads(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	page := memory.AuditedReadPage{Reads: []memory.AuditedRead{}}
	start, limit := len(ns.audit)-1, 2
	if c := q.Get("cursor"); c != "" {
		start, _ = strconv.Atoi(c)
	}
	if l, _ := strconv.Atoi(q.Get("limit")); l > 0 {
		limit = min(l, limit)
	}
	for i := start; i >= 0; i-- {
		row := &ns.audit[i]
		if q.Get("agent") != "" && q.Get("agent") != row.Agent || q.Get("record") != "" && q.Get("record") != row.RecordID {
			continue
		}
		if len(page.Reads) == limit {
			page.Cursor = strconv.Itoa(i)
			break
		}
		read := memory.AuditedRead{Position: row.Position, EventID: row.EventID, At: row.At, Agent: row.Agent, Scope: memory.ScopeTeam, Purpose: memory.PurposeInject, Given: []memory.Given{}}
		if i > 0 {
			read.Given = append(read.Given, memory.Given{RecordID: row.RecordID, Version: 1})
		}
		page.Reads = append(page.Reads, read)
	}
	return answer(w, page)
}

// events sends two events a connection and then breaks it, so that clients have
// to come back.
func (n *fakeNode) events(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	from := first(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("from"))
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, "retry: 1\n\n")
	rows := ns.audit[ns.after(from):]
	for _, row := range rows[:min(2, len(rows))] {
		data, _ := json.Marshal(map[string]string{"agent": row.Agent, "text": "of " + row.RecordID})
		at := row.At
		b, _ := json.Marshal(memory.Event{SpecVersion: "1.0", ID: row.EventID, Source: "/namespaces/x", Type: "io.mneme." + row.Type + ".v1",
			Subject: row.RecordID, Time: &at, Data: data, Position: row.Position})
		_, _ = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", row.Position, row.Type, b)
	}
	return nil
}

func lines[R any](w http.ResponseWriter, result R) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc := json.NewEncoder(w)
	_ = enc.Encode(memory.ProgressLine[R]{Progress: &memory.Progress{Done: 1, Total: 2, Unit: "events"}})
	_ = enc.Encode(memory.ProgressLine[R]{Progress: &memory.Progress{Done: 2, Total: 2, Unit: "events"}})
	return enc.Encode(memory.ProgressLine[R]{Result: &result})
}

func (n *fakeNode) adminRoutes(on func(string, func(http.ResponseWriter, *http.Request) error)) {
	on("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) error {
		st := memory.Status{ClusterID: "c1", Auth: "off", Version: "test", Nodes: []memory.NodeStatus{{ID: "n1", Role: "leader", Address: "here", Version: "test"}},
			Shards:   []memory.ShardStatus{{ID: 0, Leader: "n1", Position: "p0.1.1.0", StateHash: "abc", PendingVectors: 3, Log: memory.LogStatus{First: 1, Last: 9}}},
			Embedder: memory.EmbedderInfo{Provider: "builtin", Model: "static", Dimensions: 256, Space: "s1"},
			Vector:   memory.VectorStatus{Engine: "mneme", RecallGuard: memory.GuardStatus{State: "ok", Recall: 0.99}}}
		if n.doctorFail {
			st.Shards[0].Log.Diverged, st.Shards[0].Halted = "hash differs at 7", "stopped"
			st.Shards[0].Log.Unreachable = "no answer"
			st.Nodes = append(st.Nodes, memory.NodeStatus{ID: "n2", Role: memory.RoleUnreachable}, memory.NodeStatus{ID: "n3", Name: "n3-b", Role: memory.RoleUnreachable},
				memory.NodeStatus{ID: "n3", Name: "n3-c", Role: memory.RoleUnreachable, Learner: true})
		}
		if n.writing {
			st.Shards[0].Log.Diverged, st.Shards[0].Log.Repair = "the log of the new cluster has yet to be written from the state", &memory.Progress{}
		}
		st.Shards[0].WritesStopped = n.stopped
		return answer(w, st)
	})
	on("GET /v1/cluster", func(w http.ResponseWriter, _ *http.Request) error {
		return answer(w, memory.ClusterStatus{ClusterID: "c1", Nodes: []memory.ClusterNode{{ID: "n1", Address: "n1:1", Role: memory.RoleVoter, Reachable: true, Drained: n.drained}, {ID: "n3", Address: "n3:1", Role: memory.RoleVoter, Why: "listens and does not answer"},
			{ID: "n5", Address: "n5:1", Role: memory.RoleVoter, Reachable: true, Why: "is not ready yet"}, {ID: "n6", Address: "n6:1", Role: memory.RoleVoter}},
			Shards: []memory.ClusterShard{{Leader: "n1", Term: 2, Copies: &memory.LogCopies{Have: 1, Want: 3}, WritesStopped: n.stopped, Replicas: []memory.ClusterReplica{
				{Node: "n1", Position: "p0.1.1.0", StateHash: "abc", Log: memory.ClusterCopy{Last: 1, Current: true}},
				{Node: "n3", Position: "p0.1.1.0", StateHash: "abc"}}}}})
	})
	on("POST /v1/admin/cluster/remove", func(w http.ResponseWriter, r *http.Request) error {
		var req memory.RemoveNode
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return err
		}
		if req.Node == "n2" && !req.Force {
			return memory.Errorf(memory.CodeConflict, "the node n2-b answers").WithHint("stop it first")
		}
		return answer(w, memory.NodeRemoval{Removed: []string{req.Node + "-b"}})
	})
	on("POST /v1/admin/cluster/transfer", func(w http.ResponseWriter, r *http.Request) error {
		var req memory.TransferLead
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return err
		}
		if req.Node == "n3" {
			return memory.Errorf(memory.CodeConflict, "the node n3 is drained").WithHint("memctl cluster drain n3 --undo")
		}
		return answer(w, memory.LeadTransfer{Leader: req.Node, Moved: req.Node != "n1"})
	})
	on("POST /v1/admin/cluster/drain", func(w http.ResponseWriter, r *http.Request) error {
		var req memory.DrainNode
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return err
		}
		if req.Node == "n3" {
			return memory.Errorf(memory.CodeConflict, "no other node is fit to lead: without n3 nobody could")
		}
		n.drained = !req.Undo
		return answer(w, memory.NodeDrain{Node: cmp.Or(req.Node, "n1"), Drained: !req.Undo, Leader: "n2"})
	})
	on("GET /v1/admin/version", func(w http.ResponseWriter, _ *http.Request) error {
		return answer(w, memory.VersionInfo{Version: "v9.9.9", Commit: "0123456789abcdef"})
	})
	on("GET /v1/admin/doctor", func(w http.ResponseWriter, _ *http.Request) error {
		rep := memory.DoctorReport{OK: true, Checks: []memory.Check{{Name: "disk", State: "ok", Detail: "12 GiB free"}}}
		if detail := n.statuses["doctor"]; detail != "" {
			rep.Checks = append(rep.Checks, memory.Check{Name: "cluster", State: "warn", Detail: detail})
		}
		if n.doctorFail {
			rep.OK = false
			rep.Checks = append(rep.Checks, memory.Check{Name: "log", State: "fail", Detail: "hash differs", Hint: "memctl log repair"})
		}
		return answer(w, rep)
	})
	on("POST /v1/admin/reload", func(w http.ResponseWriter, _ *http.Request) error {
		r := memory.ReloadReport{File: "c.yaml", Settings: []memory.ReloadedSetting{{Name: "log-level", From: "info", To: "debug", Applied: true}, {Name: "shards", From: "1", To: "3"}},
			Files: []memory.ReloadedFile{{Name: "operator token", State: memory.FileRead}}}
		if n.statuses["reload"] != "" {
			r.Files = append(r.Files, memory.ReloadedFile{Name: "certificate for clients", State: memory.FileRefused, Detail: "it is nonsense"})
		}
		return answer(w, r)
	})
	on("GET /v1/admin/aside", func(w http.ResponseWriter, _ *http.Request) error {
		list := memory.AsideList{Aside: []memory.Aside{}}
		if n.statuses["aside"] != "" {
			list.Aside, list.Bytes = fakeAside(), 5<<20
		}
		return answer(w, list)
	})
	on("POST /v1/admin/aside/remove", func(w http.ResponseWriter, r *http.Request) error {
		var req memory.RemoveAside
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return err
		}
		out := memory.AsideRemoval{Removed: []memory.Aside{}, Kept: []memory.Aside{}, DryRun: req.DryRun}
		for _, one := range fakeAside() {
			if one.At.Before(req.Before) {
				out.Removed, out.Bytes = append(out.Removed, one), out.Bytes+one.Bytes
			} else {
				out.Kept = append(out.Kept, one)
			}
		}
		return answer(w, out)
	})
	on("POST /v1/admin/rebuild", func(w http.ResponseWriter, _ *http.Request) error {
		rep := memory.RebuildReport{Shards: []memory.RebuildShard{{ID: 0, Position: "p0.1.1.0", StateHash: "abc", Before: "abc", Events: 9, TookMS: 1500}}}
		if n.doctorFail {
			rep.Shards[0].Before = "def"
		}
		return lines(w, rep)
	})
	on("POST /v1/admin/log/verify", func(w http.ResponseWriter, _ *http.Request) error {
		sh := memory.VerifyShard{ID: 0, First: 1, Last: 9, Frames: 9, Events: 12, OK: true}
		if n.doctorFail {
			sh.OK, sh.Problems, sh.Hint = false, []string{"hash differs at 7"}, "repair it"
		}
		c := memory.VerifyCopy{Node: "n1", Files: 3, Bytes: 2048, OK: n.statuses["rot"] == ""}
		if !c.OK {
			c.Problem, c.Hint = "1.blk does not check at 7", "start the nodes that are away"
		}
		return lines(w, memory.VerifyReport{Shards: []memory.VerifyShard{sh}, Copy: &c})
	})
	on("POST /v1/admin/log/repair", func(w http.ResponseWriter, _ *http.Request) error {
		if n.statuses["repair"] != "" {
			p := memory.ProblemOf(memory.Errorf(memory.CodeNoSpace, "the disk is full"))
			w.Header().Set("Content-Type", "application/x-ndjson")
			return json.NewEncoder(w).Encode(memory.ProgressLine[memory.RepairReport]{Error: &p})
		}
		return lines(w, memory.RepairReport{Shards: []memory.RepairShard{{ID: 0, Epoch: 2, Restored: 3, Events: 4, Position: "p0.2.9.0", Detail: "from state"}}})
	})
	on("GET /v1/admin/rejected", func(w http.ResponseWriter, _ *http.Request) error {
		return answer(w, memory.RejectedList{Counts: map[string]uint64{"invalid": 1}, Rejected: []memory.Rejected{{ID: "r1", At: fakeNow, Namespace: "team-a",
			Agent: "bob", Code: memory.CodeInvalid, Reason: "text is \x1b[31mempty", Size: 3, Via: "nats"}}})
	})
	on("POST /v1/admin/quarantine", func(w http.ResponseWriter, r *http.Request) error {
		var req memory.PutInQuarantine
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			return err
		}
		out := memory.InQuarantine{Type: "memory.captured", Why: "event " + req.Position + " (memory.captured) cannot be applied", DryRun: req.DryRun,
			Quarantined: memory.Quarantined{Position: req.Position, Code: "operator", By: req.By, At: &fakeNow, Reason: req.Reason}}
		switch req.Position {
		case "p0.1.4.0":
			out.Already = true
		case "p0.1.5.0":
			if !req.DryRun {
				out.Next = "p0.1.6.1"
			}
		case "p0.1.9.9":
			return memory.Errorf(memory.CodeConflict, "shard 0 has not stopped at p0.1.9.9").WithHint("memctl status names it")
		}
		return answer(w, out)
	})
	upgrade := func() memory.UpgradeStatus {
		st := memory.UpgradeStatus{Level: 3, Known: 4, Nodes: []memory.UpgradeNode{{ID: "n1", Version: "1.1.0", Level: 4, Reachable: true}, {ID: "n2", Version: "1.1.0", Level: 4, Reachable: true}}}
		switch n.statuses["upgrade"] {
		case "older":
			st.Known, st.Nodes[1] = 0, memory.UpgradeNode{ID: "n2", Version: "1.0.0", Reachable: true}
		case "away":
			st.Known, st.Nodes[1] = 0, memory.UpgradeNode{ID: "n2"}
		case "done":
			st.Level = 4
		}
		return st
	}
	on("GET /v1/admin/upgrade", func(w http.ResponseWriter, _ *http.Request) error { return answer(w, upgrade()) })
	on("POST /v1/admin/upgrade", func(w http.ResponseWriter, _ *http.Request) error {
		if upgrade().Known < 4 {
			return memory.Errorf(memory.CodeConflict, "not every node is known to run a program of level 4: n2 knows 0").WithHint("memctl upgrade check shows them")
		}
		n.statuses["upgrade"] = "done"
		return answer(w, upgrade())
	})
	on("GET /v1/admin/quarantine", func(w http.ResponseWriter, _ *http.Request) error {
		return answer(w, memory.QuarantineList{Quarantined: []memory.Quarantined{{Position: "p0.1.4.0", Code: "type", Detail: "unknown type"},
			{Position: "p0.1.5.0", Code: "operator", By: "ops", At: &fakeNow, Reason: "it crashes"}}})
	})
	for _, part := range []string{"log", "keys"} {
		method := map[string]string{"log": "GET", "keys": "POST"}[part]
		on(method+" /v1/admin/backup/"+part, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Trailer", "Mneme-Position, Mneme-Events")
			_, _ = fmt.Fprint(w, strings.Repeat(part+" ", 1000))
			w.(http.Flusher).Flush()
			if n.statuses["cut"] == part {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Mneme-Position", "p0.1.9.0")
			w.Header().Set("Mneme-Events", "12")
			return nil
		})
	}
}

// fakeSpaces are the embedders that the fake knows; "slow" gains a third of its
// records each time it is asked about, "away" does not answer.
func (n *fakeNode) switchEmbedder(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	var req memory.SwitchEmbedder
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return err
	}
	to := memory.EmbedderInfo{Provider: req.Provider, Model: req.Model, Dimensions: max(req.Dimensions, 8), Space: "s2"}
	switch {
	case req.Provider == "away":
		return memory.Errorf(memory.CodeUnavailable, "the embedder does not answer").WithHint("nothing was changed; try again when it is there")
	case req.Provider == ns.info.Embedder.Provider:
		return answer(w, ns.embedder())
	case ns.building != nil && ns.building.Embedder != to:
		return memory.Errorf(memory.CodeConflict, "namespace %q is on its way to another embedder", ns.info.Name).WithHint("memctl embedder cancel -n %s", ns.info.Name)
	}
	ns.building = &memory.SpaceBuilding{Embedder: to, Phase: memory.PhaseFilling, Total: 3, Rate: 12.4, ETAS: 61}
	w.WriteHeader(http.StatusAccepted)
	return answer(w, ns.embedder())
}

func (n *fakeNode) showEmbedder(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	b := ns.building
	if b != nil && b.Embedder.Provider != "stuck" {
		if b.Done++; b.Done == 2 {
			at := fakeNow.Add(time.Minute)
			b.Phase, b.Error, b.ErrorAt, b.RetryAt, b.Skipped = memory.PhaseWaiting, "model is gone", &fakeNow, &at, 1
		}
		if b.Done > b.Total {
			c := &memory.SpaceComparison{At: fakeNow, From: ns.info.Embedder, To: b.Embedder, Records: 3, OldVectors: 3, NewVectors: 3, Sample: 3, Recall: 1, Agreement: 0.5}
			ns.kept = append(ns.kept, memory.SpaceKept{Embedder: ns.info.Embedder, Records: 3, Until: fakeNow.Add(24 * time.Hour)})
			ns.info.Embedder, ns.building, ns.compared = b.Embedder, nil, c
		}
	}
	return answer(w, ns.embedder())
}

func (n *fakeNode) cancelSwitch(w http.ResponseWriter, r *http.Request) error {
	ns, err := n.ns(r)
	if err != nil {
		return err
	}
	if ns.building == nil {
		return memory.Errorf(memory.CodeConflict, "namespace %q is not changing its embedder", ns.info.Name)
	}
	ns.building = nil
	return answer(w, ns.embedder())
}

func (ns *fakeNamespace) embedder() memory.EmbedderStatus {
	st := memory.EmbedderStatus{Namespace: ns.info.Name, State: memory.EmbedderReady, Embedder: ns.info.Embedder, Records: 3, Vectors: 3,
		Building: ns.building, Kept: append([]memory.SpaceKept{}, ns.kept...), LastSwitch: ns.compared, Position: "p0.1.9.0"}
	if ns.building != nil {
		st.State = memory.EmbedderBuilding
	}
	return st
}

func fakeAside() []memory.Aside {
	return []memory.Aside{
		{Path: "aside/n1", Kind: memory.AsideNode, Why: "its files were put back", At: fakeNow.AddDate(0, 0, -40), Bytes: 3 << 20},
		{Path: "shards/0/state.damaged-1", Kind: memory.AsideState, Why: "a table is damaged", At: fakeNow.AddDate(0, 0, -2), Bytes: 2 << 20},
	}
}
