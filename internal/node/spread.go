package node

import (
	"context"
	"sync"
	"time"

	"mneme/internal/api"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/projections"
	"mneme/memory"
)

// Of a node with several shards each namespace lives on one of them, as the directory
// says, which the first one holds. Requests go to the shard of their namespace; who makes
// or deletes one goes to the first.

// home finds the shard of a namespace, as far as the directory has come on this node.
func (n *Node) home(namespace string) (*served, bool) {
	v := n.directory().state.View()
	e, ok := v.Namespace(namespace)
	if err := v.Close(); err != nil {
		n.cfg.Logger.Error("view could not be closed", "err", err)
	}
	if !ok || int(e.Shard) >= len(n.served) {
		return nil, false
	}
	return n.served[e.Shard], true
}

// spread takes writes. It implements changes.
type spread struct{ n *Node }

// writeTo carries out a write on the shard of its namespace. The directory here may lag
// behind: where the namespace is not found it is looked for once more, after what was
// acknowledged before.
func writeTo[T any](ctx context.Context, n *Node, namespace string, f func(c changes) (T, error)) (T, error) {
	at, known := n.home(namespace)
	if !known {
		at = n.served[shard0]
	}
	out, err := f(at.changes)
	if n.peers == nil || memory.CodeOf(err) != memory.CodeNotFound {
		return out, err
	}
	if lags := n.served[shard0].linear(ctx); lags != nil {
		if at.id == shard0 { // who leads it has the directory, and knows
			return out, err
		}
		e := memory.Errorf(memory.CodeUnavailable, "whether namespace %q lives elsewhere by now could not be confirmed: %v", namespace, lags).
			WithHint("nothing was written; send it again").WithCause(lags)
		return out, e
	}
	if next, known := n.home(namespace); known && next != at {
		return f(next.changes)
	}
	return out, err
}

// Capture implements rest.Writer.
func (s spread) Capture(ctx context.Context, namespace string, items []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	return writeTo(ctx, s.n, namespace, func(c changes) (memory.CaptureResponse, error) { return c.Capture(ctx, namespace, items, opt, wait) })
}

// Revise implements rest.Writer.
func (s spread) Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	return writeTo(ctx, s.n, namespace, func(c changes) (memory.RevisionResponse, error) {
		return c.Revise(ctx, namespace, as, id, rev, ifMatch, clientID)
	})
}

// Forget implements rest.Writer.
func (s spread) Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	return writeTo(ctx, s.n, namespace, func(c changes) (memory.ForgetResponse, error) { return c.Forget(ctx, namespace, as, id, ifMatch) })
}

// ChangeGraph implements rest.Writer.
func (s spread) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	return writeTo(ctx, s.n, namespace, func(c changes) (memory.GraphChanged, error) { return c.ChangeGraph(ctx, namespace, change) })
}

// NoteRead implements changes.
func (s spread) NoteRead(ctx context.Context, namespace string, note events.ReadNote) (string, error) {
	return writeTo(ctx, s.n, namespace, func(c changes) (string, error) { return c.NoteRead(ctx, namespace, note) })
}

// CreateNamespace implements rest.Writer. It returns once the namespace can be read on
// this node, or a second later.
func (s spread) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	ns, err := s.n.served[shard0].changes.CreateNamespace(ctx, req)
	if at, perr := events.ParsePosition(ns.Position); err == nil && perr == nil && int(at.Shard) < len(s.n.served) {
		ctx, cancel := context.WithTimeout(ctx, settleFor)
		defer cancel()
		_ = s.n.served[at.Shard].views.Reach(ctx, ns.Position) // it is there whether or not this node has it
	}
	return ns, err
}

const settleFor = time.Second

// ChangeNamespace implements rest.Writer.
func (s spread) ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error) {
	return writeTo(ctx, s.n, name, func(c changes) (memory.Namespace, error) { return c.ChangeNamespace(ctx, name, patch) })
}

// DeleteNamespace implements rest.Writer.
func (s spread) DeleteNamespace(ctx context.Context, name string) (string, error) {
	return s.n.served[shard0].changes.DeleteNamespace(ctx, name)
}

