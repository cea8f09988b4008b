package route

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mneme/internal/api"
	"mneme/internal/peer"
	"mneme/internal/peer/rpc"
	"mneme/internal/spans"
	"mneme/memory"
)

// method is one thing that the leader does for another node.
type method[In, Out any] struct {
	name  string
	local func(ctx context.Context, o *Options, in In) (Out, error)
	// untouched reports whether an error of local says that nothing happened and that
	// another attempt makes sense; left: the node takes no writes any more. nil = none does.
	untouched func(err error, left bool) bool
	// again reports whether it may be carried out twice; nil = it may not.
	again func(in In) bool
	// over chooses the client of a call; nil = that of writes.
	over func(c *Clients, in In) *rpc.Client
	// encode and decode give the argument's own form; nil = it is its own.
	encode func(in In) any
	decode func(json.RawMessage) (In, error)
}

// held calls wait for somebody else: a provider of embeddings, or files that are written anew.
func held[In any](c *Clients, _ In) *rpc.Client { return c.held }

// deposed: what was refused because the node leads no more was not written.
func deposed(err error, left bool) bool { return left && memory.CodeOf(err) == memory.CodeUnavailable }

// unconfirmed: whatever kept one node from confirming that it leads, another may do so.
func unconfirmed(err error, _ bool) bool {
	code := memory.CodeOf(err)
	return code == memory.CodeUnavailable || code == memory.CodeInternal
}

var (
	capture = method[captures, memory.CaptureResponse]{name: "capture", untouched: deposed, encode: encodeCaptures, decode: decodeCaptures,
		over: func(c *Clients, in captures) *rpc.Client {
			if in.wait == memory.WaitSearchable {
				return c.held
			}
			return c.writes
		},
		local: func(ctx context.Context, o *Options, in captures) (memory.CaptureResponse, error) {
			return o.Local.Capture(ctx, in.namespace, in.items, in.opt, in.wait)
		}}
	revise = method[revision, memory.RevisionResponse]{name: "revise", untouched: deposed, encode: encodeRevision, decode: decodeRevision,
		again: func(in revision) bool { return in.clientID != "" },
		local: func(ctx context.Context, o *Options, in revision) (memory.RevisionResponse, error) {
			return o.Local.Revise(ctx, in.Namespace, in.As, in.ID, in.rev, in.IfMatch, in.clientID)
		}}
	forget = method[recordCall, memory.ForgetResponse]{name: "forget", untouched: deposed,
		local: func(ctx context.Context, o *Options, in recordCall) (memory.ForgetResponse, error) {
			return o.Local.Forget(ctx, in.Namespace, in.As, in.ID, in.IfMatch)
		}}
	changeGraph = method[graphChange, memory.GraphChanged]{name: "change graph", untouched: deposed,
		again: func(in graphChange) bool { return in.Change.ID != "" },
		local: func(ctx context.Context, o *Options, in graphChange) (memory.GraphChanged, error) {
			return o.Local.ChangeGraph(ctx, in.Namespace, in.Change)
		}}
	noteRead = method[readNote, string]{name: "note read", untouched: deposed,
		local: func(ctx context.Context, o *Options, in readNote) (string, error) {
			return o.Local.NoteRead(ctx, in.Namespace, in.Note)
		}}
	createNamespace = method[memory.CreateNamespace, memory.Namespace]{name: "create namespace", over: held[memory.CreateNamespace],
		local: func(ctx context.Context, o *Options, in memory.CreateNamespace) (memory.Namespace, error) {
			return o.Local.CreateNamespace(ctx, in)
		}}
	changeNamespace = method[namespaceChange, memory.Namespace]{name: "change namespace", over: held[namespaceChange],
		local: func(ctx context.Context, o *Options, in namespaceChange) (memory.Namespace, error) {
			return o.Local.ChangeNamespace(ctx, in.Name, in.Patch)
		}}
	deleteNamespace = method[string, string]{name: "delete namespace", over: held[string],
		local: func(ctx context.Context, o *Options, in string) (string, error) {
			return o.Local.DeleteNamespace(ctx, in)
		}}
	switchEmbedder = method[embedderChange, embedderChanged]{name: "switch embedder", over: held[embedderChange],
		local: func(ctx context.Context, o *Options, in embedderChange) (embedderChanged, error) {
			st, began, err := o.Local.SwitchEmbedder(ctx, in.Namespace, in.Request)
			return embedderChanged{st, began}, err
		}}
	cancelSwitch = method[string, memory.EmbedderStatus]{name: "cancel switch", over: held[string],
		local: func(ctx context.Context, o *Options, in string) (memory.EmbedderStatus, error) {
			return o.Local.CancelSwitch(ctx, in)
		}}
	acceptClock = method[struct{}, memory.ClockReport]{name: "accept clock",
		local: func(ctx context.Context, o *Options, _ struct{}) (memory.ClockReport, error) {
			return o.Local.AcceptClock(ctx)
		}}
	position = method[struct{}, string]{name: "position", untouched: unconfirmed, again: func(struct{}) bool { return true },
		over: func(c *Clients, _ struct{}) *rpc.Client { return c.asks },
		local: func(ctx context.Context, o *Options, _ struct{}) (string, error) {
			return o.Position(ctx)
		}}
)

