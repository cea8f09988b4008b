package projections

import (
	"encoding/binary"
	"errors"
	"mneme/internal/events"
	"mneme/internal/storage"
)

// vectorReads are the reads of vectors and spaces.
type vectorReads struct{ p *published }

// Vectors visits the vectors of a partition in one space, by VectorID.
// The row's bytes are valid during the call only.
func (v vectorReads) Vectors(part uint32, space SpaceKey, from uint32, visit func(id uint32, row VectorRow) error) error {
	prefix := vectorPrefix(part, space)
	return v.p.walk(be32(prefix[:len(prefix):len(prefix)], from), storage.PrefixEnd(prefix), false, func(key, value []byte) (bool, error) {
		row, err := decodeVectorRow(value)
		if err != nil {
			return false, err
		}
		return true, visit(binary.BigEndian.Uint32(key[13:]), row)
	})
}

// Vector returns the vector with a VectorID; false: there is none.
func (v vectorReads) Vector(part uint32, space SpaceKey, id uint32) (VectorRow, bool, error) {
	raw, err := v.p.get(vectorKey(part, space, id))
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
func (v vectorReads) Pending(ns events.ID, space SpaceKey, limit int) ([]PendingDoc, error) {
	var out []PendingDoc
	stop := errors.New("enough")
	err := eachRow(v.p.snap, pendingPrefix(ns, space), func(key, value []byte) error {
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
func (v vectorReads) IsPending(ns events.ID, space SpaceKey, part, doc uint32) (bool, error) {
	raw, err := v.p.get(pendingKey(ns, space, part, doc))
	return raw != nil, err
}

// SpaceRecords is the number of a namespace's living records that have vectors
// in a space.
func (v vectorReads) SpaceRecords(ns events.ID, space SpaceKey) (uint64, error) {
	raw, err := v.p.get(spaceTotalsKey(ns, space))
	if err != nil || raw == nil {
		return 0, err
	}
	s, err := decodeSpaceTotals(raw)
	if err != nil {
		return 0, err
	}
	return s.living, nil
}

// Lacking lists up to limit living versions of a partition, from a DocID on,
// that have no vectors in a space. next is where to go on; done says that the
// end was reached.
func (v vectorReads) Lacking(p Partition, space SpaceKey, from uint32, limit int) (docs []PendingDoc, next uint32, done bool, err error) {
	has, err := v.p.snap.NewIter(prefixOptions(docVectorsPrefix(p.ID, space)))
	if err != nil {
		return nil, from, false, err
	}
	defer has.Close()
	it, err := v.p.snap.NewIter(prefixOptions(be32([]byte{prefixDoc}, p.ID)))
	if err != nil {
		return nil, from, false, err
	}
	defer it.Close()
	more := has.SeekGE(docVectorsKey(p.ID, space, from))
	next = from
	for ok := it.SeekGE(docKey(p.ID, from)); ok; ok = it.Next() {
		doc := binary.BigEndian.Uint32(it.Key()[5:])
		for more && binary.BigEndian.Uint32(has.Key()[13:]) < doc {
			more = has.Next()
		}
		if more && binary.BigEndian.Uint32(has.Key()[13:]) == doc {
			next = doc + 1
			continue
		}
		if len(docs) == limit {
			return docs, next, false, nil
		}
		next = doc + 1
		d, err := decodeDoc(it.Value())
		if err != nil {
			return nil, from, false, err
		}
		if d.Living() {
			docs = append(docs, PendingDoc{p.ID, doc, d.Record})
		}
	}
	return docs, next, true, errors.Join(it.Error(), has.Error())
}
