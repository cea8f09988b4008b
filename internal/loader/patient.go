package loader

import (
	"context"
	"time"

	"mneme/client"
	"mneme/memory"
)

// Patient is a node that is asked again while it is overloaded, which says that it did nothing, and
// that is unavailable where something else answers in its place; nil for nil. Captures are not: they go in batches, of which a part may be taken.
func Patient(n Node, sleep func(context.Context, time.Duration) error) Node {
	if n == nil {
		return nil
	}
	return patient{n, sleep}
}

type patient struct {
	Node
	sleep func(context.Context, time.Duration) error
}

// decided has what a proxy in between answered decide nothing: of its 404 no memory was forgotten, and of
// its 409 none is another one.
func decided(err error) error {
	said := client.Said(err)
	if said == memory.CodeOf(err) {
		return err
	}
	return memory.Errorf(said, "%w", err).WithHint("%s", memory.AsError(err).Hint)
}

// patiently repeats ask while the node is overloaded.
func patiently[T any](ctx context.Context, n patient, ask func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		got, err := ask()
		err = decided(err)
		if memory.CodeOf(err) != memory.CodeOverloaded || attempt == maxAttempts {
			return got, err
		}
		if serr := n.sleep(ctx, max(pause<<(attempt-1), memory.AsError(err).RetryAfter)); serr != nil {
			return got, interrupted(serr)
		}
	}
}

func (n patient) Namespace(ctx context.Context, namespace string) (memory.Namespace, error) {
	return patiently(ctx, n, func() (memory.Namespace, error) { return n.Node.Namespace(ctx, namespace) })
}

func (n patient) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	return patiently(ctx, n, func() (memory.Namespace, error) { return n.Node.CreateNamespace(ctx, req) })
}

func (n patient) List(ctx context.Context, namespace string, opts client.ListOptions) (memory.RecordList, error) {
	return patiently(ctx, n, func() (memory.RecordList, error) { return n.Node.List(ctx, namespace, opts) })
}

func (n patient) Get(ctx context.Context, namespace, id string, opts client.GetOptions) (memory.Record, error) {
	return patiently(ctx, n, func() (memory.Record, error) { return n.Node.Get(ctx, namespace, id, opts) })
}

func (n patient) Revise(ctx context.Context, namespace, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error) {
	return patiently(ctx, n, func() (memory.RevisionResponse, error) { return n.Node.Revise(ctx, namespace, id, rev, opts) })
}

func (n patient) Forget(ctx context.Context, namespace, id string, opts client.WriteOptions) (memory.ForgetResponse, error) {
	return patiently(ctx, n, func() (memory.ForgetResponse, error) { return n.Node.Forget(ctx, namespace, id, opts) })
}

func (n patient) Audit(ctx context.Context, namespace string, opts client.AuditOptions) (memory.AuditPage, error) {
	return patiently(ctx, n, func() (memory.AuditPage, error) { return n.Node.Audit(ctx, namespace, opts) })
}

func (n patient) History(ctx context.Context, namespace, id string, opts client.ReadOptions) (memory.History, error) {
	return patiently(ctx, n, func() (memory.History, error) { return n.Node.History(ctx, namespace, id, opts) })
}

func (n patient) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	return patiently(ctx, n, func() (memory.GraphChanged, error) { return n.Node.ChangeGraph(ctx, namespace, change) })
}

func (n patient) ReadGraph(ctx context.Context, namespace string, req memory.GraphRequest, opts client.ReadOptions) (memory.Graph, error) {
	return patiently(ctx, n, func() (memory.Graph, error) { return n.Node.ReadGraph(ctx, namespace, req, opts) })
}
