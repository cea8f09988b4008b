package projections

import (
	"encoding/binary"
	"fmt"

	"mneme/internal/events"
)

// Partition is one (namespace, scope, agent): the unit of index and statistics.
type Partition struct {
	ID        uint32
	Namespace events.ID
	Scope     events.Scope
	Agent     string // only for ScopeAgent
	NextDoc   uint32
}

func (p *Partition) encode() []byte {
	b := append([]byte(nil), p.Namespace[:]...)
	b = append(b, byte(p.Scope))
	b = be32(b, p.NextDoc)
	return append(b, p.Agent...)
}

func decodePartition(id uint32, b []byte) (Partition, error) {
	if len(b) < 21 {
		return Partition{}, fmt.Errorf("partition row: %w", events.ErrMalformed)
	}
	return Partition{ID: id, Namespace: events.ID(b[:16]), Scope: events.Scope(b[16]),
		NextDoc: binary.BigEndian.Uint32(b[17:]), Agent: string(b[21:])}, nil
}

// Head is where a record stands now.
type Head struct {
	Partition uint32
	Doc       uint32 // DocID of the newest version
	Versions  uint32
	Living    bool
	Erased    bool   // the key of the newest version ended while it lived
	URI       string // path of the newest version; empty = none
}

func (h *Head) encode() []byte {
	b := be32(be32(be32(nil, h.Partition), h.Doc), h.Versions)
	switch {
	case h.Living:
		b = append(b, 1)
	case h.Erased:
		b = append(b, 2)
	default:
		b = append(b, 0)
	}
	return append(b, h.URI...)
}

func decodeHead(b []byte) (Head, error) {
	if len(b) < 13 {
		return Head{}, fmt.Errorf("head row: %w", events.ErrMalformed)
	}
	u := binary.BigEndian.Uint32
	return Head{u(b), u(b[4:]), u(b[8:]), b[12] == 1, b[12] == 2, string(b[13:])}, nil
}

// Doc is one record version.
type Doc struct {
	Record     events.ID
	Version    uint32
	Kind       events.Kind
	At         Ref // the event that made it
	SealedAt   int64
	OccurredAt int64
	Death      Ref // zero while it lives
	Agent      string
}

// Living reports whether the version is the record's present one.
func (d *Doc) Living() bool { return d.Death == Ref{} }

func (d *Doc) encode() []byte {
	b := append(make([]byte, 0, 64+len(d.Agent)), d.Record[:]...)
	b = be32(b, d.Version)
	b = append(b, byte(d.Kind))
	b = d.At.append(b)
	b = be64(b, uint64(d.SealedAt))
	b = be64(b, uint64(d.OccurredAt))
	b = d.Death.append(b)
	return append(b, d.Agent...)
}

func decodeDoc(b []byte) (Doc, error) {
	if len(b) < 61 {
		return Doc{}, fmt.Errorf("doc row: %w", events.ErrMalformed)
	}
	u64 := binary.BigEndian.Uint64
	return Doc{Record: events.ID(b[:16]), Version: binary.BigEndian.Uint32(b[16:]), Kind: events.Kind(b[20]),
		At: decodeRef(b[21:]), SealedAt: int64(u64(b[33:])), OccurredAt: int64(u64(b[41:])),
		Death: decodeRef(b[49:]), Agent: string(b[61:])}, nil
}

// UsedKey is an idempotency key, a client id, that was used: for which record,
// where, with which body.
type UsedKey struct {
	Record events.ID
	At     Ref
	Body   events.MAC
}

func (u *UsedKey) encode() []byte {
	b := append([]byte(nil), u.Record[:]...)
	return append(u.At.append(b), u.Body[:]...)
}

func decodeUsedKey(b []byte) (UsedKey, error) {
	if len(b) != 44 {
		return UsedKey{}, fmt.Errorf("idempotency row: %w", events.ErrMalformed)
	}
	return UsedKey{events.ID(b[:16]), decodeRef(b[16:]), events.MAC(b[28:])}, nil
}

// Outcome says what an event did. Numbers are append-only.
type Outcome uint8

// The outcomes.
const (
	OutcomeNone        Outcome = iota
	OutcomeCreated             // a record came to be
	OutcomeRevised             // a new version
	OutcomeForgotten           // gone from present answers
	OutcomeApplied             // any other effect
	OutcomeDuplicate           // the same request was already there
	OutcomeConflict            // it contradicts what is there
	OutcomeRejected            // its namespace or record is not there
	OutcomeVoid                // the frame does not continue the log
	OutcomeQuarantined         // it could not be understood
	OutcomeErased              // the key of its payload ended, before it or since
)

var outcomeNames = [...]string{"none", "created", "revised", "forgotten", "applied", "duplicate", "conflict", "rejected", "void", "quarantined", "erased"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome-%d", uint8(o))
}

// AuditRow says what one event did. Row hash is SHA-256 of the sealed event.
type AuditRow struct {
	At       Ref
	Type     events.Type
	Scope    events.Scope
	Outcome  Outcome
	SealedAt int64
	Event    events.ID
	Record   events.ID
	Hash     events.Hash
	Agent    string
}

func (a *AuditRow) encode() []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 80+len(a.Agent)), uint16(a.Type))
	b = append(b, byte(a.Scope), byte(a.Outcome))
	b = be64(b, uint64(a.SealedAt))
	b = append(b, a.Event[:]...)
	b = append(b, a.Record[:]...)
	b = append(b, a.Hash[:]...)
	return append(b, a.Agent...)
}

func decodeAuditRow(at Ref, b []byte) (AuditRow, error) {
	if len(b) < 76 {
		return AuditRow{}, fmt.Errorf("audit row: %w", events.ErrMalformed)
	}
	return AuditRow{At: at, Type: events.Type(binary.BigEndian.Uint16(b)), Scope: events.Scope(b[2]), Outcome: Outcome(b[3]),
		SealedAt: int64(binary.BigEndian.Uint64(b[4:])), Event: events.ID(b[12:28]), Record: events.ID(b[28:44]),
		Hash: events.Hash(b[44:76]), Agent: string(b[76:])}, nil
}

func appendGraphStrings(b []byte, all ...string) []byte {
	for _, s := range all {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

func decodeGraphStrings(row []byte, into ...*string) error {
	d := &decoder{b: row}
	for _, s := range into {
		*s = string(d.bytes())
	}
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("graph row: %w", events.ErrMalformed)
	}
	return nil
}

func decodeGraphEntity(row []byte) (e events.GraphEntity, err error) {
	return e, decodeGraphStrings(row, &e.Name, &e.Type)
}

func decodeGraphRelation(row []byte) (r events.GraphRelation, err error) {
	return r, decodeGraphStrings(row, &r.From, &r.To, &r.Type)
}

// GraphTotals is how much a partition's graph has.
type GraphTotals struct {
	Entities, Observations, Relations uint64
	Bytes                             uint64 // of all strings
	Changed                           Ref    // the last event that could change it; zero = none
}

func (t *GraphTotals) encode() []byte {
	b := be64(be64(be64(be64(nil, t.Entities), t.Observations), t.Relations), t.Bytes)
	return t.Changed.append(b)
}

func decodeGraphTotals(raw []byte) (t GraphTotals, err error) {
	if len(raw) != 44 {
		return t, fmt.Errorf("totals of a graph: %w", events.ErrMalformed)
	}
	for i, n := range []*uint64{&t.Entities, &t.Observations, &t.Relations, &t.Bytes} {
		*n = binary.BigEndian.Uint64(raw[8*i:])
	}
	t.Changed = decodeRef(raw[32:])
	return t, nil
}
