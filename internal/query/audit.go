package query

import (
	"cmp"
	"context"
	"slices"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// Audit pages through what happened, oldest first: events in scopes that the
// reader may see, events of the namespace itself, and the system's rows that
// tell nothing of anybody. Errors: invalid, lost_position, stale_position.
func (r *Reader) Audit(ctx context.Context, req memory.AuditRequest) (memory.AuditPage, error) {
	out := memory.AuditPage{Rows: []memory.AuditRow{}, Position: r.view.Position()}
	if err := req.Validate(); err != nil {
		return out, err
	}
	wanted, err := wantedBy(&req)
	if err != nil {
		return out, err
	}
	limit := cmp.Or(req.Limit, memory.DefaultPage)
	from, err := r.s.opt.Views.ParsePosition(req.After())
	if err == nil {
		err = r.view.Positions.Check(from)
	}
	if err != nil {
		return out, err
	}
	after := projections.Ref{Seq: from.Seq, Index: from.Index}
	var rows []namedRow
	for _, ns := range []events.ID{r.view.Capability.NamespaceID(), zeroID} {
		n := 0
		err := r.view.State.Audit(ns, after, func(row projections.AuditRow) (bool, error) {
			if mayAudit(r.view.Capability, ns, &row) && wanted(&row) {
				rows = append(rows, namedRow{row, ns == zeroID})
				n++
			}
			return n <= limit, ctx.Err()
		})
		if err != nil {
			return out, views.Failed("audit", err)
		}
	}
	slices.SortStableFunc(rows, func(a, b namedRow) int { return compareRef(a.At, b.At) })
	for i := range rows {
		if len(out.Rows) == limit {
			out.Cursor = out.Rows[limit-1].Position
			break
		}
		row, err := r.auditRow(&rows[i])
		if err != nil {
			return out, views.Failed("audit", err)
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

type namedRow struct {
	projections.AuditRow
	system bool
}

// wantedBy reports of a row whether a request asks for it.
func wantedBy(q *memory.AuditRequest) (func(row *projections.AuditRow) bool, error) {
	of, known := events.TypeOf(q.Type)
	if q.Type != "" && !known {
		return nil, memory.Errorf(memory.CodeInvalid, "there is no type %q of events", views.Clip(q.Type)).WithHint("types are those of the rows, such as memory.captured and memory.forgotten")
	}
	return func(row *projections.AuditRow) bool {
		at := timeOf(row.SealedAt)
		switch {
		case q.Actor != "" && row.Agent != q.Actor, q.Type != "" && row.Type != of:
			return false
		case q.Since != nil && at.Before(*q.Since):
			return false
		}
		return q.Until == nil || at.Before(*q.Until)
	}, nil
}

// mayAudit reports whether a row says nothing but what the reader may know. A
// key's creation is not shown: it tells that somebody spoke of somebody new.
func mayAudit(c views.Capability, ns events.ID, row *projections.AuditRow) bool {
	if ns == zeroID {
		return c.NamespaceID() != zeroID && (row.Type.Control() || row.Outcome == projections.OutcomeVoid)
	}
	switch row.Type {
	case events.TypeNamespacePlaced, events.TypeNamespaceCreated, events.TypeNamespaceChanged, events.TypeNamespaceDeleted, events.TypeKeyDestroyed,
		events.TypeSpaceBuilding, events.TypeSpaceSwitched, events.TypeSpaceDropped:
		return ns == c.NamespaceID()
	}
	return ns == c.NamespaceID() && c.Sees(row.Scope, row.Agent)
}

func (r *Reader) auditRow(row *namedRow) (memory.AuditRow, error) {
	out := memory.AuditRow{Position: r.view.Positions.Of(row.At), At: timeOf(row.SealedAt), Type: row.Type.String(), Agent: row.Agent,
		Scope: row.Scope.Public(), Outcome: row.Outcome.String(), Hash: row.Hash.String(), System: row.system}
	if row.Outcome == projections.OutcomeVoid {
		out.Type = "frame.void"
	}
	if row.Event != zeroID {
		out.EventID = row.Event.String()
	}
	if !row.system {
		out.Namespace = r.view.Capability.Namespace()
	}
	if row.Record == zeroID {
		return out, nil
	}
	// A refused event may point to a record of somebody else.
	_, partition, err := r.view.Head(row.Record)
	if partition != nil {
		out.RecordID = row.Record.String()
	}
	return out, err
}
