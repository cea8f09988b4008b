package projections

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// FactRows is the dumb twin of the state hash: it looks at every row there is
// and visits those that are facts, with the namespace they belong to.
func FactRows(v *View, visit func(ns events.ID, key, value []byte)) error {
	parts, heads, deleted := map[uint32]events.ID{}, map[events.ID]uint32{}, map[events.ID]Ref{}
	err := eachRow(v.snap, nil, func(key, value []byte) error {
		switch key[0] {
		case prefixPartRow:
			p, err := decodePartition(binary.BigEndian.Uint32(key[1:]), value)
			parts[p.ID] = p.Namespace
			return err
		case prefixHead:
			h, err := decodeHead(value)
			heads[events.ID(key[1:])] = h.Partition
			return err
		case prefixAudit:
			row, err := decodeAuditRow(decodeRef(key[17:]), value)
			if row.Type == events.TypeNamespaceDeleted && row.Outcome == OutcomeApplied {
				deleted[events.ID(key[1:17])] = row.At
			}
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachRow(v.snap, nil, func(key, value []byte) error {
		var ns events.ID
		switch key[0] {
		case prefixNamespace, prefixPartition, prefixIdem:
			ns = events.ID(key[1:17])
		case prefixHead:
			ns = parts[heads[events.ID(key[1:])]]
		case prefixHistory:
			ns = parts[heads[events.ID(key[1:17])]]
		case prefixDoc, prefixURI, prefixAttrs:
			ns = parts[binary.BigEndian.Uint32(key[1:])]
		case prefixVector: // facts do not depend on VectorIDs
			row, err := decodeVectorRow(value)
			if err != nil {
				return err
			}
			part := binary.BigEndian.Uint32(key[1:])
			ns, value = parts[part], row.Numbers
			key = vectorFactKey(part, SpaceKey(key[5:13]), row.Doc, row.Chunk)
		case text.PrefixForward:
			if len(key) != 9 { // the mark of a removed document
				return nil
			}
			part := binary.BigEndian.Uint32(key[1:])
			d, err := text.ReadDoc(v.snap, part, binary.BigEndian.Uint32(key[5:]))
			if err == nil {
				value, err = text.EncodeDoc(nil, d) // the fact is in clear, the row may be by ids
			}
			if err != nil {
				return err
			}
			ns = parts[part]
		case prefixAudit:
			ns = events.ID(key[1:17])
			row, err := decodeAuditRow(decodeRef(key[17:]), value)
			if err != nil || ns == (events.ID{}) || row.Type.Control() || row.At.Before(deleted[ns]) {
				return err
			}
		default:
			return nil
		}
		visit(ns, key, value)
		return nil
	})
}

// FactHash is the hash of one fact.
func FactHash(key, value []byte) StateHash {
	h, _ := factHash(nil, key, value)
	return h
}

// CutAttrs takes a row of attributes apart.
func CutAttrs(b []byte) (out []AttrKey) {
	for k, rest := cutAttr(b); k != ""; k, rest = cutAttr(rest) {
		out = append(out, k)
	}
	return out
}

// RowCount counts the rows whose key begins with prefix.
func RowCount(v *View, prefix ...byte) int {
	n := 0
	_ = eachRow(v.snap, prefix, func(_, _ []byte) error { n++; return nil })
	return n
}

// Rows visits all rows.
func Rows(v *View, visit func(key, value []byte)) error {
	return eachRow(v.snap, nil, func(key, value []byte) error { visit(key, value); return nil })
}

// FlushTables writes what is in memory into tables.
func FlushTables(s *State) error { return s.gen.db.Flush() }

// BetweenCommitAndPublish runs apply and then f as if apply's commit were
// visible in the database, and its memory views were not out yet.
func BetweenCommitAndPublish(s *State, apply, f func()) {
	g := s.gen
	live, cursor := g.live, g.cursor
	apply()
	newLive, newCursor := g.live, g.cursor
	g.live, g.cursor = live, cursor
	f()
	g.live, g.cursor = newLive, newCursor
}

// SkipDocs makes the next document of a partition have the given DocID.
func SkipDocs(s *State, part, next uint32) { s.gen.parts[part].NextDoc = next }

// Prefixes, for tests that look at rows.
const (
	PrefixAttrs   = prefixAttrs
	PrefixDoc     = prefixDoc
	PrefixPending = prefixPending
)

// NewLiveSet makes a live set for comparison with a dumb one.
func NewLiveSet(next uint32, dead ...uint32) Live {
	l := &liveSet{next: next, dead: roaring.New()}
	for _, d := range dead {
		l.dead.Add(d)
	}
	return l
}
