package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// eventBatch is how many events are opened before they are given, so that a
// slow reader holds no view of the state.
const eventBatch = 256

// Events gives the events of a namespace that the reader may see, after a
// position, in order, each once: captured, revised and forgotten memories, changes
// of the graph, and what happened to the namespace itself. With follow it goes on as more is
// applied, until ctx ends or the namespace is deleted. from "" means the
// beginning, or with follow what happens from now on. An error of yield ends
// it. Errors: invalid, not_found, lost_position, stale_position, timeout.
func (s *Service) Events(ctx context.Context, namespace, as, from string, follow bool, yield func(memory.Event) error) error {
	start, err := s.opt.Views.ParsePosition(from)
	if err != nil {
		return err
	}
	r, err := s.Open(ctx, namespace, as, views.Freshness{})
	if err != nil {
		return views.Failed("events", err)
	}
	err = r.view.Positions.Check(start)
	if follow && from == "" {
		start = r.view.State.Position()
	}
	f := follower{s: s, capability: r.view.Capability, after: projections.Ref{Seq: start.Seq, Index: start.Index}}
	if err = errors.Join(err, r.Close()); err != nil {
		return views.Failed("events", err)
	}
	for {
		at, moved, closed := s.opt.Views.Moved()
		batch, more, err := f.next(ctx)
		if err != nil {
			return views.Failed("events", err)
		}
		for _, e := range batch {
			if err := yield(e); err != nil {
				return err
			}
		}
		switch {
		case more:
			continue
		case f.deleted:
			return memory.NoNamespace(namespace)
		case !follow:
			return nil
		case closed:
			return views.Stopping()
		case f.seen.Seq < at.Seq:
			continue
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return views.Failed("events", ctx.Err())
		}
	}
}

// follower reads a namespace's events piece by piece.
type follower struct {
	s          *Service
	capability views.Capability
	after      projections.Ref
	seen       events.Position // of the last view
	deleted    bool            // the namespace is gone there
}

// next opens the next events. more says that there are others already.
func (f *follower) next(ctx context.Context) (batch []memory.Event, more bool, err error) {
	v, err := f.s.opt.Views.State()
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	f.seen = v.Position()
	info, ok := v.NamespaceByID(f.capability.NamespaceID())
	if !ok {
		return nil, false, memory.NoNamespace(f.capability.Namespace())
	}
	f.deleted = info.Deleted
	positions := f.s.opt.Views.Positions(v)
	scanned, size := 0, 0
	err = v.Audit(f.capability.NamespaceID(), f.after, func(row projections.AuditRow) (bool, error) {
		if len(batch) == eventBatch || size >= maxBatch || scanned == 16*eventBatch {
			more = true
			return false, nil
		}
		scanned++
		f.after = row.At
		if !announced(&row) || !mayAudit(f.capability, f.capability.NamespaceID(), &row) {
			return true, ctx.Err()
		}
		e, err := f.s.openEvent(v, f.capability.Namespace(), &row)
		if err != nil {
			return false, err
		}
		e.Position = positions.Of(row.At)
		batch = append(batch, e)
		size += recordFrame + len(e.Data)
		return true, ctx.Err()
	})
	return batch, more, err
}

// announced reports whether an event is for feeds.
func announced(row *projections.AuditRow) bool {
	switch row.Outcome {
	case projections.OutcomeCreated, projections.OutcomeRevised, projections.OutcomeForgotten:
		return true
	case projections.OutcomeApplied:
		switch row.Type {
		case events.TypeNamespaceCreated, events.TypeNamespaceChanged, events.TypeNamespaceDeleted, events.TypeGraphChanged:
			return true
		}
	}
	return false
}

// eventData is the data of events that carry no capture.
type eventData struct {
	RecordID  string `json:"record_id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// openEvent gives the event of an audit row its public form, without its
// position. The caller has made sure that its reader may see it. The data of
// a captured or revised memory is its capture; of one that was erased, only
// the record's id. That of a change of the graph is a memory.GraphEvent.
func (s *Service) openEvent(v *projections.View, namespace string, row *projections.AuditRow) (memory.Event, error) {
	env, _, err := v.Envelope(row.At)
	if err != nil {
		return memory.Event{}, err
	}
	when := timeOf(env.OccurredAt)
	if env.OccurredAt == 0 {
		when = timeOf(env.SealedAt)
	}
	e := memory.Event{SpecVersion: "1.0", ID: env.Event.String(), Source: events.CloudEventSource(namespace, env.Agent), Type: env.Type.CloudEventType(),
		Time: &when, DataContentType: "application/json"}
	var data any
	switch env.Type {
	case events.TypeCaptured, events.TypeRevised, events.TypeForgotten:
		e.Subject = row.Record.String()
		data = eventData{RecordID: e.Subject}
	default:
		data = eventData{Namespace: namespace}
	}
	if env.Type == events.TypeGraphChanged {
		if data, err = tellGraph(s.opt.Keys, v, namespace, row.At, &env); err != nil {
			return e, err
		}
	}
	if env.Type == events.TypeCaptured || env.Type == events.TypeRevised {
		c, err := views.OpenContent(s.opt.Keys, &env)
		switch {
		case err == nil:
			data = captureOf(&env, c)
		case !errors.Is(err, views.ErrErased):
			return e, err
		}
	}
	if e.Data, err = json.Marshal(data); err != nil {
		return e, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return e, nil
}

// FeedEvents gives the events of an applied batch with the bus subject on
// which each is announced, in order. Who may subscribe to a subject is the
// bus's to enforce. Events on subjects that nobody wants (nil: all are wanted)
// are not opened. It reads the state, so it is not called from OnApply. An error
// of yield ends it.
func (s *Service) FeedEvents(a *projections.Applied, wanted func(subject string) bool, yield func(subject string, e memory.Event) error) error {
	v, err := s.opt.Views.State()
	if err != nil {
		return err
	}
	err = s.feed(v, a, wanted, yield)
	return errors.Join(err, v.Close())
}

func (s *Service) feed(v *projections.View, a *projections.Applied, wanted func(string) bool, yield func(string, memory.Event) error) error {
	positions := s.opt.Views.Positions(v)
	var info projections.NamespaceInfo
	ok := false
	for i := range a.Events {
		row := &a.Events[i].Row
		if !announced(row) {
			continue
		}
		if id := a.Events[i].Namespace; id != info.ID || !ok {
			info, ok = v.NamespaceByID(id)
		}
		if !ok || !info.Here(v) { // it is announced where it lives
			continue
		}
		subject := events.FeedSubject(info.Name, row.Scope, row.Agent, row.Type)
		if wanted != nil && !wanted(subject) {
			continue
		}
		e, err := s.openEvent(v, info.Name, row)
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
		e.Position = positions.Of(row.At)
		if err := yield(subject, e); err != nil {
			return err
		}
	}
	return nil
}
