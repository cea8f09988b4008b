package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/projections"
	"mneme/internal/query/views"
	"mneme/memory"
)

// Namespace is the namespace that is read.
func (r *Reader) Namespace() string { return r.view.Capability.Namespace() }

// Note says what the audit log has to tell of an answer to a search or a list, which has no
// query, and false where the namespace has reads of its purpose not audited. hits are the whole answer, also where
// several namespaces were searched. There is always a note of the team's memories, so that a
// read that found nothing is told of, too.
func (r *Reader) Note(p memory.Purpose, q string, c memory.Consistency, hits []memory.Hit) (events.ReadNote, bool, error) {
	var none events.ReadNote
	if !r.view.Settings.Audits(p) {
		return none, false, nil
	}
	at := r.view.State.Position()
	query, err := r.queryMAC(q)
	if err != nil {
		return none, false, views.Failed("audit", err)
	}
	read := func() *events.Read {
		return &events.Read{Purpose: events.ReadInject, Linear: c == memory.ConsistencyLinearizable, Seq: at.Seq, Index: at.Index, Query: query}
	}
	n := events.ReadNote{Namespace: r.view.Capability.NamespaceID(), Agent: r.view.Capability.Agent(), Team: read()}
	for i := range hits {
		h := &hits[i]
		if h.Namespace != "" && h.Namespace != r.Namespace() {
			continue
		}
		id, err := events.ParseID(h.ID)
		if err != nil {
			return none, false, views.Failed("audit", err)
		}
		of := n.Team
		if h.Scope == memory.ScopeAgent {
			if n.Own == nil {
				n.Own = read()
			}
			of = n.Own
		}
		of.Given = append(of.Given, events.Given{Record: id, Version: uint32(h.Version)})
	}
	return n, true, nil
}

// queryMAC is the keyed hash that stands for a query; zero for none.
func (r *Reader) queryMAC(query string) (events.MAC, error) {
	if query == "" {
		return events.MAC{}, nil
	}
	names, err := r.s.opt.Keys.Namespace(r.view.Capability.NamespaceID())
	if err != nil {
		return events.MAC{}, fmt.Errorf("keys of namespace %s: %w", r.Namespace(), err)
	}
	return events.TruncateMAC(names.MAC(events.LabelQuery, []byte(query))), nil
}

// A page ends where it has looked at so much, and has a cursor to go on from: rows that are
// passed over count one, events that are opened readOpening.
const (
	maxPageWork = 200_000
	readOpening = 40
)

// AuditedReads pages through the audited reads whose scope the reader may see, newest first.
// Errors: invalid, lost_position, stale_position.
func (r *Reader) AuditedReads(ctx context.Context, req memory.AuditedReadsRequest) (memory.AuditedReadPage, error) {
	out := memory.AuditedReadPage{Reads: []memory.AuditedRead{}, Position: r.view.Position()}
	if err := req.Validate(); err != nil {
		return out, err
	}
	limit := cmp.Or(req.Limit, memory.DefaultPage)
	from, err := r.s.opt.Views.ParsePosition(req.Cursor)
	if err == nil {
		err = r.view.Positions.Check(from)
	}
	if err != nil {
		return out, err
	}
	work, last := 0, projections.Ref{}
	before := projections.Ref{Seq: from.Seq, Index: from.Index}
	err = r.view.State.ReadsBefore(r.view.Capability.NamespaceID(), before, func(row projections.LoggedRead) (bool, error) {
		at := timeOf(row.SealedAt)
		switch {
		case req.Since != nil && at.Before(*req.Since):
			return false, nil
		case len(out.Reads) == limit || work >= maxPageWork:
			out.Cursor = r.view.Positions.Of(last)
			return false, nil
		}
		last = row.At
		work++
		switch {
		case !r.view.Capability.Sees(row.Scope, row.Agent), req.Agent != "" && row.Agent != req.Agent, req.Until != nil && !at.Before(*req.Until):
			return true, ctx.Err()
		}
		work += readOpening
		read, err := r.auditedRead(&row)
		if err == nil && (req.Record == "" || gave(&read, req.Record)) {
			out.Reads = append(out.Reads, read)
		}
		return true, errors.Join(err, ctx.Err())
	})
	return out, views.Failed("audit", err)
}

func gave(read *memory.AuditedRead, record string) bool {
	for _, g := range read.Given {
		if g.RecordID == record {
			return true
		}
	}
	return false
}

// auditedRead opens what an audited read says.
func (r *Reader) auditedRead(row *projections.LoggedRead) (memory.AuditedRead, error) {
	env, _, err := r.view.State.Envelope(row.At)
	if err != nil {
		return memory.AuditedRead{}, err
	}
	read, err := views.OpenRead(r.s.opt.Keys, &env)
	if err != nil {
		return memory.AuditedRead{}, err
	}
	out := memory.AuditedRead{Position: r.view.Positions.Of(row.At), EventID: env.Event.String(), At: timeOf(row.SealedAt), Namespace: r.Namespace(), Agent: row.Agent,
		Scope: row.Scope.Public(), Purpose: read.Purpose.Public(), Consistency: memory.ConsistencyLocal,
		ReadAt: r.view.Positions.Of(projections.Ref{Seq: read.Seq, Index: read.Index}), Given: make([]memory.Given, len(read.Given))}
	if read.Linear {
		out.Consistency = memory.ConsistencyLinearizable
	}
	if !read.Query.IsZero() {
		out.QueryHash = read.Query.String()
	}
	for i, g := range read.Given {
		out.Given[i] = memory.Given{RecordID: g.Record.String(), Version: int(g.Version)}
	}
	return out, nil
}
