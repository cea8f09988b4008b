package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"mneme/internal/api"
	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/ingest"
	"mneme/internal/settings"
	"mneme/internal/spans"
	"mneme/memory"
)

// searchableWait bounds how long a write with wait=searchable waits for vectors
// when its caller set no deadline.
const searchableWait = 10 * time.Second

// writing is where writes go: the replica's open writer.
type writing interface {
	Writer() (*ingest.Writer, error)
}

// writes takes the transports' writes to one shard.
type writes struct {
	shard     writing
	reads     *reads
	others    *others // nil where there is one shard
	embedders *embedders
	embedder  embed.Config // of namespaces that choose none
	draining  *atomic.Bool
	times     *times
	allow     func(ctx context.Context, w *ingest.Writer, level uint16) error // see levels.allow
}

// Capture implements rest.Writer.
func (n *writes) Capture(ctx context.Context, namespace string, captures []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
	return n.times.capture(ctx, wait, func() (memory.CaptureResponse, error) {
		return operate(ctx, spans.CreateMemory, namespace, toldOfCapture(wait), func(ctx context.Context) (memory.CaptureResponse, error) {
			return n.capture(ctx, namespace, captures, opt, wait)
		})
	})
}

func (n *writes) capture(ctx context.Context, namespace string, captures []memory.Capture, opt api.CaptureOptions, wait memory.Wait) (memory.CaptureResponse, error) {
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
func (n *writes) admitting() error {
	if n.draining.Load() {
		err := memory.Errorf(memory.CodeUnavailable, "the node is shutting down").WithHint("try again in a moment")
		err.RetryAfter = time.Second
		return err
	}
	return nil
}

// writer returns the writer that takes writes now.
func (n *writes) writer() (*ingest.Writer, error) {
	if err := n.admitting(); err != nil {
		return nil, err
	}
	return n.shard.Writer()
}

// Revise implements rest.Writer.
func (n *writes) Revise(ctx context.Context, namespace, as, id string, rev memory.Revision, ifMatch int, clientID string) (memory.RevisionResponse, error) {
	w, err := n.writer()
	if err != nil {
		return memory.RevisionResponse{}, err
	}
	return operate(ctx, spans.UpdateMemory, namespace, toldOfRevision, func(ctx context.Context) (memory.RevisionResponse, error) {
		return w.Revise(ctx, namespace, as, id, rev, ifMatch, clientID)
	})
}

// Forget implements rest.Writer.
func (n *writes) Forget(ctx context.Context, namespace, as, id string, ifMatch int) (memory.ForgetResponse, error) {
	w, err := n.writer()
	if err != nil {
		return memory.ForgetResponse{}, err
	}
	return operate(ctx, spans.DeleteMemory, namespace, toldOfForget, func(ctx context.Context) (memory.ForgetResponse, error) {
		return w.Forget(ctx, namespace, as, id, ifMatch)
	})
}

// ChangeGraph implements rest.Writer.
func (n *writes) ChangeGraph(ctx context.Context, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	w, err := n.writer()
	if err != nil {
		return memory.GraphChanged{}, err
	}
	if err := n.allow(ctx, w, events.GraphLevel); err != nil {
		return memory.GraphChanged{}, err
	}
	return operate(ctx, spans.UpdateMemory, namespace, toldOfGraph, func(ctx context.Context) (memory.GraphChanged, error) {
		return ingest.ChangeGraph(ctx, w, namespace, change)
	})
}

// NoteRead implements changes.
func (n *writes) NoteRead(ctx context.Context, namespace string, note events.ReadNote) (string, error) {
	w, err := n.writer()
	if err != nil {
		return "", err
	}
	if err := n.allow(ctx, w, events.ReadLevel); err != nil {
		return "", err
	}
	return ingest.NoteRead(ctx, w, namespace, note)
}

// CreateNamespace makes a namespace and returns it.
func (n *writes) CreateNamespace(ctx context.Context, req memory.CreateNamespace) (memory.Namespace, error) {
	if err := n.admitting(); err != nil {
		return memory.Namespace{}, err
	}
	made := req.Name
	if req.DryRun {
		made = "" // none is
	}
	info, err := operate(ctx, spans.CreateStore, made, nil, func(ctx context.Context) (memory.EmbedderInfo, error) {
		return n.createNamespace(ctx, req)
	})
	if err != nil {
		return memory.Namespace{}, err
	}
	if req.DryRun {
		return memory.Namespace{Name: req.Name, Settings: req.Settings, Embedder: info, Space: info.Space}, nil
	}
	if n.others != nil {
		return n.others.made(ctx, req.Name)
	}
	return n.reads.Namespace(ctx, req.Name)
}

// errEmbedder is underneath where an embedder that was asked for cannot be opened.
var errEmbedder = errors.New("embedder")

// createNamespace chooses the embedder and makes the namespace, unless it is only asked
// whether it would.
func (n *writes) createNamespace(ctx context.Context, req memory.CreateNamespace) (memory.EmbedderInfo, error) {
	var none memory.EmbedderInfo
	if err := settings.Check(req.Settings, true); err != nil {
		return none, err
	}
	space, err := n.embedders.choose(ctx, embedderFor(n.embedder, req.Settings))
	if err != nil {
		return none, memory.Errorf(memory.CodeUnavailable, "the embedder of the new namespace cannot be opened: %v", err).
			WithHint("create it with embedder.provider=builtin, or try again when the provider is there").
			WithCause(fmt.Errorf("%w: %w", errEmbedder, err))
	}
	encoded := ""
	if space != (embed.Space{}) {
		encoded = settings.EncodeSpace(space)
	}
	w, err := n.shard.Writer()
	if err != nil {
		return none, err
	}
	if req.DryRun {
		return settings.InfoOf(space), ingest.WouldCreateNamespace(ctx, w, req.Name, req.Settings)
	}
	if err := n.audits(ctx, w, req.Settings[settings.AuditInjections]); err != nil {
		return none, err
	}
	_, err = w.CreateNamespace(ctx, req.Name, req.Settings, encoded)
	return settings.InfoOf(space), err
}

// ChangeNamespace changes settings and returns the namespace.
func (n *writes) ChangeNamespace(ctx context.Context, name string, patch memory.PatchNamespace) (memory.Namespace, error) {
	w, err := n.writer()
	if err != nil {
		return memory.Namespace{}, err
	}
	if on := patch.Settings[settings.AuditInjections]; on != nil && !patch.DryRun {
		if err := n.audits(ctx, w, *on); err != nil {
			return memory.Namespace{}, err
		}
	}
	if _, err := w.ChangeNamespace(ctx, name, patch); err != nil {
		return memory.Namespace{}, err
	}
	return n.reads.Namespace(ctx, name)
}

// audits refuses to switch on what could not be kept: audited reads need their level, which is
// raised here where nothing has to wait for that.
func (n *writes) audits(ctx context.Context, w *ingest.Writer, value string) error {
	if value != settings.On {
		return nil
	}
	if err := n.allow(ctx, w, events.ReadLevel); err != nil {
		return err
	}
	return ingest.Allows(w, events.ReadLevel)
}

// DeleteNamespace ends a namespace and destroys its keys.
func (n *writes) DeleteNamespace(ctx context.Context, name string) (string, error) {
	w, err := n.writer()
	if err != nil {
		return "", err
	}
	return operate(ctx, spans.DeleteStore, name, nil, func(ctx context.Context) (string, error) {
		if n.others != nil {
			return n.others.delete(ctx, w, name)
		}
		_, at, err := w.DeleteNamespace(ctx, name)
		return at.String(), err
	})
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
