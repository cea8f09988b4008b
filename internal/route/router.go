package route

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/memory"
)

// ServiceOf names the service of the peer port that forwarded calls of a shard go to.
func ServiceOf(shard uint16) string { return "write/" + strconv.Itoa(int(shard)) }

// Writer is everything that only the node that leads can do. Errors with the code
// unavailable of Capture, Revise, Forget and ChangeGraph, and of an item of a capture, say that
// nothing was written.
type Writer interface {
	Capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error)
	Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error)
	Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error)
	ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error)
	// NoteRead notes in the audit log what a node is about to give to a reader.
	NoteRead(ctx context.Context, namespace string, note events.ReadNote) (position string, err error)
	CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error)
	ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error)
	DeleteNamespace(ctx context.Context, name string) (position string, err error)
	SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (st memory.EmbedderStatus, began bool, err error)
	CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error)
	AcceptClock(ctx context.Context) (memory.ClockReport, error)
}

// Options of New and Methods. All but Unwritten, Stands, Wait, Patience, Traces and Logger are required; New
// alone needs Clients and Reach. The functions may be called from any goroutine.
type Options struct {
	Local Writer // of this node
	// Open says why Local takes no writes now; nil = it takes them. It answers at once.
	Open func() error
	// Unwritten reports whether an error of Local says that nothing was written, and nothing
	// is told, since this node could not confirm that it leads: another one is asked then, or
	// this one again. nil = none does.
	Unwritten func(err error) bool
	// Position makes sure that the state of this node, which leads, is linearizable, and
	// returns where it stands.
	Position func(ctx context.Context) (string, error)
	// Stands says where the state of this node is now.
	Stands func() string
	// Reach waits until the state of this node is at a position or behind it.
	Reach func(ctx context.Context, position string) error
	// Leader says which node leads the shard: this one, or where it is reached. It
	// answers at once.
	Leader func() (to rpc.Target, self, known bool)
	// Wait returns when ctx ends, or sooner when what Leader or Open say may have changed.
	Wait func(ctx context.Context)
	// Clients call the shard's service at other nodes.
	Clients *Clients
	// Patience is how long a call looks for a node that takes it; 0 = 5 seconds. It does
	// not bound the carrying out.
	Patience time.Duration
	// Traces records what other nodes ask for, if they record it; nil = nothing is.
	Traces trace.TracerProvider
	Logger *slog.Logger
}

// Clients call the service of a shard at other nodes, each over connections of its own, of
// which there are rpc.MaxConnections to a node: what is held for long keeps nobody's writes
// waiting, and writes nobody's reads.
type Clients struct{ writes, held, asks *rpc.Client }

// NewClients returns clients of a shard's service. Close them when no call is made any more.
func NewClients(port *peer.Port, shard uint16) *Clients {
	service := ServiceOf(shard)
	return &Clients{rpc.NewLargeClient(port, service), rpc.NewLargeClient(port, service), rpc.NewClient(port, service)}
}

// Close closes the connections that no call uses.
func (c *Clients) Close() {
	c.writes.Close()
	c.held.Close()
	c.asks.Close()
}

const (
	// defaultPatience spans an election, which takes one or two seconds, and the first
	// frame of the new leader.
	defaultPatience = 5 * time.Second
	// openWait is how long a call waits at a node that leads until its writer is open.
	openWait = 2 * time.Second
	// settleWait is how long the answer to a write that another node carried out waits
	// until this node has it too: whoever wrote here reads here next.
	settleWait = time.Second
	// pause is how long a look for the leader waits for a change that it is not told of.
	pause = 50 * time.Millisecond
)

func (o Options) withDefaults() *Options {
	if o.Stands == nil {
		o.Stands = func() string { return "" }
	}
	if o.Unwritten == nil {
		o.Unwritten = func(error) bool { return false }
	}
	if o.Wait == nil {
		o.Wait = func(ctx context.Context) { <-ctx.Done() }
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &o
}

// Router is this node's way to the node that leads. It may be used concurrently.
type Router struct {
	opt   *Options
	stand rounds // questions to the leader where it stands
}

// New returns a router.
func New(opt Options) *Router {
	r := &Router{opt: opt.withDefaults()}
	r.stand.ask = func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), r.opt.Patience)
		defer cancel()
		return do(ctx, r, position, struct{}{})
	}
	return r
}

// Revise implements Writer. With a client id it is sent again where its answer was lost.
func (r *Router) Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	return do(ctx, r, revise, revision{recordCall{namespace, as, id, ifMatch}, rev, clientID})
}

// Forget implements Writer.
func (r *Router) Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	return do(ctx, r, forget, recordCall{namespace, as, id, ifMatch})
}

// ChangeGraph implements Writer. With a client id it is sent again where its answer was lost.
func (r *Router) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	return do(ctx, r, changeGraph, graphChange{namespace, change})
}

// NoteRead implements Writer. It is not sent again where its answer was lost.
func (r *Router) NoteRead(ctx context.Context, namespace string, note events.ReadNote) (position string, err error) {
	return do(ctx, r, noteRead, readNote{namespace, note})
}

// CreateNamespace implements Writer.
func (r *Router) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	return do(ctx, r, createNamespace, req)
}

// ChangeNamespace implements Writer.
func (r *Router) ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error) {
	return do(ctx, r, changeNamespace, namespaceChange{name, patch})
}

// DeleteNamespace implements Writer.
func (r *Router) DeleteNamespace(ctx context.Context, name string) (position string, err error) {
	return do(ctx, r, deleteNamespace, name)
}

// SwitchEmbedder implements Writer.
func (r *Router) SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (memory.EmbedderStatus, bool, error) {
	out, err := do(ctx, r, switchEmbedder, embedderChange{namespace, req})
	return out.Status, out.Began, err
}

// CancelSwitch implements Writer.
func (r *Router) CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	return do(ctx, r, cancelSwitch, namespace)
}

// AcceptClock implements Writer: the clock is that of the node that leads.
func (r *Router) AcceptClock(ctx context.Context) (memory.ClockReport, error) {
	return do(ctx, r, acceptClock, struct{}{})
}

// Linear waits until the state of this node holds everything that was acknowledged
// before the call, on whichever node. Calls that come together ask the leader once.
// Errors: unavailable, if no leader says where it stands in time; those of Position and
// Reach; ctx's.
func (r *Router) Linear(ctx context.Context) error {
	at, err := r.stand.join(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	switch memory.CodeOf(err) {
	case "":
		return r.opt.Reach(ctx, at)
	case memory.CodeUnavailable, memory.CodeOutcomeUnknown:
		e := memory.Errorf(memory.CodeUnavailable, "the state could not be confirmed with the leader: %w", err)
		e.RetryAfter = time.Second
		return e.WithHint("try again in a moment, or read with consistency=local")
	}
	return err
}
