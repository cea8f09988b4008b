package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// readLog is the projection that finds the audited reads of a namespace among its other
// events, newest first. What a read gave is in its event, which is opened when somebody asks;
// a row follows from the header alone, so it does not depend on any key.
type readLog struct {
	defaults
	t *tx
}

var readLogRows = declaration{
	name: "read log",
	rows: []rows{{prefix: prefixRead, scope: ofNamespace, key: "namespace16 seq8 index4", holds: "scope1 sealed8 agent"}},
}

func (r *readLog) declared() *declaration { return &readLogRows }

// read decides that a read is noted, where its namespace is.
func (t *tx) read(ev *event) error {
	if t.home.of(ev.Namespace) == nil {
		return ev.is(OutcomeRejected)
	}
	return ev.is(OutcomeApplied)
}

func (r *readLog) fold(ev *event) error {
	if !ev.took(events.TypeRead) {
		return nil
	}
	row := LoggedRead{At: ev.at, Scope: ev.Scope, SealedAt: ev.SealedAt, Agent: ev.Agent}
	return r.t.b.Set(readKey(ev.Namespace, ev.at), row.encode(), nil)
}

// LoggedRead is what a header tells of an audited read.
type LoggedRead struct {
	At       Ref
	Scope    events.Scope // of what was given
	SealedAt int64
	Agent    string // that was reading; "" = it was not said
}

func (l *LoggedRead) encode() []byte {
	return append(be64([]byte{byte(l.Scope)}, uint64(l.SealedAt)), l.Agent...)
}

func decodeLoggedRead(at Ref, b []byte) (LoggedRead, error) {
	if len(b) < 9 {
		return LoggedRead{}, fmt.Errorf("row of a read: %w", events.ErrMalformed)
	}
	return LoggedRead{At: at, Scope: events.Scope(b[0]), SealedAt: int64(binary.BigEndian.Uint64(b[1:])), Agent: string(b[9:])}, nil
}

// readLogReads are the reads of audited reads.
type readLogReads struct{ p *published }

// ReadsBefore visits a namespace's audited reads before a reference, newest first, until visit
// returns false; the zero reference is the end.
func (v readLogReads) ReadsBefore(ns events.ID, before Ref, visit func(LoggedRead) (bool, error)) error {
	lower := readPrefix(ns)
	upper := storage.PrefixEnd(lower)
	if before != (Ref{}) {
		upper = readKey(ns, before)
	}
	return v.p.walk(lower, upper, true, func(key, value []byte) (bool, error) {
		row, err := decodeLoggedRead(decodeRef(key[17:]), value)
		if err != nil {
			return false, err
		}
		return visit(row)
	})
}
