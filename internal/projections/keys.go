package projections

import (
	"crypto/sha256"
	"encoding/binary"

	"mneme/internal/events"
)

// Key prefixes, append-only. The projections declare whose they are, what the keys
// below them look like and what the rows hold; DESIGN.md has the whole table.
// Prefixes 0x40 to 0x4f belong to internal/index/text.
//
// All integers are big-endian; signed times have the sign bit flipped so that
// keys sort by time.
const (
	prefixMeta         = 0x01
	prefixFrame        = 0x02
	prefixEnvelope     = 0x03
	prefixEpoch        = 0x04
	prefixHash         = 0x05
	prefixEntry        = 0x10
	prefixName         = 0x11
	prefixPartition    = 0x12
	prefixRecords      = 0x13
	prefixPartRow      = 0x14
	prefixSpace        = 0x15
	prefixHome         = 0x16
	prefixHead         = 0x20
	prefixDoc          = 0x21
	prefixDeath        = 0x22
	prefixHistory      = 0x23
	prefixURI          = 0x24
	prefixIdem         = 0x25
	prefixTime         = 0x26
	prefixConversation = 0x27
	prefixSealed       = 0x28
	prefixEnded        = 0x29
	prefixTold         = 0x2A
	prefixBitmap       = 0x30
	prefixAttrs        = 0x31

	prefixGraphEntity      = 0x32
	prefixGraphObservation = 0x33
	prefixGraphRelation    = 0x34
	prefixGraphFind        = 0x35
	prefixGraphOwner       = 0x36
	prefixGraphEnded       = 0x37
	prefixGraphTotals      = 0x38

	prefixVector     = 0x50
	prefixDocVectors = 0x51
	prefixPending    = 0x52
	prefixNextVector = 0x53
	prefixAudit      = 0x60
	prefixRead       = 0x61
	prefixQuarantine = 0x70
	prefixNote       = 0x71
)

// SpaceKey is the short form of a vector space's id.
type SpaceKey [8]byte

var metaCursorKey = []byte{prefixMeta, 'c'}

func be32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func be64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }
func beTime(b []byte, t int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t)^(1<<63))
}
func decodeTime(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ (1 << 63)) }

func frameKey(seq uint64) []byte { return be64([]byte{prefixFrame}, seq) }
func envelopeKey(seq uint64, index uint32) []byte {
	return be32(be64([]byte{prefixEnvelope}, seq), index)
}
func noteKey(at Ref) []byte            { return at.append([]byte{prefixNote}) }
func epochKey(epoch uint32) []byte     { return be32([]byte{prefixEpoch}, epoch) }
func hashKey(ns events.ID) []byte      { return append([]byte{prefixHash}, ns[:]...) }
func entryKey(ns events.ID) []byte     { return append([]byte{prefixEntry}, ns[:]...) }
func homeKey(ns events.ID) []byte      { return append([]byte{prefixHome}, ns[:]...) }
func nameKey(name string) []byte       { return append([]byte{prefixName}, name...) }
func recordsKey(ns events.ID) []byte   { return append([]byte{prefixRecords}, ns[:]...) }
func partRowKey(part uint32) []byte    { return be32([]byte{prefixPartRow}, part) }
func docKey(part, doc uint32) []byte   { return be32(be32([]byte{prefixDoc}, part), doc) }
func attrsKey(part, doc uint32) []byte { return be32(be32([]byte{prefixAttrs}, part), doc) }

func partitionKey(ns events.ID, scope events.Scope, agent string) []byte {
	b := append([]byte{prefixPartition}, ns[:]...)
	b = append(b, byte(scope))
	return append(b, agent...)
}

func deathKey(part uint32, at Ref, doc uint32) []byte {
	return be32(at.append(be32([]byte{prefixDeath}, part)), doc)
}

// A record's rows lie below its namespace, so that a reader of another one finds
// nothing, and deleting the namespace needs no list of its records.
func headKey(ns, record events.ID) []byte {
	b := append(make([]byte, 0, 1+len(ns)+len(record)), prefixHead)
	return append(append(b, ns[:]...), record[:]...)
}

func historyPrefix(ns, record events.ID) []byte {
	return append(append([]byte{prefixHistory}, ns[:]...), record[:]...)
}

func historyKey(ns, record events.ID, at Ref) []byte { return at.append(historyPrefix(ns, record)) }

func uriPrefix(part uint32, path string) []byte {
	b := binary.BigEndian.AppendUint16(be32([]byte{prefixURI}, part), uint16(len(path)))
	return append(b, path...)
}

func uriKey(part uint32, path string, doc uint32) []byte { return be32(uriPrefix(part, path), doc) }

func idemKey(ns events.ID, client events.MAC, agent string) []byte {
	b := append(make([]byte, 0, 1+len(ns)+len(client)+len(agent)), prefixIdem)
	b = append(append(b, ns[:]...), client[:]...)
	return append(b, agent...)
}

func timeKey(part uint32, occurred int64, doc uint32) []byte {
	return be32(beTime(be32([]byte{prefixTime}, part), occurred), doc)
}

// conversationPrefix is the attribute without its field.
func conversationPrefix(part uint32, conversation AttrKey) []byte {
	return append(be32([]byte{prefixConversation}, part), conversation[1:]...)
}

func conversationKey(part uint32, conversation AttrKey, occurred int64, doc uint32) []byte {
	return be32(beTime(conversationPrefix(part, conversation), occurred), doc)
}

