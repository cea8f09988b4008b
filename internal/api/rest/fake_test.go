package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"mneme/internal/api"
	"mneme/memory"
)

const recordID = "01JD0000000000000000000000"

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fake is every port. It writes down its calls and fails the methods named in
// fail.
type fake struct {
	mu       sync.Mutex
	calls    []string
	args     []any // of the last call
	rejected []memory.Rejected
	fail     map[string]error

	capture func(ctx context.Context, items []memory.Capture, wait memory.Wait) (memory.CaptureResponse, error)
	events  func(ctx context.Context, yield func(memory.Event) error) error
	export  func(yield func(memory.ExportLine) error) error
	long    func(progress func(done, total uint64)) error
	backup  func(w io.Writer) error
	ready   bool
	status  func() (memory.Status, error)
}

// plainAccess is an access as calls are written down, namespace included.
type plainAccess struct {
	Namespace, As, AtLeast string
	Consistency            memory.Consistency
}

func (f *fake) called(method string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := method
	f.args = args
	for _, a := range args {
		if acc, ok := a.(memory.Access); ok {
			a = plainAccess(acc)
		}
		b, err := json.Marshal(a)
		if err != nil {
			return err
		}
		line += " " + string(b)
	}
	f.calls = append(f.calls, line)
	return f.fail[method]
}

func (f *fake) Reject(r memory.Rejected) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rejected = append(f.rejected, r)
}

func (f *fake) Capture(ctx context.Context, ns string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	if err := f.called("Capture", ns, items, opt, wait); err != nil {
		return memory.CaptureResponse{}, err
	}
	if f.capture != nil {
		return f.capture(ctx, items, wait)
	}
	resp := memory.CaptureResponse{Position: "p0.1.42.0"}
	for i, item := range items {
		r := memory.CaptureResult{ID: item.ID, RecordID: recordID, Position: fmt.Sprintf("p0.1.42.%d", i), Status: memory.StatusCreated}
		if item.Text == "" {
			r = memory.CaptureResult{Status: memory.StatusRejected, Error: &memory.ItemError{Code: memory.CodeInvalid, Detail: "text is empty"}}
		}
		resp.Results = append(resp.Results, r)
	}
	return resp, nil
}

func (f *fake) Revise(_ context.Context, ns, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	return memory.RevisionResponse{RecordID: id, Version: 4, Position: "p0.1.43.0"}, f.called("Revise", ns, as, id, rev, ifMatch, clientID)
}

func (f *fake) Forget(_ context.Context, ns, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	return memory.ForgetResponse{RecordID: id, Position: "p0.1.44.0"}, f.called("Forget", ns, as, id, ifMatch)
}

func namespace(name string) memory.Namespace {
	return memory.Namespace{Name: name, ID: recordID, CreatedAt: day, Settings: map[string]string{"a": "b"}, Position: "p0.1.1.0"}
}

func (f *fake) ChangeGraph(_ context.Context, ns string, change memory.GraphChange) (memory.GraphChanged, error) {
	results := []memory.GraphResult{{Entities: []memory.GraphEntity{}}, {Deleted: &memory.GraphDeleted{}}}
	return memory.GraphChanged{Position: "p0.1.9.0", Status: memory.GraphApplied, Results: results}, f.called("ChangeGraph", ns, change)
}

func (f *fake) Graph(_ context.Context, acc memory.Access, req memory.GraphRequest) (memory.Graph, error) {
	return aGraph(), f.called("Graph", acc, req)
}

func (f *fake) StreamGraph(_ context.Context, acc memory.Access, after string, yield func(memory.GraphLine) error) error {
	g := aGraph()
	err := f.called("StreamGraph", acc, after)
	if err == nil {
		err = yield(memory.GraphLine{Entity: &g.Entities[0]})
	}
	if err == nil {
		err = yield(memory.GraphLine{Relation: &g.Relations[0]})
	}
	return err
}

func aGraph() memory.Graph {
	return memory.Graph{Position: "p0.1.9.0", Entities: []memory.GraphEntity{{Name: "Alice", Type: "person", Observations: []string{"likes Go"}}},
		Relations: []memory.GraphRelation{{From: "Alice", To: "b", Type: "c"}}}
}