// SwitchEmbedder implements rest.Writer.
func (s spread) SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (memory.EmbedderStatus, bool, error) {
	var began bool
	st, err := writeTo(ctx, s.n, namespace, func(c changes) (st memory.EmbedderStatus, err error) {
		st, began, err = c.SwitchEmbedder(ctx, namespace, req)
		return st, err
	})
	return st, began, err
}

// CancelSwitch implements rest.Writer.
func (s spread) CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	return writeTo(ctx, s.n, namespace, func(c changes) (memory.EmbedderStatus, error) { return c.CancelSwitch(ctx, namespace) })
}

// AcceptClock accepts the clocks of the nodes that lead the shards.
func (s spread) AcceptClock(ctx context.Context) (out memory.ClockReport, err error) {
	for _, of := range s.n.served {
		if out, err = of.changes.AcceptClock(ctx); err != nil {
			return out, err
		}
	}
	return out, nil
}

// settler has the leader of a shard make and end the homes of the namespaces that the
// directory has placed on it or deleted. It is the only one who does, whether or not
// somebody waits for it: so what a crash came between is finished by the next term.
type settler struct{ of *served }

// settleAgain is the pause after an attempt that failed.
const settleAgain = time.Second

// Work implements replica.Worker.
func (s settler) Work(ctx context.Context, w *ingest.Writer) {
	for {
		changed := s.of.n.listed.wait()
		var again <-chan time.Time
		if err := w.Settling().Settle(ctx); err != nil && ctx.Err() == nil {
			s.of.log.Warn("the shard has not settled what the directory says; it is tried again", "err", err)
			again = time.After(settleAgain)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

// bell wakes all who wait for it. Its zero value is ready to use.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that closes when it rings next.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// others are the shards on which the first one places namespaces.
type others struct{ n *Node }

// made describes a namespace that was made, once its shard has made its home.
func (o *others) made(ctx context.Context, name string) (memory.Namespace, error) {
	v := o.n.directory().state.View()
	e, ok := v.Namespace(name)
	if err := v.Close(); err != nil {
		return memory.Namespace{}, err
	}
	if !ok { // it is deleted already
		return memory.Namespace{}, memory.NoNamespace(name)
	}
	if err := o.settled(ctx, e.Entry); err != nil {
		return memory.Namespace{}, err
	}
	return o.n.served[e.Shard].reads.Namespace(ctx, name)
}

// delete ends a namespace, and waits until its shard has ended its home and its keys are
// destroyed. The position is of its home's end.
func (o *others) delete(ctx context.Context, w *ingest.Writer, name string) (string, error) {
	e, at, err := w.DeleteNamespace(ctx, name)
	if err != nil || e.Shard == shard0 {
		return at.String(), err
	}
	e.Deleted = true
	if err := o.settled(ctx, e); err != nil {
		return "", err
	}
	if err := w.Erasing().EndNamespace(e); err != nil {
		return "", err
	}
	return o.n.served[e.Shard].stands(), nil
}

// homeWait bounds how long who made or deleted a namespace waits for its shard.
const homeWait = 10 * time.Second

// settled waits until the home of an entry in the directory is as that says, on this node.
func (o *others) settled(ctx context.Context, e projections.Entry) error {
	s := o.n.served[e.Shard]
	ctx, cancel := context.WithTimeout(ctx, homeWait)
	defer cancel()
	for {
		moved := s.state.Moved()
		v := s.state.View()
		home, ok := v.NamespaceByID(e.ID)
		if err := v.Close(); err != nil {
			return err
		}
		if ok && (home.Deleted || !e.Deleted) { // one that was made may be deleted since
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return memory.Errorf(memory.CodeOutcomeUnknown, "the directory has taken it, and shard %d has not carried it out yet", e.Shard).
				WithHint("it does as soon as a node leads it: look again in a moment, memctl namespace list shows it; memctl status says how the shard is").WithCause(ctx.Err())
		}
	}
}