// Methods are what the node answers to others: it carries out what it can, and forwards
// nothing. Serve them as ServiceOf the shard.
func Methods(opt Options) map[string]rpc.Method {
	o := opt.withDefaults()
	all := map[string]rpc.Method{}
	serve(all, o, capture)
	serve(all, o, revise)
	serve(all, o, forget)
	serve(all, o, changeGraph)
	serve(all, o, noteRead)
	serve(all, o, createNamespace)
	serve(all, o, changeNamespace)
	serve(all, o, deleteNamespace)
	serve(all, o, switchEmbedder)
	serve(all, o, cancelSwitch)
	serve(all, o, acceptClock)
	serve(all, o, position)
	return all
}

// request is a call on its way.
type request struct {
	// Within is how long the caller waits; 0 = it does not say.
	Within time.Duration   `json:"within,omitempty"`
	In     json.RawMessage `json:"in"`
}

// reply is the answer to a call.
type reply[Out any] struct {
	Out   Out    `json:"out"`
	Error *fault `json:"error,omitempty"`
	// Untouched: nothing happened, for the node does not lead.
	Untouched bool `json:"untouched,omitempty"`
	// Left: when the call ended, the node did not take writes any more.
	Left bool `json:"left,omitempty"`
	// At is where the node's state was when the call had ended.
	At string `json:"at,omitempty"`
}

func serve[In, Out any](all map[string]rpc.Method, o *Options, m method[In, Out]) {
	all[m.name] = rpc.Handle(func(ctx context.Context, _ peer.Identity, c request) (reply[Out], error) {
		in, err := m.read(c.In)
		if err != nil {
			return reply[Out]{}, memory.Errorf(memory.CodeInvalid, "the argument of %q cannot be read: %v", m.name, err)
		}
		if c.Within > 0 { // less what the answer's way takes
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.Within-c.Within/10)
			defer cancel()
		}
		ctx, span := spans.Join(ctx, o.Traces, spans.Forwarded)
		if span.IsRecording() {
			span.SetAttributes(spans.Asked.String(m.name))
		}
		d := carryOut(ctx, o, m, in)
		spans.End(span, d.err)
		return reply[Out]{Out: d.out, Error: faultOf(d.err), Untouched: d.verdict == untouched, Left: d.left, At: o.Stands()}, nil
	})
}

func (m *method[In, Out]) read(raw json.RawMessage) (in In, err error) {
	if m.decode != nil {
		return m.decode(raw)
	}
	return in, json.Unmarshal(raw, &in)
}

// done is how an attempt ended.
type done[Out any] struct {
	out     Out
	err     error
	verdict verdict
	left    bool // the node that carried it out takes no writes any more
}

// carryOut carries out a call on this node, if it leads.
func carryOut[In, Out any](ctx context.Context, o *Options, m method[In, Out], in In) (d done[Out]) {
	if d.err, d.verdict = o.opens(ctx); d.err != nil {
		return d
	}
	d.out, d.err = m.local(ctx, o, in)
	d.left = o.Open() != nil
	switch {
	case d.err == nil:
	case o.Unwritten(d.err), m.untouched != nil && m.untouched(d.err, d.left):
		d.verdict = untouched
	case memory.CodeOf(d.err) == memory.CodeOutcomeUnknown && d.left:
		d.verdict = unknown
	}
	return d
}

// opens waits until this node takes writes. A node that leads and will soon take them is
// waited for; one that cannot says why; any other one is the wrong one.
func (o *Options) opens(ctx context.Context) (error, verdict) {
	bound, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	for {
		err := o.Open()
		if err == nil {
			return nil, settled
		}
		to, self, known := o.Leader()
		switch {
		case !self && known:
			return memory.Errorf(memory.CodeUnavailable, "it does not lead, %s does", to), untouched
		case !self:
			return memory.Errorf(memory.CodeUnavailable, "it does not lead, and knows of no node that does"), untouched
		case memory.CodeOf(err) != memory.CodeUnavailable:
			return err, settled
		case bound.Err() != nil:
			return err, untouched
		}
		o.await(bound)
	}
}

// await waits for a change, not long.
func (o *Options) await(ctx context.Context) {
	bound, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	least := time.NewTimer(pause / 10) // something that changes all the time is looked at now and then
	defer least.Stop()
	o.Wait(bound)
	select {
	case <-least.C:
	case <-ctx.Done():
	}
}

// fault is an error on its way.
type fault struct {
	Code       memory.Code   `json:"code"`
	Message    string        `json:"message"`
	Hint       string        `json:"hint,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
}

func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	e := memory.AsError(api.CutShort(err))
	return &fault{Code: e.Code, Message: e.Message, Hint: e.Hint, RetryAfter: e.RetryAfter}
}

func (f *fault) err() error {
	if f == nil {
		return nil
	}
	e := memory.Errorf(f.Code, "%s", f.Message)
	e.Hint, e.RetryAfter = f.Hint, f.RetryAfter
	return e
}

// cannotBeSent reports whether an argument has no JSON form.
func cannotBeSent(err error) bool {
	var value *json.UnsupportedValueError
	var own *json.MarshalerError
	return errors.As(err, &value) || errors.As(err, &own)
}
