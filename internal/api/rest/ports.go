package rest

import (
	"context"
	"io"

	"mneme/internal/api"
	"mneme/memory"
)

// Writer admits changes. Errors are *memory.Error with the codes of the public
// contract; ifMatch 0 means any version, an empty clientID means none.
type Writer interface {
	// Capture answers one result an item, in order. Its error concerns the
	// request as a whole.
	Capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error)
	Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error)
	Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error)
	// ChangeGraph carries out a change of the knowledge graph as a whole or not at all.
	ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error)
	CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error)
	ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error)
	DeleteNamespace(ctx context.Context, name string) (position string, err error)
	// SwitchEmbedder reports false if there was nothing to begin.
	SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (st memory.EmbedderStatus, began bool, err error)
	CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error)
}

// Reader answers reads. One call authorises, waits for the freshness that the
// access asks for, and reads.
type Reader interface {
	Search(ctx context.Context, acc memory.Access, req memory.SearchRequest) (memory.SearchResponse, error)
	// SearchNamespaces searches those that the request names, whatever the access says.
	SearchNamespaces(ctx context.Context, acc memory.Access, req memory.SearchNamespaces) (memory.SearchResponse, error)
	// Get takes a record id, its beginning or a uri; version 0 is the current one.
	Get(ctx context.Context, acc memory.Access, idOrURI string, version int) (memory.Record, error)
	List(ctx context.Context, acc memory.Access, req memory.ListRequest) (memory.RecordList, error)
	History(ctx context.Context, acc memory.Access, id string) (memory.History, error)
	Timeline(ctx context.Context, acc memory.Access, req memory.TimelineRequest) (memory.Timeline, error)
	Audit(ctx context.Context, acc memory.Access, req memory.AuditRequest) (memory.AuditPage, error)
	// AuditedReads tells of reads in a namespace that has them audited.
	AuditedReads(ctx context.Context, acc memory.Access, req memory.AuditedReadsRequest) (memory.AuditedReadPage, error)
	// Events yields what follows the position from ("" = what happens from
	// now on), from this goroutine, until yield fails, ctx ends or, without
	// follow, the present is reached.
	Events(ctx context.Context, acc memory.Access, from string, follow bool, yield func(memory.Event) error) error
	Export(ctx context.Context, acc memory.Access, yield func(memory.ExportLine) error) error
	// Graph reads a part of the knowledge graph, or all of it. Errors: too_large.
	Graph(ctx context.Context, acc memory.Access, req memory.GraphRequest) (memory.Graph, error)
	// StreamGraph yields all of it, entities first, each kind in the order of creation; of the
	// entities those behind the one that is named after. Errors: not_found for that one.
	StreamGraph(ctx context.Context, acc memory.Access, after string, yield func(memory.GraphLine) error) error
	Namespaces(ctx context.Context, req memory.NamespacesRequest) (memory.NamespaceList, error)
	Namespace(ctx context.Context, name string) (memory.Namespace, error)
	Embedder(ctx context.Context, namespace string) (memory.EmbedderStatus, error)
}

// Admin runs the node. progress may be called from any goroutine, but not after
// the method has returned; total 0 means unknown.
type Admin interface {
	// Status describes the node, and, unless local, names the others of its cluster.
	Status(ctx context.Context, local bool) (memory.Status, error)
	Cluster(ctx context.Context) (memory.ClusterStatus, error)
	// RemoveNode takes another node out of the cluster for ever.
	RemoveNode(ctx context.Context, req memory.RemoveNode) (memory.NodeRemoval, error)
	// TransferLead has a node lead the cluster.
	TransferLead(ctx context.Context, req memory.TransferLead) (memory.LeadTransfer, error)
	// DrainNode has a node lead nothing, or undoes that.
	DrainNode(ctx context.Context, req memory.DrainNode) (memory.NodeDrain, error)
	Doctor(ctx context.Context) (memory.DoctorReport, error)
	Rebuild(ctx context.Context, progress func(done, total uint64)) (memory.RebuildReport, error)
	VerifyLog(ctx context.Context, progress func(done, total uint64)) (memory.VerifyReport, error)
	RepairLog(ctx context.Context, progress func(done, total uint64)) (memory.RepairReport, error)
	// AcceptClock has writing go on with the clock as it stands.
	AcceptClock(ctx context.Context) (memory.ClockReport, error)
	Rejected(ctx context.Context, limit int) (memory.RejectedList, error)
	Quarantine(ctx context.Context) (memory.QuarantineList, error)
	// PutInQuarantine has a shard that has stopped at an event go on without it.
	PutInQuarantine(ctx context.Context, req memory.PutInQuarantine) (memory.InQuarantine, error)
	// BackupLog writes the log: all of it, or what follows marks, one for each shard.
	BackupLog(ctx context.Context, w io.Writer, after string) (memory.BackupReport, error)
	BackupKeys(ctx context.Context, w io.Writer, withMaster bool) (memory.BackupReport, error)
	// DestroyedKeys lists the ids of all keys that were destroyed.
	DestroyedKeys(ctx context.Context) (memory.DestroyedKeys, error)
	// Upgrade says how far an upgrade has come; FinishUpgrade ends the time in which nodes can
	// be put back to the program before.
	Upgrade(ctx context.Context) (memory.UpgradeStatus, error)
	FinishUpgrade(ctx context.Context) (memory.UpgradeStatus, error)
	// Reload reads settings, certificates and the token again.
	Reload(ctx context.Context) (memory.ReloadReport, error)
	// Aside lists what repairs have set aside on this node, RemoveAside removes of that what
	// is older than it names.
	Aside(ctx context.Context) (memory.AsideList, error)
	RemoveAside(ctx context.Context, req memory.RemoveAside) (memory.AsideRemoval, error)
	// DebugBundle writes what a report about the node needs, without secrets, as one archive.
	DebugBundle(ctx context.Context, w io.Writer) error
	// Profile writes a profile of the process; seconds counts for cpu and trace.
	Profile(ctx context.Context, w io.Writer, kind string, seconds int) error
	Version() string
}

// Health says whether this node serves reads.
type Health interface {
	Ready() (ok bool, checks []memory.Check)
	// Led says which node of several leads, and whether it takes writes. It may ask others,
	// for about a second.
	Led(ctx context.Context) []memory.Check
}

// Rejecter counts and lists what was refused before the log. It fills in the id
// and the time.
type Rejecter interface {
	Reject(memory.Rejected)
}
