package ingest

import (
	"context"
	"errors"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/memory"
)

// NoteRead writes that memories of a namespace are about to be given to a reader, as one
// event for each scope that some come from, and returns once they are applied, with the
// position of the last. A note that had to be made twice is there twice: the audit log may
// tell of a read that was not answered, and never lacks one that was. Errors: not_found for a
// namespace, also for another one that has the name by now; unavailable below the level.
func NoteRead(ctx context.Context, w *Writer, namespace string, note events.ReadNote) (string, error) {
	drafts, err := Confirmed(ctx, w, func(bool) ([]*draft, error) { return queueRead(ctx, w, namespace, &note) })
	if err != nil {
		return "", err
	}
	var at events.Position
	for _, a := range answers(ctx, w, memory.WaitApplied, drafts...) {
		switch {
		case a.err != nil:
			return "", a.err
		case a.result.Outcome == projections.OutcomeQuarantined:
			return "", memory.Errorf(memory.CodeUnavailable, "the note of the read was put in quarantine").WithHint("memctl quarantine says why")
		case a.result.Outcome != projections.OutcomeApplied:
			return "", memory.NoNamespace(namespace)
		}
		at = a.result.Position
	}
	return at.String(), nil
}

// queueRead makes the drafts of a note and queues them together.
func queueRead(ctx context.Context, w *Writer, namespace string, note *events.ReadNote) ([]*draft, error) {
	w.erasing.RLock()
	defer w.erasing.RUnlock()
	a, err := w.admit(namespace)
	if err != nil {
		return nil, err
	}
	drafts, err := a.reads(note)
	if err = errors.Join(err, a.view.Close()); err != nil {
		return nil, err
	}
	return drafts, w.queue.pushFor(ctx, drafts)
}

func (a *admission) reads(note *events.ReadNote) ([]*draft, error) {
	if a.ns.ID != note.Namespace { // it was deleted, and made again
		return nil, memory.NoNamespace(a.ns.Name)
	}
	key, err := a.writer.opt.Keys.DataKey(a.ns.ID, "")
	if err != nil {
		return nil, fmt.Errorf("key of namespace %s: %w", a.ns.Name, err)
	}
	var out []*draft
	add := func(scope events.Scope, r *events.Read) {
		if r == nil {
			return
		}
		d := newDraft(events.Header{Type: events.TypeRead, Scope: scope, Event: a.writer.ids.New(), Namespace: a.ns.ID, Agent: note.Agent, Key: key.ID()})
		d.key, d.payload = key, r.Encode()
		d.size = 300 + len(d.payload)
		out = append(out, d)
	}
	add(events.ScopeTeam, note.Team)
	add(events.ScopeAgent, note.Own)
	return out, nil
}