func (f *fake) CreateNamespace(_ context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	return namespace(req.Name), f.called("CreateNamespace", req)
}

func (f *fake) ChangeNamespace(_ context.Context, name string, p memory.PatchNamespace) (memory.Namespace, error) {
	return namespace(name), f.called("ChangeNamespace", name, p)
}

func (f *fake) DeleteNamespace(_ context.Context, name string) (string, error) {
	return "p0.1.45.0", f.called("DeleteNamespace", name)
}

func record() memory.Record {
	return memory.Record{RecordID: recordID, Namespace: "team", URI: "mem://team/" + recordID, Version: 3, Text: "hi", Kind: memory.KindFact,
		Agent: "a1", Scope: memory.ScopeTeam, Origin: memory.OriginCapture, OccurredAt: day, CreatedAt: day, Position: "p0.1.2.0", Metadata: []byte(`{"k":1}`)}
}

func (f *fake) Search(_ context.Context, acc memory.Access, req memory.SearchRequest) (memory.SearchResponse, error) {
	return memory.SearchResponse{Position: "p0.1.9.0", Mode: memory.ModeHybrid}, f.called("Search", acc, req)
}

func (f *fake) SearchNamespaces(_ context.Context, acc memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error) {
	return memory.SearchResponse{Position: "p0.1.9.0,p1.0.3.0", Mode: memory.ModeHybrid, Namespaces: req.Namespaces}, f.called("SearchNamespaces", acc, req)
}

func (f *fake) Get(_ context.Context, acc memory.Access, id string, version int) (memory.Record, error) {
	return record(), f.called("Get", acc, id, version)
}

func (f *fake) List(_ context.Context, acc memory.Access, req memory.ListRequest) (memory.RecordList, error) {
	return memory.RecordList{Records: []memory.Record{record()}, Position: "p0.1.9.0"}, f.called("List", acc, req)
}

func (f *fake) History(_ context.Context, acc memory.Access, id string) (memory.History, error) {
	return memory.History{RecordID: id, Versions: []memory.Record{record()}, Events: []memory.HistoryEvent{{Type: "memory.captured", At: day}}}, f.called("History", acc, id)
}

func (f *fake) Timeline(_ context.Context, acc memory.Access, req memory.TimelineRequest) (memory.Timeline, error) {
	return memory.Timeline{Anchor: record()}, f.called("Timeline", acc, req)
}

func (f *fake) Audit(_ context.Context, acc memory.Access, req memory.AuditRequest) (memory.AuditPage, error) {
	return memory.AuditPage{Rows: []memory.AuditRow{{Position: "p0.1.2.0", At: day, Type: "memory.captured", Outcome: "applied", Scope: "team"}}}, f.called("Audit", acc, req)
}

func (f *fake) AuditedReads(_ context.Context, acc memory.Access, req memory.AuditedReadsRequest) (memory.AuditedReadPage, error) {
	return memory.AuditedReadPage{Reads: []memory.AuditedRead{{Position: "p0.1.2.0", At: day, Namespace: "team", Scope: "team", Purpose: "inject", Consistency: "local", Given: []memory.Given{{RecordID: recordID, Version: 1}}}}}, f.called("AuditedReads", acc, req)
}

func (f *fake) Events(ctx context.Context, acc memory.Access, from string, follow bool, yield func(memory.Event) error) error {
	if err := f.called("Events", acc, from, follow); err != nil {
		return err
	}
	if f.events != nil {
		return f.events(ctx, yield)
	}
	return nil
}

func (f *fake) Export(_ context.Context, acc memory.Access, yield func(memory.ExportLine) error) error {
	if err := f.called("Export", acc); err != nil {
		return err
	}
	if f.export != nil {
		return f.export(yield)
	}
	return nil
}

func (f *fake) Namespaces(_ context.Context, req memory.NamespacesRequest) (memory.NamespaceList, error) {
	return memory.NamespaceList{Namespaces: []memory.Namespace{namespace("team")}}, f.called("Namespaces", req)
}

