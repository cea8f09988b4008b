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
	var set *settings.Effective
	id, err := Confirmed(ctx, w, func(bool) (id events.ID, err error) {
		id, set, err = w.spacesOf(namespace)
		if err == nil && settings.KeyOf(space) == set.SpaceKey() && set.IsBuilding() {
			err = beingBuilt(namespace, set.Next)
		}
		return id, err
	})
	if err != nil {
		return false, err
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
	none := memory.Errorf(memory.CodeConflict, "namespace %q is not changing its embedder", namespace)
	var set *settings.Effective
	id, err := Confirmed(ctx, w, func(bool) (id events.ID, err error) {
		id, set, err = w.spacesOf(namespace)
		if err == nil && !set.IsBuilding() {
			err = none
		}
		return id, err
	})
	if err != nil {
		return err
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
	set, err := w.opt.Settings.Of(a.view, a.ns)
	return a.ns.ID, set, errors.Join(err, a.view.Close())
}

// settingsOf reads the present settings of a namespace; none are what one has that
// was deleted.
func (w *Writer) settingsOf(id events.ID) (set *settings.Effective, err error) {
	v := w.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	ns, ok := v.NamespaceByID(id)
	if !ok {
		return &settings.Effective{}, nil
	}
	return w.opt.Settings.Of(v, ns)
}

func (w *Writer) spaceEvent(ctx context.Context, t events.Type, ns events.ID, space embed.Space, compared *memory.SpaceComparison) (projections.EventResult, error) {
	return w.submit(ctx, w.directoryDraft(t, ns, "", settings.SpaceEvent(space, compared)))
}

// lastRounds catch up with what was captured while spaces were compared.
const lastRounds = 3

// finish compares the spaces, catches up with what was captured meanwhile, and
// switches.
func (s *spaceWork) finish(ctx context.Context, j *job) error {
	from, to := j.set.Space, j.space()
	s.backfill.mu.Lock()
	j.status.Phase = memory.PhaseComparing
	s.backfill.mu.Unlock()
	c, err := s.backfill.compare(ctx, j.ns, from, to)
	if err != nil {
		return fmt.Errorf("compare the spaces: %w", err)
	}
	if c.Sample > 0 && c.Recall < j.set.MinRecall {
		return memory.Errorf(memory.CodeUnavailable, "a search of the new space finds %.2f of the nearest vectors, less than %.2f; to have it all the same: memctl namespace set %s %s=%.2f",
			c.Recall, j.set.MinRecall, j.name, settings.MinRecall, c.Recall)
	}
	for range lastRounds {
		n, end, err := s.fill(ctx, j)
		if err != nil {
			return err
		}
		if end && n == 0 {
			break
		}
	}
	c.At, c.From, c.To = s.writer.opt.Now().UTC(), settings.InfoOf(from), settings.InfoOf(to)
	if c.Records, c.NewVectors, err = s.counts(j, to); err != nil {
		return err
	}
	if _, c.OldVectors, err = s.counts(j, from); err != nil {
		return err
	}
	if missing := c.Records - min(c.Records, c.NewVectors+uint64(len(j.unembeddable))); missing > batchVersions {
		return nil // writers are ahead; the next step goes on
	}
	res, err := s.writer.spaceEvent(ctx, events.TypeSpaceSwitched, j.ns, to, &c)
	if err != nil {
		return err
	}
	if res.Outcome == projections.OutcomeApplied {
		s.writer.opt.Logger.Info("a namespace has another embedder", "namespace", j.name, "from", from.String(), "to", to.String(),
			"records", c.Records, "vectors", c.NewVectors, "recall", c.Recall, "agreement", c.Agreement)
	}
	return nil // anything else: it was cancelled meanwhile
}

// left is how many records lack vectors that they could have.
func (s *spaceWork) left(j *job) (uint64, error) {
	records, done, err := s.counts(j, j.space())
	return records - min(records, done+uint64(len(j.unembeddable))), err
}

func (s *spaceWork) counts(j *job, space embed.Space) (records, done uint64, err error) {
	v := s.writer.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	done, err = v.SpaceRecords(j.ns, settings.KeyOf(space))
	return v.NamespaceTotals(j.ns).Records, done, err
}

// dropKept drops the spaces that were kept long enough and returns how long the
// next one has, a minute at most.
func (w *Writer) dropKept(ctx context.Context) time.Duration {
	v := w.opt.State.View()
	list := v.Namespaces()
	if err := v.Close(); err != nil {
		w.opt.Logger.Warn("kept spaces could not be looked at", "err", err)
	}
	wait := lookAgain
	for _, ns := range list {
		if len(ns.Kept) == 0 {
			continue
		}
		left, err := w.dropKeptOf(ctx, ns)
		if err != nil {
			w.opt.Logger.Warn("a kept space was not dropped", "namespace", ns.Name, "err", err)
		}
		wait = min(wait, left)
	}
	return wait
}

func (w *Writer) dropKeptOf(ctx context.Context, ns projections.NamespaceInfo) (wait time.Duration, err error) {
	set, err := w.settingsOf(ns.ID)
	if err != nil {
		return lookAgain, err
	}
	wait = lookAgain
	for _, k := range set.Kept {
		if left := time.Unix(0, k.Since).Add(set.KeepOld).Sub(w.opt.Now()); left > 0 {
			wait = min(wait, left)
			continue
		}
		res, dropErr := w.spaceEvent(ctx, events.TypeSpaceDropped, ns.ID, k.Space, nil)
		if err = errors.Join(err, dropErr); dropErr == nil && res.Outcome == projections.OutcomeApplied {
			w.opt.Logger.Info("a kept space was dropped", "namespace", ns.Name, "space", k.Space.String())
		}
	}
	return wait, err
}
