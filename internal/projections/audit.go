package projections

import (
	"mneme/internal/events"
	"mneme/internal/storage"
)

// audit is the projection that says what each event did. Its rows outlive the
// namespaces that they speak of.
type audit struct {
	defaults
	t *tx
}

var auditRows = declaration{
	name: "audit",
	rows: []rows{{prefix: prefixAudit, fact: true, key: "namespace16 seq8 index4",
		holds: "type2 scope1 outcome1 sealed8 event16 record16 hash32 agent; rows of control events and void messages are no facts"}},
}

func (a *audit) declared() *declaration { return &auditRows }

// void notes a message that is no frame of this log.
func (a *audit) void(seq uint64, message []byte) error {
	row := AuditRow{At: Ref{seq, 0}, Outcome: OutcomeVoid, SealedAt: a.t.cursor.SealedAt, Hash: events.HashEnvelope(message)}
	return a.t.b.Set(auditKey(events.ID{}, row.At), row.encode(), nil)
}

func (a *audit) fold(ev *event) error {
	res := &ev.result
	row := AuditRow{At: ev.at, Type: ev.Type, Scope: ev.Scope, Outcome: res.Outcome, SealedAt: ev.SealedAt,
		Event: ev.Event, Record: res.Record, Hash: events.HashEnvelope(ev.raw), Agent: ev.Agent}
	if row.Record == (events.ID{}) {
		row.Record = ev.Target
	}
	a.t.out.Events = append(a.t.out.Events, AppliedEvent{Row: row, Namespace: ev.Namespace, Version: res.Version})
	key, value := auditKey(ev.Namespace, ev.at), row.encode()
	if ev.Type.Control() || ev.Namespace == (events.ID{}) {
		return a.t.b.Set(key, value, nil)
	}
	return a.t.addFact(ev.Namespace, key, value)
}

// erased says of an event whose key is gone that there was something, and no
// more: what it did could depend on its payload.
func (a *audit) erased(ns events.ID, at Ref) error {
	key := auditKey(ns, at)
	raw, err := a.t.get(key)
	if err != nil {
		return err
	}
	row, err := decodeAuditRow(at, raw)
	if err != nil {
		return err
	}
	row.Outcome = OutcomeErased
	return a.t.replaceFact(ns, key, raw, row.encode())
}

// auditReads are the reads of the audit log.
type auditReads struct{ p *published }

// Audit visits a namespace's audit rows after a reference, oldest first. The
// zero namespace holds the system's rows.
func (v auditReads) Audit(ns events.ID, after Ref, visit func(AuditRow) (bool, error)) error {
	return v.p.walk(append(auditKey(ns, after), 0), storage.PrefixEnd(auditPrefix(ns)), false, func(key, value []byte) (bool, error) {
		row, err := decodeAuditRow(decodeRef(key[17:]), value)
		if err != nil {
			return false, err
		}
		return visit(row)
	})
}
