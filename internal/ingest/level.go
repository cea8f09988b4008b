package ingest

import (
	"context"
	"errors"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// RaiseLevel lets writers use the log's features up to a level. Every node of the cluster
// must know it: one that does not stops at the event. A level that is reached already is
// left as it is. It returns the level afterwards.
func RaiseLevel(ctx context.Context, w *Writer, level uint16) (uint16, error) {
	d := newDraft(events.Header{Type: events.TypeLevelRaised, Event: w.ids.New()})
	d.payload = events.EncodeLevel(level)
	if _, err := w.submit(ctx, d); err != nil {
		return 0, err
	}
	return Level(w), nil
}

// Level is the feature level that writers may use, as far as the state has come.
func Level(w *Writer) uint16 {
	at := w.opt.State.Cursor()
	return at.FeatureLevel()
}

// Allows returns why what needs a level may not be written yet; nil if it may.
func Allows(w *Writer, level uint16) error {
	if at := Level(w); at < level {
		return needsLevel(level, at)
	}
	return nil
}

// decideLevel answers a level.raised that raises nothing.
func decideLevel(v *projections.View, d *draft) (projections.EventResult, bool, error) {
	level, err := events.DecodeLevel(d.payload)
	if err == nil && level > events.FeatureLevel {
		err = memory.Errorf(memory.CodeInvalid, "this program knows feature levels up to %d, not %d", events.FeatureLevel, level)
	}
	at := v.Cursor()
	return projections.EventResult{Outcome: projections.OutcomeRejected}, err == nil && level <= at.FeatureLevel(), err
}

// above returns why a frame may not be written: one of its events is of a level that no
// level.raised has let writers use.
func above(f *frame, allowed uint16) error {
	if events.FeatureOf(f.encoded) <= allowed {
		return nil
	}
	for i, d := range f.drafts {
		if level := events.FeatureOf(f.encoded[i : i+1]); level > allowed && d.header.Type != events.TypeLevelRaised {
			return needsLevel(level, allowed)
		}
	}
	return nil
}

// below returns why an event may not be written that needs a level. It is asked for each by
// itself: a frame that is refused takes others with it.
func below(v *projections.View, level uint16) error {
	if at := v.Cursor(); at.FeatureLevel() < level {
		return needsLevel(level, at.FeatureLevel())
	}
	return nil
}

// needsLevel is the refusal of what is of a higher level than writers may use.
func needsLevel(level, allowed uint16) error {
	return memory.Errorf(memory.CodeUnavailable, "that needs the log's feature level %d, and it is at %d until all nodes of the cluster run a program that knows it", level, allowed).
		WithHint("nothing was written; memctl upgrade check names the nodes that are behind, and where none is, memctl upgrade finish allows it at once")
}

// BeganLog reports whether the log was begun in this writer's term, so that no program has
// written to it but the one that runs here.
func BeganLog(w *Writer) (bool, error) {
	v := w.opt.State.View()
	first, err := v.Frame(1)
	if err = errors.Join(err, v.Close()); err != nil || first == nil {
		return false, err
	}
	f, err := events.DecodeFrame(first)
	return err == nil && f.Term == w.Term(), err
}
