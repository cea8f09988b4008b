package loader

import (
	"context"

	"mneme/client"
	"mneme/memory"
)

// Node is what an import needs of one.
type Node interface {
	Namespace(ctx context.Context, namespace string) (memory.Namespace, error)
	CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error)
	CaptureBatch(ctx context.Context, namespace string, items []memory.Capture, opts client.CaptureOptions) (memory.CaptureResponse, error)
	List(ctx context.Context, namespace string, opts client.ListOptions) (memory.RecordList, error)
	Get(ctx context.Context, namespace, id string, opts client.GetOptions) (memory.Record, error)
	Revise(ctx context.Context, namespace, id string, rev memory.Revision, opts client.WriteOptions) (memory.RevisionResponse, error)
	Forget(ctx context.Context, namespace, id string, opts client.WriteOptions) (memory.ForgetResponse, error)
	Audit(ctx context.Context, namespace string, opts client.AuditOptions) (memory.AuditPage, error)
	History(ctx context.Context, namespace, id string, opts client.ReadOptions) (memory.History, error)
	ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error)
	ReadGraph(ctx context.Context, namespace string, req memory.GraphRequest, opts client.ReadOptions) (memory.Graph, error)
}

// NodeOf is the node that a client talks to.
func NodeOf(c *client.Client) Node { return node{c} }

type node struct{ *client.Client }

func (n node) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	return client.GraphOf(n.Client, namespace).Change(ctx, change)
}

func (n node) ReadGraph(ctx context.Context, namespace string, req memory.GraphRequest, opts client.ReadOptions) (memory.Graph, error) {
	return client.GraphOf(n.Client, namespace).Read(ctx, req, opts)
}
