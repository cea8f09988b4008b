package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mneme/internal/derive"
	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/settings"
	"mneme/memory"
)

// graphDraft is what a draft of a graph.changed has besides: what is asked for, and, once it is
// decided, what that comes to.
type graphDraft struct {
	change  *memory.GraphChange
	results []memory.GraphResult
}

// ChangeGraph carries out a change of a namespace's knowledge graph as one event, and returns
// once that is applied. A change that finds nothing to do is not written. Errors: not_found for
// a namespace, and for an entity that observations are added to; conflict, where the id was
// used for something else.
func ChangeGraph(ctx context.Context, w *Writer, namespace string, change memory.GraphChange) (memory.GraphChanged, error) {
	var none memory.GraphChanged
	if err := change.Validate(); err != nil {
		return none, err
	}
	d, err := Confirmed(ctx, w, func(bool) (*draft, error) { return queueGraph(ctx, w, namespace, &change) })
	if err != nil {
		return none, err
	}
	a := answers(ctx, w, memory.WaitApplied, d)[0]
	if a.err != nil {
		return none, a.err
	}
	out := memory.GraphChanged{Position: a.result.Position.String(), Status: memory.GraphApplied, Results: d.graph.results}
	switch a.result.Outcome {
	case projections.OutcomeApplied:
		if a.result.Position.IsZero() {
			out.Position, out.Status = w.position().String(), memory.GraphUnchanged
		}
		return out, nil
	case projections.OutcomeDuplicate:
		out.Status = memory.GraphDuplicate
		out.Results, err = graphBefore(w, a.result.Position, &change)
		return out, err
	case projections.OutcomeConflict:
		return none, memory.Errorf(memory.CodeConflict, "id %q was used for something else", change.ID).WithHint("use a new id")
	case projections.OutcomeErased:
		return none, memory.Errorf(memory.CodeGone, "whom the change is about was erased meanwhile")
	case projections.OutcomeQuarantined:
		return none, memory.Errorf(memory.CodeInvalid, "the change is kept in the log, but cannot be carried out").
			WithHint("report it as a bug; audit shows the event as quarantined")
	}
	return none, memory.NoNamespace(namespace)
}

// queueGraph makes the draft of a change and queues it. What it does to the graph is decided in
// its turn.
func queueGraph(ctx context.Context, w *Writer, namespace string, change *memory.GraphChange) (*draft, error) {
	w.erasing.RLock()
	defer w.erasing.RUnlock()
	a, err := admitMemories(w, namespace)
	if err != nil {
		return nil, err
	}
	d, err := a.graph(change)
	if err = errors.Join(err, a.view.Close()); err != nil {
		return nil, err
	}
	return d, w.queue.pushFor(ctx, []*draft{d})
}

func (a *admission) graph(change *memory.GraphChange) (*draft, error) {
	if err := a.takes(change.ID, change.Agent); err != nil {
		return nil, err
	}
	if change.Subject != "" {
		if err := a.ensureSubjects([]string{change.Subject}); err != nil {
			return nil, err
		}
	}
	d := newDraft(events.Header{Type: events.TypeGraphChanged, Scope: events.ScopeTeam, Event: a.writer.ids.New(), Namespace: a.ns.ID, Agent: change.Agent})
	d.graph = &graphDraft{change: change}
	key, err := a.writer.opt.Keys.DataKey(a.ns.ID, change.Subject)
	if err != nil {
		return nil, fmt.Errorf("key of namespace %s: %w", a.ns.Name, err)
	}
	d.key, d.header.Key = key, key.ID()
	said, err := json.Marshal(memory.GraphChange{Subject: change.Subject, Operations: change.Operations})
	if err != nil {
		return nil, err
	}
	d.size = 400 + len(said)
	if change.ID != "" {
		d.header.ClientID = a.clientMAC(change.ID)
		d.header.Body = events.TruncateMAC(key.MAC(events.LabelBody, append([]byte("graph\x00"), said...)))
	}
	return d, nil
}

// decideGraph works out what a change does. One that does nothing is decided: it is not written.
func decideGraph(v *projections.View, d *draft) (projections.EventResult, bool, error) {
	if err := below(v, events.GraphLevel); err != nil {
		return projections.EventResult{}, false, err
	}
	plan, err := planGraph(v, d.header.Namespace, d.graph.change)
	if err != nil {
		return projections.EventResult{}, false, err
	}
	d.graph.results, d.payload = plan.results, events.EncodeGraph(plan.steps)
	return projections.EventResult{Outcome: projections.OutcomeApplied}, !plan.changes(), nil
}

// graphBefore gives the results of a change that was carried out at a position: the same was
// asked for then as now.
func graphBefore(w *Writer, at events.Position, change *memory.GraphChange) (results []memory.GraphResult, err error) {
	v := w.opt.State.View()
	defer func() { err = errors.Join(err, v.Close()) }()
	env, _, err := v.Envelope(projections.Ref{Seq: at.Seq, Index: at.Index})
	if err != nil {
		return nil, err
	}
	key, err := w.opt.Keys.KeyByID(env.Key)
	if settings.IsErased(err) {
		return nil, usedForErased(change.ID, env.Record)
	}
	if err != nil {
		return nil, err
	}
	steps, err := derive.OpenGraph(key, &env)
	if err != nil || len(steps) != len(change.Operations) {
		return nil, errors.Join(err, fmt.Errorf("the event at %s has %d steps", at, len(steps)))
	}
	for i := range steps {
		results = append(results, graphResult(&steps[i], &change.Operations[i]))
	}
	return results, nil
}

// graphResult is what a step did for the operation that it was made from.
func graphResult(s *events.GraphStep, op *memory.GraphOperation) (r memory.GraphResult) {
	switch s.Kind {
	case events.GraphEntitiesCreated:
		r.Entities = []memory.GraphEntity{}
		for _, e := range s.Entities {
			r.Entities = append(r.Entities, memory.GraphEntity{Name: e.Name, Type: e.Type, Observations: append([]string{}, e.Observations...)})
		}
	case events.GraphRelationsCreated:
		r.Relations = []memory.GraphRelation{}
		for _, e := range s.Relations {
			r.Relations = append(r.Relations, memory.GraphRelation(e))
		}
	case events.GraphObservationsAdded:
		r.Added = []memory.GraphAdded{}
		for i, a := range s.Added {
			if i < len(op.AddObservations) { // one for each
				r.Added = append(r.Added, memory.GraphAdded{Entity: op.AddObservations[i].Entity, Added: append([]string{}, a.Contents...)})
			}
		}
	case events.GraphEntitiesDeleted:
		r.Deleted = &memory.GraphDeleted{Entities: len(s.Ended), Relations: len(s.Severed)}
	case events.GraphObservationsDeleted:
		r.Deleted = &memory.GraphDeleted{Observations: len(s.Ended)}
	default:
		r.Deleted = &memory.GraphDeleted{Relations: len(s.Ended)}
	}
	return r
}
