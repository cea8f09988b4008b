package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"mneme/memory"
)

// CaptureOptions says how a capture is answered.
type CaptureOptions struct {
	// Wait is how far the write must have come; empty means applied.
	Wait memory.Wait
	// IdempotencyKey gives captures without an id theirs: the key for a
	// single capture, key/0, key/1, … for a batch. Empty means a random one.
	IdempotencyKey string
	// Origin says how the memories came to be; empty means capture.
	Origin memory.Origin
}

// Capture remembers one thing. A capture that fails is an error; one that was
// already there has the status duplicate. If the answer is lost, it is sent
// once more under the same id, or to each of several nodes; if that is lost too, the error is
// memory.CodeOutcomeUnknown and names the id.
func (c *Client) Capture(ctx context.Context, namespace string, item memory.Capture, opts CaptureOptions) (memory.CaptureResponse, error) {
	if item.ID == "" {
		item.ID = opts.key(c)
	}
	if item.Agent == "" {
		item.Agent = c.opts.Agent
	}
	resp, err := c.capture(ctx, namespace, item, opts)
	var e *memory.Error
	if errors.As(err, &e) && e.Code == memory.CodeOutcomeUnknown {
		_ = e.WithHint("it may be sent again with the same id, %s", item.ID)
	}
	return resp, err
}

// CaptureBatch remembers up to memory.MaxBatchItems things with one request.
// The error is nil whenever the node answered, even if every item failed: look
// at the results, which are in the order of items.
func (c *Client) CaptureBatch(ctx context.Context, namespace string, items []memory.Capture, opts CaptureOptions) (memory.CaptureResponse, error) {
	if len(items) == 0 {
		return memory.CaptureResponse{}, memory.Errorf(memory.CodeInvalid, "a batch needs at least one capture")
	}
	key := opts.key(c)
	out := make([]memory.Capture, len(items))
	for i, item := range items {
		if item.ID == "" {
			item.ID = key + "/" + strconv.Itoa(i)
		}
		if item.Agent == "" {
			item.Agent = c.opts.Agent
		}
		out[i] = item
	}
	resp, err := c.capture(ctx, namespace, out, opts)
	if err == nil && len(resp.Results) != len(items) {
		return resp, memory.Errorf(memory.CodeInternal, "%s answered %d results for %d captures", c.Addr(), len(resp.Results), len(items)).
			WithHint(foreignHint).WithCause(ErrForeign)
	}
	return resp, err
}

func (opts CaptureOptions) key(c *Client) string {
	if opts.IdempotencyKey != "" {
		return opts.IdempotencyKey
	}
	return c.opts.NewID()
}

// capture sends body, whose items all have ids, and once more if the outcome
// stayed unknown, or to each of several nodes. After that a refusal such as "unavailable", and whatever
// no memnode answers, says nothing about the first attempt, so the outcome stays unknown.
func (c *Client) capture(ctx context.Context, namespace string, body any, opts CaptureOptions) (memory.CaptureResponse, error) {
	rc := call{method: "POST", path: []string{"namespaces", namespace, "events"}, body: body, write: true, repeat: true}
	rc.query = url.Values{}
	set(rc.query, "wait", string(opts.Wait))
	set(rc.query, "origin", string(opts.Origin))
	return repeated[memory.CaptureResponse](ctx, c, rc)
}

// repeated sends a write that may be sent again, and does so once if its outcome stayed
// unknown, or at each of several nodes.
func repeated[R any](ctx context.Context, c *Client, rc call) (R, error) {
	var resp, none R
	first := c.do(ctx, rc, &resp)
	for range max(1, len(c.nodes.list)-1) {
		if memory.CodeOf(first) != memory.CodeOutcomeUnknown || ctx.Err() != nil {
			return resp, first
		}
		resp = none
		if again := c.do(ctx, rc, &resp); !memory.CodeOf(again).Transient() && !errors.Is(again, ErrForeign) {
			return resp, again
		}
	}
	return none, first
}
