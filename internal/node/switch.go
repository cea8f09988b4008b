package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"mneme/internal/embed"
	"mneme/internal/ingest"
	"mneme/internal/settings"
	"mneme/memory"
)

// probeDeadline is how long a provider has to show that it is there.
const probeDeadline = 20 * time.Second

// Embedder tells what embeds a namespace, and how a change of it goes.
func (n *reads) Embedder(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	st, id, err := n.query.Embedder(ctx, namespace)
	if err != nil || st.Building == nil {
		return st, err
	}
	b := st.Building
	at, ok := n.backfill.Status(id)
	if !ok || at.Space.ID() != b.Embedder.Space {
		return st, nil
	}
	b.Phase, b.Skipped, b.Rate, b.Error = at.Phase, at.Skipped, at.Rate, at.Err
	if left := b.Total - min(b.Total, b.Done+b.Skipped); b.Rate > 0 {
		b.ETAS = float64(left) / b.Rate
	}
	b.ErrorAt, b.RetryAt = notZero(at.ErrAt), notZero(at.RetryAt)
	return st, nil
}

func notZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// SwitchEmbedder begins to change a namespace's embedder, once the new one has
// shown that it works. It reports false if there is nothing to begin: the
// namespace has that space already, or is on its way to it.
func (n *writes) SwitchEmbedder(ctx context.Context, namespace string, req memory.SwitchEmbedder) (memory.EmbedderStatus, bool, error) {
	if err := n.admitting(); err != nil {
		return memory.EmbedderStatus{}, false, err
	}
	w, err := n.writer()
	if err != nil {
		return memory.EmbedderStatus{}, false, err
	}
	st, err := ingest.Confirmed(ctx, w, func(bool) (memory.EmbedderStatus, error) { return n.reads.Embedder(ctx, namespace) })
	if err != nil {
		return st, false, err
	}
	space, err := n.chooseSpace(ctx, req)
	if err != nil {
		return st, false, err
	}
	if space.Provider != "" && space.ID() != st.Embedder.Space && (st.Building == nil || space.ID() != st.Building.Embedder.Space) {
		if err := n.probe(ctx, space); err != nil {
			return st, false, err
		}
	}
	if w, err = n.writer(); err != nil { // the embedder may have taken its time
		return st, false, err
	}
	began, err := w.BuildSpace(ctx, namespace, space)
	if err != nil {
		return st, false, err
	}
	st, err = n.reads.Embedder(ctx, namespace)
	return st, began, err
}

// chooseSpace finds the space that a request comes to.
func (n *writes) chooseSpace(ctx context.Context, req memory.SwitchEmbedder) (embed.Space, error) {
	set := map[string]string{settings.EmbedderProvider: req.Provider}
	if req.Model != "" {
		set[settings.EmbedderModel] = req.Model
	}
	if req.Dimensions != 0 {
		set[settings.EmbedderDimensions] = strconv.Itoa(req.Dimensions)
	}
	if err := settings.Check(set, true); err != nil {
		return embed.Space{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	space, err := n.embedders.choose(ctx, embedderFor(n.embedder, set))
	if errors.Is(err, embed.ErrConfig) {
		return space, memory.Errorf(memory.CodeInvalid, "%v", err).WithCause(err)
	}
	if err != nil {
		return space, away(err)
	}
	return space, nil
}

// probe has the space's embedder make a vector.
func (n *writes) probe(ctx context.Context, space embed.Space) error {
	ctx, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	e, err := n.embedders.For(ctx, space)
	if err == nil {
		_, err = e.Embed(ctx, embed.Document, []string{"a memory"})
	}
	if err != nil {
		return away(err)
	}
	return nil
}

func away(err error) error {
	return memory.Errorf(memory.CodeUnavailable, "the embedder does not answer: %v", err).
		WithHint("nothing was changed; try again when it is there").WithCause(err)
}

// CancelSwitch gives up the space that a namespace is on its way to.
func (n *writes) CancelSwitch(ctx context.Context, namespace string) (memory.EmbedderStatus, error) {
	w, err := n.writer()
	if err != nil {
		return memory.EmbedderStatus{}, err
	}
	if err := w.CancelSpace(ctx, namespace); err != nil {
		return memory.EmbedderStatus{}, err
	}
	return n.reads.Embedder(ctx, namespace)
}

// checkSwitches looks at the changes of embedders that are under way.
func (d *doctor) checkSwitches(ctx context.Context) []memory.Check {
	var out []memory.Check
	for _, s := range d.n.served {
		out = append(out, s.checkSwitches(ctx)...)
	}
	return out
}

func (s *served) checkSwitches(ctx context.Context) []memory.Check {
	v := s.state.View()
	list := v.Namespaces()
	if err := v.Close(); err != nil {
		return []memory.Check{{Name: s.named("changes of embedders"), State: "fail", Detail: err.Error()}}
	}
	var out []memory.Check
	for _, ns := range list {
		st, err := s.reads.Embedder(ctx, ns.Name)
		if err != nil || st.Building == nil {
			continue // one that is gone by now is no trouble
		}
		b := st.Building
		c := memory.Check{Name: "embedder change of " + ns.Name, State: "ok", Detail: fmt.Sprintf("to %s %s: %d of %d records", b.Embedder.Provider, b.Embedder.Model, b.Done, b.Total)}
		if b.Phase == memory.PhaseWaiting {
			c.State, c.Detail = "warn", c.Detail+"; "+b.Error
			c.Hint = "searches go on with " + st.Embedder.Provider + "; memctl embedder cancel -n " + ns.Name + " gives it up"
		}
		out = append(out, c)
	}
	return out
}
