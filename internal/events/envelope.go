package events

import (
	"encoding/binary"
	"fmt"
)

// Header is the clear part of an event: what routing, ordering, audit and
// idempotency need and nothing else. Times are nanoseconds since 1970 UTC.
type Header struct {
	Type        Type
	Schema      uint8 // schema version of the payload
	Scope       Scope
	Kind        Kind
	Event       ID
	Namespace   ID // zero for control events
	SealedAt    int64
	OccurredAt  int64
	Agent       string // at most 63 bytes
	Name        string // namespace name, directory events only; at most 63 bytes
	Record      ID     // the record that a capture creates
	Target      ID     // the record that a revise, forget or attach is about
	BaseVersion uint32 // the version that a revise or attach builds on
	Key         [16]byte
	Subject     MAC
	ClientID    MAC
	Body        MAC
	URI         MAC
}

// Envelope is one event as the log keeps it.
type Envelope struct {
	Header
	Payload []byte // sealed; empty for control events
}

// Presence bits of the optional header fields.
const (
	hasNamespace = 1 << iota
	hasName
	hasRecord
	hasTarget
	hasBase
	hasKey
	hasSubject
	hasClientID
	hasBody
	hasURI
	hasAll = 1<<iota - 1
)

const envelopeVersion = 1

func (h *Header) presence() uint16 {
	var p uint16
	set := func(bit uint16, present bool) {
		if present {
			p |= bit
		}
	}
	set(hasNamespace, h.Namespace != ID{})
	set(hasName, h.Name != "")
	set(hasRecord, h.Record != ID{})
	set(hasTarget, h.Target != ID{})
	set(hasBase, h.BaseVersion != 0)
	set(hasKey, h.Key != [16]byte{})
	set(hasSubject, !h.Subject.IsZero())
	set(hasClientID, !h.ClientID.IsZero())
	set(hasBody, !h.Body.IsZero())
	set(hasURI, !h.URI.IsZero())
	return p
}

// AppendHeader appends the canonical encoding of the header. It is also the
// additional data under which the payload is sealed.
//
//	 0     1        3       4      5     6          8        24         32           40
//	+-----+--------+-------+------+-----+----------+--------+----------+------------+
//	| ver | type   | schema|scope | kind| presence | event  | sealed_at| occurred_at|
//	+-----+--------+-------+------+-----+----------+--------+----------+------------+
//	| agent: u8 length, bytes | then, each if its presence bit is set, in bit order: |
//	| namespace 16 | name u8+bytes | record 16 | target 16 | base u32 | key 16 |
//	| subject 16 | client id 16 | body 16 | uri 16 |
//
// All integers are big-endian.
func (h *Header) AppendHeader(b []byte) []byte {
	p := h.presence()
	b = append(b, envelopeVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(h.Type))
	b = append(b, h.Schema, byte(h.Scope), byte(h.Kind))
	b = binary.BigEndian.AppendUint16(b, p)
	b = append(b, h.Event[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.SealedAt))
	b = binary.BigEndian.AppendUint64(b, uint64(h.OccurredAt))
	b = append(b, byte(len(h.Agent)))
	b = append(b, h.Agent...)
	if p&hasNamespace != 0 {
		b = append(b, h.Namespace[:]...)
	}
	if p&hasName != 0 {
		b = append(b, byte(len(h.Name)))
		b = append(b, h.Name...)
	}
	if p&hasRecord != 0 {
		b = append(b, h.Record[:]...)
	}
	if p&hasTarget != 0 {
		b = append(b, h.Target[:]...)
	}
	if p&hasBase != 0 {
		b = binary.BigEndian.AppendUint32(b, h.BaseVersion)
	}
	if p&hasKey != 0 {
		b = append(b, h.Key[:]...)
	}
	for _, m := range [...]*MAC{&h.Subject, &h.ClientID, &h.Body, &h.URI} {
		if !m.IsZero() {
			b = append(b, m[:]...)
		}
	}
	return b
}

// Append appends the canonical encoding of the envelope: header, u32 payload
// length, payload.
func (e *Envelope) Append(b []byte) []byte {
	b = e.AppendHeader(b)
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Payload)))
	return append(b, e.Payload...)
}

// Encode returns the canonical encoding of the envelope.
func (e *Envelope) Encode() []byte { return e.Append(make([]byte, 0, 256+len(e.Payload))) }

// DecodeEnvelope parses one envelope. The payload aliases b.
func DecodeEnvelope(b []byte) (Envelope, error) {
	var e Envelope
	r := reader{b: b}
	if v := r.u8("envelope version"); r.err == nil && v != envelopeVersion {
		if v > envelopeVersion {
			return e, fmt.Errorf("envelope version %d: %w", v, ErrNewer)
		}
		return e, fmt.Errorf("envelope version %d: %w", v, ErrMalformed)
	}
	e.Type = Type(r.u16("type"))
	e.Schema = r.u8("schema")
	e.Scope = Scope(r.u8("scope"))
	e.Kind = Kind(r.u8("kind"))
	p := r.u16("presence")
	if p&^uint16(hasAll) != 0 { // before the rest, whose layout it changes
		return Envelope{}, fmt.Errorf("envelope presence %#x: %w", p, ErrNewer)
	}
	r.fixed(e.Event[:], "event id")
	e.SealedAt = int64(r.u64("sealed_at"))
	e.OccurredAt = int64(r.u64("occurred_at"))
	e.Agent = string(r.short("agent"))
	e.decodeOptional(&r, p)
	e.Payload = r.long("payload")
	if err := r.end("envelope"); err != nil {
		return Envelope{}, err
	}
	if e.presence() != p || len(e.Agent) > 63 || len(e.Name) > 63 {
		return Envelope{}, fmt.Errorf("envelope is not canonical: %w", ErrMalformed)
	}
	if len(e.Payload) == 0 {
		e.Payload = nil
	}
	return e, nil
}

func (e *Envelope) decodeOptional(r *reader, p uint16) {
	if p&hasNamespace != 0 {
		r.fixed(e.Namespace[:], "namespace")
	}
	if p&hasName != 0 {
		e.Name = string(r.short("name"))
	}
	if p&hasRecord != 0 {
		r.fixed(e.Record[:], "record")
	}
	if p&hasTarget != 0 {
		r.fixed(e.Target[:], "target")
	}
	if p&hasBase != 0 {
		e.BaseVersion = r.u32("base version")
	}
	if p&hasKey != 0 {
		r.fixed(e.Key[:], "key")
	}
	if p&hasSubject != 0 {
		r.fixed(e.Subject[:], "subject")
	}
	if p&hasClientID != 0 {
		r.fixed(e.ClientID[:], "client id")
	}
	if p&hasBody != 0 {
		r.fixed(e.Body[:], "body")
	}
	if p&hasURI != 0 {
		r.fixed(e.URI[:], "uri")
	}
}

// String prints what a person needs to recognise the event.
func (h *Header) String() string {
	s := fmt.Sprintf("%s %s", h.Type, h.Event)
	if h.Agent != "" {
		s += " by " + h.Agent
	}
	if h.Target != (ID{}) {
		s += " on " + h.Target.String()
	}
	return s
}
