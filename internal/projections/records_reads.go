package projections

import (
	"encoding/binary"
	"errors"
	"mneme/internal/events"
)

// recordReads are the reads of records.
type recordReads struct{ p *published }

// HistoryEntry is one event about a record. Version is the version it made, 0
// for a forget.
type HistoryEntry struct {
	At      Ref
	Version uint32
}

// History lists the events about a record of a namespace, oldest first.
func (v recordReads) History(ns, record events.ID) ([]HistoryEntry, error) {
	var out []HistoryEntry
	err := eachRow(v.p.snap, historyPrefix(ns, record), func(key, value []byte) error {
		out = append(out, HistoryEntry{At: decodeRef(key[33:]), Version: binary.BigEndian.Uint32(value)})
		return nil
	})
	return out, err
}

// URI finds the living record that a path names in a partition: of several,
// which only a race between two leaders can make, the latest.
func (v recordReads) URI(part uint32, path string) (record events.ID, ok bool, err error) {
	it, err := v.p.snap.NewIter(prefixOptions(uriPrefix(part, path)))
	if err != nil {
		return record, false, err
	}
	if it.Last() && len(it.Value()) == len(record) {
		record, ok = events.ID(it.Value()), true
	}
	return record, ok, errors.Join(it.Error(), it.Close())
}

// UsedKey finds what a client id was used for.
func (v recordReads) UsedKey(ns events.ID, client events.MAC, agent string) (UsedKey, bool, error) {
	raw, err := v.p.get(idemKey(ns, client, agent))
	if err != nil || raw == nil {
		return UsedKey{}, false, err
	}
	u, err := decodeUsedKey(raw)
	return u, err == nil, err
}

// UsedKeys finds many of them.
func (v recordReads) UsedKeys() *UsedKeys { return &UsedKeys{finder{rows: v.p.snap}} }

// Head returns where a record of a namespace stands.
func (v recordReads) Head(ns, record events.ID) (Head, bool, error) {
	raw, err := v.p.get(headKey(ns, record))
	if err != nil || raw == nil {
		return Head{}, false, err
	}
	h, err := decodeHead(raw)
	return h, err == nil, err
}

// Doc returns one record version.
func (v recordReads) Doc(part, doc uint32) (Doc, bool, error) {
	raw, err := v.p.get(docKey(part, doc))
	if err != nil || raw == nil {
		return Doc{}, false, err
	}
	d, err := decodeDoc(raw)
	return d, err == nil, err
}

// Docs visits a partition's versions backwards from DocID below (exclusive).
func (v recordReads) Docs(part, below uint32, visit func(doc uint32, d Doc) (bool, error)) error {
	return v.p.walk(docKey(part, 0), docKey(part, below), true, func(key, value []byte) (bool, error) {
		d, err := decodeDoc(value)
		if err != nil {
			return false, err
		}
		return visit(binary.BigEndian.Uint32(key[5:]), d)
	})
}