func (f *fake) Namespace(_ context.Context, name string) (memory.Namespace, error) {
	return namespace(name), f.called("Namespace", name)
}

func (f *fake) Embedder(_ context.Context, name string) (memory.EmbedderStatus, error) {
	return embedder(name), f.called("Embedder", name)
}

func embedder(name string) memory.EmbedderStatus {
	return memory.EmbedderStatus{Namespace: name, State: memory.EmbedderBuilding, Kept: []memory.SpaceKept{},
		Building: &memory.SpaceBuilding{Phase: memory.PhaseFilling, Done: 3, Total: 7, ErrorAt: &day}}
}

func (f *fake) SwitchEmbedder(_ context.Context, name string, req memory.SwitchEmbedder) (memory.EmbedderStatus, bool, error) {
	return embedder(name), req.Provider != "builtin", f.called("SwitchEmbedder", name, req)
}

func (f *fake) CancelSwitch(_ context.Context, name string) (memory.EmbedderStatus, error) {
	return embedder(name), f.called("CancelSwitch", name)
}

func (f *fake) Status(_ context.Context, local bool) (memory.Status, error) {
	if f.status != nil {
		return f.status()
	}
	return memory.Status{ClusterID: "c", Nodes: []memory.NodeStatus{{ID: "n"}}, Shards: []memory.ShardStatus{{Leader: "n"}}, Auth: "off"}, f.called("Status", local)
}

func (f *fake) Cluster(context.Context) (memory.ClusterStatus, error) {
	return memory.ClusterStatus{ClusterID: "c", Nodes: []memory.ClusterNode{{ID: "n", Role: memory.RoleVoter, Reachable: true}},
		Shards: []memory.ClusterShard{{Leader: "n", Replicas: []memory.ClusterReplica{{Node: "n"}}}}}, f.called("Cluster")
}

func (f *fake) RemoveNode(_ context.Context, req memory.RemoveNode) (memory.NodeRemoval, error) {
	return memory.NodeRemoval{Removed: []string{req.Node + "-x"}}, f.called("RemoveNode", req.Node, req.Force)
}

func (f *fake) TransferLead(_ context.Context, req memory.TransferLead) (memory.LeadTransfer, error) {
	return memory.LeadTransfer{Leader: req.Node, Moved: true}, f.called("TransferLead", req.Node)
}

func (f *fake) DrainNode(_ context.Context, req memory.DrainNode) (memory.NodeDrain, error) {
	return memory.NodeDrain{Node: req.Node, Drained: !req.Undo}, f.called("DrainNode", req.Node, req.Undo)
}

func (f *fake) Upgrade(context.Context) (memory.UpgradeStatus, error) {
	return memory.UpgradeStatus{Level: 3, Known: 4, Nodes: []memory.UpgradeNode{}}, f.called("Upgrade")
}

func (f *fake) FinishUpgrade(context.Context) (memory.UpgradeStatus, error) {
	return memory.UpgradeStatus{Level: 4, Known: 4, Nodes: []memory.UpgradeNode{}}, f.called("FinishUpgrade")
}

func (f *fake) Reload(context.Context) (memory.ReloadReport, error) {
	return memory.ReloadReport{Settings: []memory.ReloadedSetting{{Name: "log-level", From: "info", To: "debug", Applied: true}}}, f.called("Reload")
}

func (f *fake) Aside(context.Context) (memory.AsideList, error) {
	return memory.AsideList{Aside: []memory.Aside{{Path: "aside/n1", Kind: memory.AsideNode, Why: "it was put back", Bytes: 42}}, Bytes: 42}, f.called("Aside")
}

func (f *fake) RemoveAside(_ context.Context, req memory.RemoveAside) (memory.AsideRemoval, error) {
	return memory.AsideRemoval{Removed: []memory.Aside{}, Kept: []memory.Aside{}, DryRun: req.DryRun}, f.called("RemoveAside", req.Before, req.DryRun)
}

func (f *fake) DebugBundle(_ context.Context, w io.Writer) error {
	_, _ = io.WriteString(w, "bundle")
	return f.called("DebugBundle")
}

