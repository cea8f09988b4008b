package projections

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
)

// HistoryEntry is one event about a record. Version is the version it made, 0
// for a forget.
type HistoryEntry struct {
	At      Ref
	Version uint32
}

// History lists the events about a record, oldest first.
func (v *View) History(record events.ID) ([]HistoryEntry, error) {
	var out []HistoryEntry
	err := eachRow(v.snap, historyPrefix(record), func(key, value []byte) error {
		out = append(out, HistoryEntry{At: decodeRef(key[17:]), Version: binary.BigEndian.Uint32(value)})
		return nil
	})
	return out, err
}

// URI finds the living record that a path names in a partition: of several,
// which only a race between two leaders can make, the latest.
func (v *View) URI(part uint32, path string) (record events.ID, ok bool, err error) {
	it, err := v.snap.NewIter(prefixOptions(uriPrefix(part, path)))
	if err != nil {
		return record, false, err
	}
	if it.Last() && len(it.Value()) == len(record) {
		record, ok = events.ID(it.Value()), true
	}
	return record, ok, errors.Join(it.Error(), it.Close())
}

// UsedKey finds what a client id was used for.
func (v *View) UsedKey(ns events.ID, client events.MAC, agent string) (UsedKey, bool, error) {
	raw, err := v.get(idemKey(ns, client, agent))
	if err != nil || raw == nil {
		return UsedKey{}, false, err
	}
	u, err := decodeUsedKey(raw)
	return u, err == nil, err
}

// Bitmap is the set of documents with an attribute, dead ones included.
func (v *View) Bitmap(part uint32, attr AttrKey) (*roaring.Bitmap, error) {
	return v.bitmaps(bitmapPrefix(part, attr), nil)
}

// Days is the set of documents that occurred on the UTC days from..to, both
// included, given as days since 1970.
func (v *View) Days(part uint32, from, to int64) (*roaring.Bitmap, error) {
	upper := bitmapPrefix(part, dayNumberKey(to+1))
	return v.bitmaps(bitmapPrefix(part, dayNumberKey(from)), upper)
}

func (v *View) bitmaps(lower, upper []byte) (*roaring.Bitmap, error) {
	opt := prefixOptions(lower)
	if upper != nil {
		opt.UpperBound = upper
	}
	it, err := v.snap.NewIter(opt)
	if err != nil {
		return nil, err
	}
	out := roaring.New()
	for ok := it.First(); ok; ok = it.Next() {
		raw, err := it.ValueAndErr()
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		bm, err := decodeBitmap(raw)
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		block := binary.BigEndian.Uint16(it.Key()[len(it.Key())-2:])
		out.Or(roaring.AddOffset64(bm, int64(block)<<16))
	}
	return out, errors.Join(it.Error(), it.Close())
}

// Between visits the documents that occurred in [from, to), in order of time,
// or backwards.
func (v *View) Between(part uint32, from, to int64, backwards bool, visit func(occurred int64, doc uint32) bool) error {
	return v.timeRange(timeKey(part, from, 0), timeKey(part, to, 0), 5, backwards, visit)
}

// Conversation visits the documents of one conversation in [from, to), in order
// of time, or backwards.
func (v *View) Conversation(part uint32, conversation AttrKey, from, to int64, backwards bool, visit func(occurred int64, doc uint32) bool) error {
	lower, upper := conversationKey(part, conversation, from, 0), conversationKey(part, conversation, to, 0)
	return v.timeRange(lower, upper, len(lower)-timeDocBytes, backwards, visit)
}

// timeDocBytes is the length of a time and a DocID at the end of a key.
const timeDocBytes = 8 + 4

// Conversations visits the documents of all conversations of a partition, one
// conversation after the other, each in order of time. The name of the
// conversation is valid during the call only.
func (v *View) Conversations(part uint32, visit func(name []byte, occurred int64, doc uint32)) error {
	return eachRow(v.snap, be32([]byte{prefixConversation}, part), func(key, _ []byte) error {
		at := len(key) - timeDocBytes
		if at < 6 || at != 6+int(key[5]) {
			return fmt.Errorf("conversation row %x: %w", key, events.ErrMalformed)
		}
		visit(key[6:at], decodeTime(key[at:]), binary.BigEndian.Uint32(key[at+8:]))
		return nil
	})
}

func (v *View) timeRange(lower, upper []byte, at int, backwards bool, visit func(int64, uint32) bool) error {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	first, next := it.First, it.Next
	if backwards {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		if !visit(decodeTime(it.Key()[at:]), binary.BigEndian.Uint32(it.Key()[at+8:])) {
			break
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// Audit visits a namespace's audit rows after a reference, oldest first. The
// zero namespace holds the system's rows.
func (v *View) Audit(ns events.ID, after Ref, visit func(AuditRow) (bool, error)) error {
	lower := append(auditKey(ns, after), 0)
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixOptions(auditPrefix(ns)).UpperBound})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		row, err := decodeAuditRow(decodeRef(it.Key()[17:]), it.Value())
		more := false
		if err == nil {
			more, err = visit(row)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// Vectors visits the vectors of a partition in one space, by VectorID.
// The row's bytes are valid during the call only.
func (v *View) Vectors(part uint32, space SpaceKey, from uint32, visit func(id uint32, row VectorRow) error) error {
	prefix := vectorPrefix(part, space)
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: be32(prefix[:len(prefix):len(prefix)], from), UpperBound: prefixOptions(prefix).UpperBound})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		row, err := decodeVectorRow(it.Value())
		if err == nil {
			err = visit(binary.BigEndian.Uint32(it.Key()[13:]), row)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return errors.Join(it.Error(), it.Close())
}

// Vector returns the vector with a VectorID; false: there is none.
func (v *View) Vector(part uint32, space SpaceKey, id uint32) (VectorRow, bool, error) {
	raw, err := v.get(vectorKey(part, space, id))
	if err != nil || raw == nil {
		return VectorRow{}, false, err
	}
	row, err := decodeVectorRow(raw)
	return row, err == nil, err
}

// PendingDoc is a record version that waits for its vectors.
type PendingDoc struct {
	Partition, Doc uint32
	Record         events.ID
}

// Pending lists up to limit versions of a namespace that wait for vectors in a
// space, which is the current one or the one that is being built.
func (v *View) Pending(ns events.ID, space SpaceKey, limit int) ([]PendingDoc, error) {
	var out []PendingDoc
	stop := errors.New("enough")
	err := eachRow(v.snap, pendingPrefix(ns, space), func(key, value []byte) error {
		out = append(out, PendingDoc{binary.BigEndian.Uint32(key[25:]), binary.BigEndian.Uint32(key[29:]), events.ID(value)})
		if len(out) >= limit {
			return stop
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return out, err
}

// IsPending reports whether a version waits for its vectors in a space.
func (v *View) IsPending(ns events.ID, space SpaceKey, part, doc uint32) (bool, error) {
	raw, err := v.get(pendingKey(ns, space, part, doc))
	return raw != nil, err
}

// Quarantined visits the events that could not be understood, oldest first.
func (v *View) Quarantined(visit func(at Ref, code string) error) error {
	return eachRow(v.snap, []byte{prefixQuarantine}, func(key, value []byte) error {
		return visit(decodeRef(key[1:]), string(value))
	})
}
