package node

import (
	"context"
	"strconv"
	"time"

	"mneme/internal/api"
	"mneme/internal/embed"
	"mneme/internal/ingest"
	"mneme/internal/settings"
	"mneme/memory"
)

// searchableWait bounds how long a write with wait=searchable waits for vectors
// when its caller set no deadline.
const searchableWait = 10 * time.Second

// Capture implements the transports' writing side.
func (n *Node) Capture(ctx context.Context, namespace string, captures []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	items := make([]ingest.Item, len(captures))
	for i, c := range captures {
		items[i] = ingest.Item{Capture: c, Origin: opt.Origin}
		if opt.Source != nil {
			items[i].Source = opt.Source[i]
		}
	}
	if wait == memory.WaitSearchable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, searchableWait)
		defer cancel()
	}
	w, err := n.writer()
	if err != nil {
		return memory.CaptureResponse{}, err
	}
	return w.Capture(ctx, namespace, items, wait)
}

// admitting refuses writes while the node drains.
func (n *Node) admitting() error {
	if n.draining.Load() {
		err := memory.Errorf(memory.CodeUnavailable, "the node is shutting down").WithHint("try again in a moment")
		err.RetryAfter = time.Second
		return err
	}
	return nil
}

// writer returns the writer that takes writes now.
func (n *Node) writer() (*ingest.Writer, error) {
	if err := n.admitting(); err != nil {
		return nil, err
	}
	return n.replica.Writer()
}

// Revise implements the transports' writing side.
func (n *Node) Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	w, err := n.writer()
	if err != nil {
		return memory.RevisionResponse{}, err
	}
	return w.Revise(ctx, namespace, as, id, rev, ifMatch, clientID)
}

// Forget implements the transports' writing side.
func (n *Node) Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	w, err := n.writer()
	if err != nil {
		return memory.ForgetResponse{}, err
	}
	return w.Forget(ctx, namespace, as, id, ifMatch)
}

// CreateNamespace makes a namespace and returns it.
func (n *Node) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	if err := n.admitting(); err != nil {
		return memory.Namespace{}, err
	}
	if _, err := n.createNamespace(ctx, req); err != nil {
		return memory.Namespace{}, err
	}
	return n.query.Namespace(ctx, req.Name)
}

// ChangeNamespace changes settings and returns the namespace.
func (n *Node) ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error) {
	w, err := n.writer()
	if err != nil {
		return memory.Namespace{}, err
	}
	if _, err := w.ChangeNamespace(ctx, name, patch); err != nil {
		return memory.Namespace{}, err
	}
	return n.query.Namespace(ctx, name)
}

// DeleteNamespace ends a namespace and destroys its keys.
func (n *Node) DeleteNamespace(ctx context.Context, name string) (string, error) {
	w, err := n.writer()
	if err != nil {
		return "", err
	}
	at, err := w.DeleteNamespace(ctx, name)
	return at.String(), err
}

// embedderFor is the node's configuration with what a namespace's settings say
// otherwise.
func embedderFor(cfg embed.Config, set map[string]string) embed.Config {
	provider := set[settings.EmbedderProvider]
	if provider != "" && provider != cfg.Provider {
		cfg = embed.Config{Provider: provider, Dir: cfg.Dir}
	}
	if m := set[settings.EmbedderModel]; m != "" {
		cfg.Model = m
	}
	if d, err := strconv.Atoi(set[settings.EmbedderDimensions]); err == nil {
		cfg.Dimensions = d
	}
	return cfg
}