func (f *fake) Profile(_ context.Context, w io.Writer, kind string, seconds int) error {
	_, _ = io.WriteString(w, "profile")
	return f.called("Profile", kind, seconds)
}

func (f *fake) Doctor(context.Context) (memory.DoctorReport, error) {
	return memory.DoctorReport{OK: true, Checks: []memory.Check{{Name: "disk", State: "ok"}}}, f.called("Doctor")
}

func (f *fake) run(method string, progress func(done, total uint64)) error {
	if err := f.called(method); err != nil {
		return err
	}
	if f.long != nil {
		return f.long(progress)
	}
	return nil
}

func (f *fake) Rebuild(_ context.Context, progress func(done, total uint64)) (memory.RebuildReport, error) {
	return memory.RebuildReport{Shards: []memory.RebuildShard{{StateHash: "h", Events: 7}}}, f.run("Rebuild", progress)
}

func (f *fake) VerifyLog(_ context.Context, progress func(done, total uint64)) (memory.VerifyReport, error) {
	return memory.VerifyReport{Shards: []memory.VerifyShard{{OK: true}}}, f.run("VerifyLog", progress)
}

func (f *fake) AcceptClock(context.Context) (memory.ClockReport, error) {
	return memory.ClockReport{}, f.run("AcceptClock", nil)
}

func (f *fake) RepairLog(_ context.Context, progress func(done, total uint64)) (memory.RepairReport, error) {
	return memory.RepairReport{Shards: []memory.RepairShard{{Epoch: 2}}}, f.run("RepairLog", progress)
}

func (f *fake) Rejected(_ context.Context, limit int) (memory.RejectedList, error) {
	return memory.RejectedList{Rejected: []memory.Rejected{{ID: "r", At: day, Code: memory.CodeInvalid}}, Counts: map[string]uint64{"invalid": 1}}, f.called("Rejected", limit)
}

func (f *fake) PutInQuarantine(_ context.Context, req memory.PutInQuarantine) (memory.InQuarantine, error) {
	return memory.InQuarantine{Quarantined: memory.Quarantined{Position: req.Position}}, f.called("PutInQuarantine", req)
}

func (f *fake) Quarantine(context.Context) (memory.QuarantineList, error) {
	return memory.QuarantineList{Quarantined: []memory.Quarantined{{Position: "p0.1.1.0"}}}, f.called("Quarantine")
}

func (f *fake) sendBackup(w io.Writer) (memory.BackupReport, error) {
	if f.backup != nil {
		if err := f.backup(w); err != nil {
			return memory.BackupReport{}, err
		}
	}
	return memory.BackupReport{Position: "p0.1.9.0", Frames: 5, Events: 6, StateHash: "9f2c", PipelineVersion: 3}, nil
}

func (f *fake) BackupLog(_ context.Context, w io.Writer, after string) (memory.BackupReport, error) {
	if err := f.called("BackupLog", after); err != nil {
		return memory.BackupReport{}, err
	}
	return f.sendBackup(w)
}

func (f *fake) BackupKeys(_ context.Context, w io.Writer, master bool) (memory.BackupReport, error) {
	if err := f.called("BackupKeys", master); err != nil {
		return memory.BackupReport{}, err
	}
	return f.sendBackup(w)
}

func (f *fake) DestroyedKeys(context.Context) (memory.DestroyedKeys, error) {
	return memory.DestroyedKeys{ClusterID: "c", Keys: []string{"k"}}, f.called("DestroyedKeys")
}

func (f *fake) Version() string { return "1.2.3" }

func (f *fake) Ready() (bool, []memory.Check) {
	if f.ready {
		return true, []memory.Check{{Name: "state", State: "ok"}}
	}
	return false, []memory.Check{{Name: "log", State: "warn"}, {Name: "state", State: "fail", Detail: "behind"}}
}

func (f *fake) Led(context.Context) []memory.Check {
	return []memory.Check{{Name: "leader", State: "warn", Detail: "n2 leads; writes are stopped: log and state disagree", Hint: "memctl log repair"}}
}

var errDisk = errors.New("disk /dev/secret broke")
