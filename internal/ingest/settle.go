package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// A namespace that does not live on the first shard is two events: the directory's, on
// the first shard, which decides, and its home's, on the shard that the first one names.
// The writer of that shard writes the second one, after a crash as without one.

// Settling is the part of a writer that places namespaces, and makes and ends the homes of
// those that were placed here.
type Settling struct{ w *Writer }

// Settling gives that part.
func (w *Writer) Settling() Settling { return Settling{w} }

// place chooses the shard of a new namespace: of those with the fewest the first one.
// What it comes to is in the event.
func (s Settling) place() uint16 {
	living := make([]int, max(s.w.opt.Shards, 1))
	v := s.w.opt.State.View()
	v.Directory(func(e *projections.Entry) {
		if !e.Deleted && int(e.Shard) < len(living) {
			living[e.Shard]++
		}
	})
	if err := v.Close(); err != nil {
		s.w.opt.Logger.Error("view could not be closed", "err", err)
	}
	return uint16(slices.Index(living, slices.Min(living)))
}

// Settle makes the namespaces that the directory has placed on this shard and that are
// not here, and ends those that it has deleted, as far as the directory has come on this
// node. It is idempotent. What was deleted goes first: its name may be taken again. What was
// deleted before its home was made is made and ended, so that the shard has a tombstone that
// says so, and its keys are destroyed like any other's.
func (s Settling) Settle(ctx context.Context) error {
	if s.w.opt.Directory == nil {
		return nil
	}
	directory, here := s.w.opt.Directory.View(), s.w.opt.State.View()
	var made, deleted []projections.Entry
	unmade := map[events.ID]bool{}
	directory.Directory(func(e *projections.Entry) {
		if e.Shard != s.w.opt.Shard {
			return
		}
		home, known := here.NamespaceByID(e.ID)
		switch {
		case e.Deleted && !known:
			unmade[e.ID] = true
			deleted = append(deleted, *e)
		case e.Deleted && !home.Deleted:
			deleted = append(deleted, *e)
		case !e.Deleted && !known:
			made = append(made, *e)
		}
	})
	err := here.Close()
	for _, e := range inOrder(deleted) {
		if err == nil && unmade[e.ID] {
			err = s.make(ctx, directory, e)
		}
		if err == nil {
			err = s.end(ctx, e)
		}
	}
	for _, e := range inOrder(made) {
		if err == nil {
			err = s.make(ctx, directory, e)
		}
	}
	return errors.Join(err, directory.Close())
}

func inOrder(list []projections.Entry) []projections.Entry {
	slices.SortFunc(list, func(a, b projections.Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return list
}

func (s Settling) end(ctx context.Context, e projections.Entry) error {
	res, err := s.w.submit(ctx, newDraft(events.Header{Type: events.TypeNamespaceDeleted, Event: s.w.ids.New(), Namespace: e.ID}))
	if err == nil && res.Outcome == projections.OutcomeApplied {
		err = s.w.opt.Keys.DestroyNamespace(e.ID)
	}
	if err != nil {
		return fmt.Errorf("end namespace %s, which was deleted: %w", e.Name, err)
	}
	return nil
}

func (s Settling) make(ctx context.Context, directory *projections.View, e projections.Entry) error {
	env, _, err := directory.Envelope(e.Placed)
	raw := map[string]string{}
	if err == nil {
		err = settings.Open(s.w.opt.Keys, &env, raw)
	}
	if err == nil {
		_, err = s.w.submit(ctx, s.w.directoryDraft(events.TypeNamespaceCreated, e.ID, e.Name, events.Settings{Set: raw}))
	}
	if err != nil {
		return fmt.Errorf("make the home of namespace %s: %w", e.Name, err)
	}
	return nil
}

// elsewhere is the error for a namespace that lives on another shard. Callers do not ask
// this one for it.
func elsewhere(ns projections.NamespaceInfo) error {
	return memory.Errorf(memory.CodeUnavailable, "namespace %q lives on shard %d", ns.Name, ns.Shard).WithHint("try again in a moment")
}

// lists reports whether the directory has a namespace that lives here. Where it has not
// heard of it yet, which a former leader's had, nobody can say whether it was deleted since.
func (s Settling) lists(ns projections.NamespaceInfo) (bool, error) {
	if s.w.opt.Directory == nil {
		return true, nil // it is in this state
	}
	v := s.w.opt.Directory.View()
	e, ok := v.NamespaceByID(ns.ID)
	if err := v.Close(); err != nil {
		return false, err
	}
	if !ok {
		return false, memory.Errorf(memory.CodeUnavailable, "this node leads shard %d, where namespace %q lives, and its copy of shard 0, which lists it, lags", ns.Shard, ns.Name).
			WithHint("try again in a moment; memctl status says how shard 0 is on this node")
	}
	return !e.Deleted, nil
}
