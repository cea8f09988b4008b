package client

import (
	"context"

	"mneme/memory"
)

// CreateNamespace makes a namespace; an existing one is a conflict.
func (c *Client) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	var ns memory.Namespace
	err := c.do(ctx, call{method: "POST", path: []string{"namespaces"}, body: req, header: WriteOptions{}.header(c.opts.Agent), write: true}, &ns)
	return ns, err
}

// Namespaces lists all namespaces that the caller may see, by name. It asks for one
// page after another: one that is made or deleted meanwhile may be there or not.
func (c *Client) Namespaces(ctx context.Context) (memory.NamespaceList, error) {
	all := memory.NamespaceList{Namespaces: []memory.Namespace{}}
	req := memory.NamespacesRequest{Limit: memory.MaxLimit}
	for {
		var page memory.NamespaceList
		if err := c.do(ctx, call{method: "GET", path: []string{"namespaces"}, query: req.Values()}, &page); err != nil {
			return memory.NamespaceList{}, err
		}
		all.Namespaces = append(all.Namespaces, page.Namespaces...)
		if page.Cursor == "" {
			return all, nil
		}
		if page.Cursor <= req.Cursor { // it is a name, and they ascend
			return memory.NamespaceList{}, memory.Errorf(memory.CodeInternal, "namespaces: the node's pages do not end")
		}
		req.Cursor = page.Cursor
	}
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
	err := c.do(ctx, call{method: "PATCH", path: []string{"namespaces", name}, body: req, header: WriteOptions{}.header(c.opts.Agent), write: true}, &ns)
	return ns, err
}

// DeleteNamespace deletes a namespace with everything in it, for good.
func (c *Client) DeleteNamespace(ctx context.Context, name string) error {
	var deleted struct {
		Name     string `json:"name"`
		Position string `json:"position"`
	}
	return c.do(ctx, call{method: "DELETE", path: []string{"namespaces", name}, header: WriteOptions{}.header(c.opts.Agent), write: true}, &deleted)
}
