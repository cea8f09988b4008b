package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mneme/internal/embed"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// BuildSpace begins to build a namespace's next space beside the current one.
// It reports false if the namespace has that space already, or is on its way
// to it. Errors: conflict, if another one is being built.
func (w *Writer) BuildSpace(ctx context.Context, namespace string, space embed.Space) (bool, error) {
	if space.Provider == "" {
		return false, memory.Errorf(memory.CodeInvalid, "a namespace cannot give up its vectors").
			WithHint("search by words alone: memctl namespace set %s %s=0", namespace, settings.VectorWeight)
	}
	id, set, err := w.spacesOf(namespace)
	if err != nil {
		return false, err
	}
	if settings.KeyOf(space) == set.SpaceKey() && set.IsBuilding() {
		return false, beingBuilt(namespace, set.Next)
	}
	res, err := w.spaceEvent(ctx, events.TypeSpaceBuilding, id, space, nil)
	switch {
	case err != nil:
		return false, err
	case res.Outcome == projections.OutcomeApplied:
		return true, nil
	case res.Outcome == projections.OutcomeDuplicate:
		return false, nil
	case res.Outcome == projections.OutcomeConflict:
		return false, beingBuilt(namespace, set.Next)
	}
	return false, memory.NoNamespace(namespace)
}

func beingBuilt(namespace string, next embed.Space) error {
	to := "another embedder"
	if next.Provider != "" {
		to = next.String()
	}
	return memory.Errorf(memory.CodeConflict, "namespace %q is on its way to %s", namespace, to).
		WithHint("memctl embedder cancel -n %s", namespace)
}

// CancelSpace gives up the space that is being built, with its vectors.
// Errors: conflict, if there is none.
func (w *Writer) CancelSpace(ctx context.Context, namespace string) error {
	id, set, err := w.spacesOf(namespace)
	if err != nil {
		return err
	}
	none := memory.Errorf(memory.CodeConflict, "namespace %q is not changing its embedder", namespace)
	if !set.IsBuilding() {
		return none
	}
	res, err := w.spaceEvent(ctx, events.TypeSpaceDropped, id, set.Next, nil)
	if err == nil && res.Outcome != projections.OutcomeApplied {
		return none // it was switched to meanwhile
	}
	return err
}

// spacesOf finds a namespace to write to and its spaces.
func (w *Writer) spacesOf(namespace string) (events.ID, *settings.Effective, error) {
	a, err := w.admit(namespace)
	if err != nil {
		return events.ID{}, nil, err
	}
	set, err := w.opt.Book.Of(a.view, a.ns)
	return a.ns.ID, set, errors.Join(err, a.view.Close())
}

func (w *Writer) spaceEvent(ctx context.Context, t events.Type, ns events.ID, space embed.Space, compared *memory.SpaceComparison) (projections.EventResult, error) {
	return w.submit(ctx, w.directoryDraft(t, ns, "", settings.SpaceEvent(space, compared)))
}

// finish compares the spaces, catches up with what was captured meanwhile, and
// switches.
func (b *Builder) finish(ctx context.Context, ns projections.NamespaceInfo, set *settings.Effective, j *job) error {
	b.phase(j, memory.PhaseComparing)
	c, err := b.compare(ctx, ns.ID, set.Space, j.space)
	if err != nil {
		return fmt.Errorf("compare the spaces: %w", err)
	}
	if c.Sample > 0 && c.Recall < set.MinRecall {
		return memory.Errorf(memory.CodeUnavailable, "a search of the new space finds %.2f of the nearest vectors, less than %.2f; to have it all the same: memctl namespace set %s %s=%.2f",
			c.Recall, set.MinRecall, ns.Name, settings.MinRecall, c.Recall)
	}
	for range lastRounds {
		n, end, err := b.fill(ctx, ns, j)
		if err != nil {
			return err
		}
		if end && n == 0 {
			break
		}
	}
	c.At, c.From, c.To = b.writer.opt.Now().UTC(), settings.InfoOf(set.Space), settings.InfoOf(j.space)
	if c.Records, c.NewVectors, err = b.counts(ns.ID, j.space); err != nil {
		return err
	}
	if _, c.OldVectors, err = b.counts(ns.ID, set.Space); err != nil {
		return err
	}
	if missing := c.Records - min(c.Records, c.NewVectors+uint64(len(j.unembeddable))); missing > buildBatch {
		return nil // writers are ahead; the next step goes on
	}
	res, err := b.writer.spaceEvent(ctx, events.TypeSpaceSwitched, ns.ID, j.space, &c)
	if err != nil {
		return err
	}
	if res.Outcome == projections.OutcomeApplied {
		b.writer.opt.Logger.Info("a namespace has another embedder", "namespace", ns.Name, "from", set.Space.String(), "to", j.space.String(),
			"records", c.Records, "vectors", c.NewVectors, "recall", c.Recall, "agreement", c.Agreement)
	}
	return nil // anything else: it was cancelled meanwhile
}

// dropKept drops the spaces that were kept long enough and returns how long the
// next one has.
func (b *Builder) dropKept(ctx context.Context, ns projections.NamespaceInfo, set *settings.Effective) time.Duration {
	wait := idleRound
	for _, k := range set.Kept {
		left := time.Unix(0, k.Since).Add(set.KeepOld).Sub(b.writer.opt.Now())
		if left > 0 {
			wait = min(wait, left)
			continue
		}
		res, err := b.writer.spaceEvent(ctx, events.TypeSpaceDropped, ns.ID, k.Space, nil)
		switch {
		case err != nil:
			b.writer.opt.Logger.Warn("a kept space was not dropped", "namespace", ns.Name, "space", k.Space.String(), "err", err)
		case res.Outcome == projections.OutcomeApplied:
			b.writer.opt.Logger.Info("a kept space was dropped", "namespace", ns.Name, "space", k.Space.String())
		}
	}
	return wait
}
