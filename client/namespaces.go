package client

import (
	"context"

	"mneme/memory"
)

// CreateNamespace makes a namespace; an existing one is a conflict.
func (c *Client) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	var ns memory.Namespace
	err := c.do(ctx, call{method: "POST", path: []string{"namespaces"}, body: req, header: c.writeHeader(WriteOptions{}), write: true}, &ns)
	return ns, err
}

// Namespaces lists the namespaces that the caller may see, by name.
func (c *Client) Namespaces(ctx context.Context) (memory.NamespaceList, error) {
	var list memory.NamespaceList
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces"}}, &list)
	return list, err
}

// Namespace describes one namespace.
func (c *Client) Namespace(ctx context.Context, name string) (memory.Namespace, error) {
	var ns memory.Namespace
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", name}}, &ns)
	return ns, err
}

// PatchNamespace changes settings and returns the namespace after the change.
func (c *Client) PatchNamespace(ctx context.Context, name string, req memory.PatchNamespace) (memory.Namespace, error) {
	var ns memory.Namespace
	err := c.do(ctx, call{method: "PATCH", path: []string{"namespaces", name}, body: req, header: c.writeHeader(WriteOptions{}), write: true}, &ns)
	return ns, err
}

// DeleteNamespace deletes a namespace with everything in it, for good.
func (c *Client) DeleteNamespace(ctx context.Context, name string) error {
	return c.do(ctx, call{method: "DELETE", path: []string{"namespaces", name}, header: c.writeHeader(WriteOptions{}), write: true}, nil)
}
