package client

import (
	"context"

	"mneme/memory"
)

// Embedder tells what turns a namespace's text into vectors, and how far a
// change of it has come.
func (c *Client) Embedder(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	var st memory.EmbedderStatus
	err := c.do(ctx, call{method: "GET", path: []string{"namespaces", namespace, "embedder"}}, &st)
	return st, err
}

// SwitchEmbedder begins to change a namespace's embedder: its vectors are built
// anew behind everything else, then searches use them. A namespace that has
// that embedder already, or is on its way to it, is answered as it stands;
// another change under way is a conflict, an embedder that does not answer is
// unavailable.
func (c *Client) SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (memory.EmbedderStatus, error) {
	var st memory.EmbedderStatus
	err := c.do(ctx, call{method: "POST", path: []string{"namespaces", namespace, "embedder"}, body: req, header: WriteOptions{}.header(c.opts.Agent), write: true}, &st)
	return st, err
}

// CancelSwitch gives up the change of a namespace's embedder that is under way;
// a conflict if there is none.
func (c *Client) CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	var st memory.EmbedderStatus
	err := c.do(ctx, call{method: "DELETE", path: []string{"namespaces", namespace, "embedder", "building"}, header: WriteOptions{}.header(c.opts.Agent), write: true}, &st)
	return st, err
}