func bitmapPrefix(part uint32, attr AttrKey) []byte {
	return append(be32([]byte{prefixBitmap}, part), attr...)
}

func bitmapKey(part uint32, attr AttrKey, block uint16) []byte {
	return binary.BigEndian.AppendUint16(bitmapPrefix(part, attr), block)
}

func vectorPrefix(part uint32, space SpaceKey) []byte {
	return append(be32([]byte{prefixVector}, part), space[:]...)
}

func vectorKey(part uint32, space SpaceKey, vector uint32) []byte {
	return be32(vectorPrefix(part, space), vector)
}

// vectorFactKey names a vector as the state hash does: VectorIDs depend on what
// was attached when, and on what was erased before.
func vectorFactKey(part uint32, space SpaceKey, doc uint32, chunk uint16) []byte {
	return binary.BigEndian.AppendUint16(be32(vectorPrefix(part, space), doc), chunk)
}

func docVectorsPrefix(part uint32, space SpaceKey) []byte {
	return append(be32([]byte{prefixDocVectors}, part), space[:]...)
}

func docVectorsKey(part uint32, space SpaceKey, doc uint32) []byte {
	return be32(docVectorsPrefix(part, space), doc)
}

func spaceTotalsKey(ns events.ID, space SpaceKey) []byte {
	return append(append([]byte{prefixSpace}, ns[:]...), space[:]...)
}

func nextVectorKey(part uint32, space SpaceKey) []byte {
	return append(be32([]byte{prefixNextVector}, part), space[:]...)
}

func pendingPrefix(ns events.ID, space SpaceKey) []byte {
	return append(append([]byte{prefixPending}, ns[:]...), space[:]...)
}

func pendingKey(ns events.ID, space SpaceKey, part, doc uint32) []byte {
	return be32(be32(pendingPrefix(ns, space), part), doc)
}

func auditPrefix(ns events.ID) []byte { return append([]byte{prefixAudit}, ns[:]...) }

func auditKey(ns events.ID, at Ref) []byte { return at.append(auditPrefix(ns)) }

func readPrefix(ns events.ID) []byte { return append([]byte{prefixRead}, ns[:]...) }

func readKey(ns events.ID, at Ref) []byte { return at.append(readPrefix(ns)) }

// sealedPrefix is what the rows of all events that a key seals begin with.
func sealedPrefix(ns events.ID, key [16]byte) []byte {
	return append(append([]byte{prefixSealed}, ns[:]...), key[:]...)
}

func sealedKey(ns events.ID, key [16]byte, at Ref) []byte { return at.append(sealedPrefix(ns, key)) }

func toldKey(ns events.ID, key [16]byte) []byte {
	return append(append([]byte{prefixTold}, ns[:]...), key[:]...)
}

func endedKey(ns events.ID, key [16]byte) []byte {
	return append(append([]byte{prefixEnded}, ns[:]...), key[:]...)
}

func quarantineKey(at Ref) []byte { return at.append([]byte{prefixQuarantine}) }

// What a row of prefixGraphFind finds.
const (
	graphEntityByName      = 1
	graphRelationByEnd     = 2
	graphRelationByAll     = 3
	graphObservationByText = 4
)

// graphFinds is what the rows begin with that find things of a kind by strings. The strings are
// hashed, so that keys are short however long they are; whoever finds something compares them.
func graphFinds(part uint32, kind byte, by ...string) []byte {
	sum := sha256.Sum256(appendGraphStrings(nil, by...))
	return append(append(be32([]byte{prefixGraphFind}, part), sum[:16]...), kind)
}

func graphFindKey(part uint32, kind byte, ref events.GraphRef, by ...string) []byte {
	return ref.Append(graphFinds(part, kind, by...))
}

func graphEntityKey(part uint32, ref events.GraphRef) []byte {
	return ref.Append(be32([]byte{prefixGraphEntity}, part))
}

func graphRelationKey(part uint32, ref events.GraphRef) []byte {
	return ref.Append(be32([]byte{prefixGraphRelation}, part))
}

func graphObservations(part uint32, entity events.GraphRef) []byte {
	return entity.Append(be32([]byte{prefixGraphObservation}, part))
}

func graphObservationKey(part uint32, entity, ref events.GraphRef) []byte {
	return ref.Append(graphObservations(part, entity))
}

func graphOwnerKey(part uint32, ref events.GraphRef) []byte {
	return ref.Append(be32([]byte{prefixGraphOwner}, part))
}

func graphEndedKey(part uint32, at Ref) []byte {
	return at.append(be32([]byte{prefixGraphEnded}, part))
}

func graphTotalsKey(part uint32) []byte { return be32([]byte{prefixGraphTotals}, part) }

// Ref points to an event in the log: the sequence of its frame and its index.
type Ref struct {
	Seq   uint64
	Index uint32
}

func (r Ref) append(b []byte) []byte { return be32(be64(b, r.Seq), r.Index) }

// Before reports whether r lies before q.
func (r Ref) Before(q Ref) bool { return r.Seq < q.Seq || r.Seq == q.Seq && r.Index < q.Index }

func decodeRef(b []byte) Ref {
	return Ref{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
}

// DayKey is the attribute of the UTC day in which t, in nanoseconds, falls.
func DayKey(t int64) AttrKey {
	const day = 24 * 3600 * 1e9
	d := t / day
	if t%day < 0 {
		d--
	}
	return dayNumberKey(d)
}

func dayNumberKey(day int64) AttrKey { return Attr(AttrDay, string(beTime(nil, day))) }
