package events

import (
	"encoding/binary"
	"fmt"
)

// Header is the clear part of an event: what routing, ordering, audit and
// idempotency need and nothing else. Times are nanoseconds since 1970 UTC.
//
// It can never be erased, so it holds no words of a memory and no person's
// name: a principal is an id that only the directory resolves, and the data
// subject of a memory is known by the random id of its key.
type Header struct {
	Type        Type
	Schema      uint8 // schema version of the payload
	Scope       Scope
	Kind        Kind
	Event       ID
	Namespace   ID // zero for control events
	SealedAt    int64
	OccurredAt  int64
	Agent       string   // at most 63 bytes
	Name        string   // namespace name, directory events only; at most 63 bytes
	Record      ID       // the record that a capture creates
	Target      ID       // the record that a revise, forget or attach is about
	BaseVersion uint32   // the version that a revise or attach builds on
	Home        uint16   // the shard that a namespace is placed on; zero = the one with the directory
	Principal   ID       // who was authenticated; zero = nobody was asked
	Directory   Position // where the directory stood at admission, in shard 0; zero = it was not asked
	Key         [16]byte
	ClientID    MAC
	Body        MAC
}

// Envelope is one event as the log keeps it.
type Envelope struct {
	Header
	Payload []byte // sealed; empty for control events
}

// Presence bits of the optional header fields, append-only within their group.
// A later field takes a free bit of the group that it belongs to.
const (
	// What the event is about.
	hasNamespace = 1 << 0
	hasName      = 1 << 1
	hasRecord    = 1 << 2
	hasTarget    = 1 << 3
	hasBase      = 1 << 4
	hasHome      = 1 << 5
	// Who caused it, and under which rules it was admitted.
	hasPrincipal = 1 << 8
	hasDirectory = 1 << 9
	// What it is sealed and recognised by.
	hasKey      = 1 << 16
	hasClientID = 1 << 17
	hasBody     = 1 << 18

	hasAll = hasNamespace | hasName | hasRecord | hasTarget | hasBase | hasHome | hasPrincipal | hasDirectory | hasKey | hasClientID | hasBody
)

// envelopeVersion 1 had other presence bits, and hashes of subject and uri.
const envelopeVersion = 2

func (h *Header) presence() uint32 {
	var p uint32
	set := func(bit uint32, present bool) {
		if present {
			p |= bit
		}
	}
	set(hasNamespace, h.Namespace != ID{})
	set(hasName, h.Name != "")
	set(hasRecord, h.Record != ID{})
	set(hasTarget, h.Target != ID{})
	set(hasBase, h.BaseVersion != 0)
	set(hasHome, h.Home != 0)
	set(hasPrincipal, h.Principal != ID{})
	set(hasDirectory, !h.Directory.IsZero())
	set(hasKey, h.Key != [16]byte{})
	set(hasClientID, !h.ClientID.IsZero())
	set(hasBody, !h.Body.IsZero())
	return p
}

// AppendHeader appends the canonical encoding of the header. It is also the
// additional data under which the payload is sealed.
//
//	 0     1      3        4       5      6          10      26          34            42
//	+-----+------+--------+-------+------+----------+-------+-----------+-------------+
//	| ver | type | schema | scope | kind | presence | event | sealed_at | occurred_at |
//	+-----+------+--------+-------+------+----------+-------+-----------+-------------+
//	| agent: u8 length, bytes | then, each if its presence bit is set, in bit order:    |
//	| namespace 16 | name: u8 length, bytes | record 16 | target 16 | base u32 | home u16 |
//	| principal 16 | directory: epoch u32, seq u64, index u32                           |
//	| key 16 | client id 16 | body 16                                                  |
//
// All integers are big-endian.
func (h *Header) AppendHeader(b []byte) []byte {
	p := h.presence()
	b = append(b, envelopeVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(h.Type))
	b = append(b, h.Schema, byte(h.Scope), byte(h.Kind))
	b = binary.BigEndian.AppendUint32(b, p)
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
	if p&hasHome != 0 {
		b = binary.BigEndian.AppendUint16(b, h.Home)
	}
	if p&hasPrincipal != 0 {
		b = append(b, h.Principal[:]...)
	}
	if p&hasDirectory != 0 {
		b = binary.BigEndian.AppendUint32(b, h.Directory.Epoch)
		b = binary.BigEndian.AppendUint64(b, h.Directory.Seq)
		b = binary.BigEndian.AppendUint32(b, h.Directory.Index)
	}
	if p&hasKey != 0 {
		b = append(b, h.Key[:]...)
	}
	if p&hasClientID != 0 {
		b = append(b, h.ClientID[:]...)
	}
	if p&hasBody != 0 {
		b = append(b, h.Body[:]...)
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
		if v > 0 {
			return e, fmt.Errorf("envelope version %d: %w", v, ErrOlder)
		}
		return e, fmt.Errorf("envelope version %d: %w", v, ErrMalformed)
	}
	e.Type = Type(r.u16("type"))
	e.Schema = r.u8("schema")
	e.Scope = Scope(r.u8("scope"))
	e.Kind = Kind(r.u8("kind"))
	p := r.u32("presence")
	if p&^uint32(hasAll) != 0 { // before the rest, whose layout it changes
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

func (e *Envelope) decodeOptional(r *reader, p uint32) {
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
	if p&hasHome != 0 {
		e.Home = r.u16("home")
	}
	if p&hasPrincipal != 0 {
		r.fixed(e.Principal[:], "principal")
	}
	if p&hasDirectory != 0 {
		e.Directory = Position{Epoch: r.u32("directory epoch"), Seq: r.u64("directory sequence"), Index: r.u32("directory index")}
	}
	if p&hasKey != 0 {
		r.fixed(e.Key[:], "key")
	}
	if p&hasClientID != 0 {
		r.fixed(e.ClientID[:], "client id")
	}
	if p&hasBody != 0 {
		r.fixed(e.Body[:], "body")
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
