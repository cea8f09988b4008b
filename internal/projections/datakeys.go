package projections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// dataKeys is the projection of the keys that memories are sealed under: which
// events each key seals, and which keys ended. Where a key ends, every version
// that was sealed under it is erased. All of that is decided from headers, so a
// fold of a log whose keys are gone comes to the same.
type dataKeys struct {
	defaults
	t     *tx
	ended changes[events.ID, uint32] // how many keys of a namespace ended
}

var dataKeyRows = declaration{
	name: "data keys",
	rows: []rows{
		{prefix: prefixSealed, scope: ofNamespace, key: "namespace16 key16 seq8 index4",
			holds: "partition4 doc4 of the version that the event, sealed under the key, made; partition4 whose graph it changed; empty = neither"},
		{prefix: prefixEnded, scope: ofNamespace, fact: true, key: "namespace16 key16",
			holds: "ref12 of the key.destroyed, partition4 of each that had a version under the key"},
		{prefix: prefixTold, scope: ofNamespace, key: "namespace16 key16", holds: "ref12 of the key.created"},
	},
	load: func(db *storage.DB, m *memory) error {
		ended := map[events.ID]*uint32{}
		err := eachRow(db, []byte{prefixEnded}, func(key, _ []byte) error {
			if len(key) != 33 {
				return fmt.Errorf("key of an ended data key: %w", events.ErrMalformed)
			}
			ns := events.ID(key[1:17])
			if ended[ns] == nil {
				ended[ns] = new(uint32)
			}
			*ended[ns]++
			return nil
		})
		m.ended = m.ended.with(ended)
		return err
	},
}

func (k *dataKeys) declared() *declaration { return &dataKeyRows }

// seals reports whether the payload of such an event is about a memory, or the graph.
func seals(t events.Type) bool {
	switch t {
	case events.TypeCaptured, events.TypeRevised, events.TypeVectorsAttached, events.TypeGraphChanged:
		return true
	}
	return false
}

// late reports whether the key of a memory's event ended before it.
func (k *dataKeys) late(ev *event) (bool, error) {
	if !seals(ev.Type) || k.ended.get(ev.Namespace) == nil {
		return false, nil
	}
	row, err := k.t.get(endedKey(ev.Namespace, ev.Key))
	return row != nil, err
}

// destroyed decides which keys end. Those that ended before are passed over.
func (k *dataKeys) destroyed(ev *event) error {
	ids, err := events.DecodeKeys(ev.Payload)
	if err != nil || k.t.home.of(ev.Namespace) == nil {
		return ev.is(OutcomeRejected)
	}
	for _, id := range ids {
		row, err := k.t.get(endedKey(ev.Namespace, id))
		if err != nil {
			return err
		}
		if row == nil {
			ev.keys = append(ev.keys, id)
		}
	}
	if len(ev.keys) == 0 {
		return ev.is(OutcomeDuplicate)
	}
	return ev.is(OutcomeApplied)
}

func (k *dataKeys) fold(ev *event) error {
	if ev.took(events.TypeKeyDestroyed) {
		k.t.out.Erased = true
		for _, id := range ev.keys {
			if err := k.end(ev, id); err != nil {
				return err
			}
		}
		return nil
	}
	if ev.took(events.TypeKeyCreated) && k.t.home.of(ev.Namespace) != nil {
		return k.t.b.Set(toldKey(ev.Namespace, ev.Key), ev.at.append(nil), nil)
	}
	if !seals(ev.Type) || ev.result.Outcome == OutcomeErased || k.t.home.of(ev.Namespace) == nil {
		return nil
	}
	var made []byte
	switch v := ev.began; {
	case v != nil:
		made = be32(be32(nil, v.part.ID), v.doc)
	case ev.took(events.TypeGraphChanged):
		made = be32(nil, ev.part.ID)
	}
	return k.t.b.Set(sealedKey(ev.Namespace, ev.Key, ev.at), made, nil)
}

// sealedEvent is an event that a key seals.
type sealedEvent struct {
	at        Ref
	made      bool // it made a version
	graph     bool // it changed a graph
	part, doc uint32
}

// end erases what one key seals. That there was something stays: the events'
// audit rows, and the used client ids.
func (k *dataKeys) end(ev *event, id [16]byte) error {
	var sealed []sealedEvent
	prefix := sealedPrefix(ev.Namespace, id)
	err := eachRow(k.t.b, prefix, func(key, value []byte) error {
		e := sealedEvent{at: decodeRef(key[len(prefix):]), made: len(value) == 8, graph: len(value) == 4}
		if e.made || e.graph {
			e.part = binary.BigEndian.Uint32(value)
		}
		if e.made {
			e.doc = binary.BigEndian.Uint32(value[4:])
		}
		sealed = append(sealed, e)
		return nil
	})
	if err != nil {
		return err
	}
	parts := map[uint32]bool{}
	for _, e := range sealed {
		if e.made {
			parts[e.part] = true
			if err := k.eraseVersion(ev, e.part, e.doc); err != nil {
				return err
			}
		}
		if e.graph {
			parts[e.part] = true
			if err := k.t.graph.eraseEvent(ev.Namespace, e.part, e.at); err != nil {
				return err
			}
		}
		if err := k.t.audit.erased(ev.Namespace, e.at); err != nil {
			return err
		}
	}
	if err := k.t.dropRange(prefix); err != nil {
		return err
	}
	row := ev.at.append(nil)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		row = be32(row, part)
	}
	*k.ended.edit(ev.Namespace)++
	return k.t.addFact(ev.Namespace, endedKey(ev.Namespace, id), row)
}

// eraseVersion takes out what a version's payload gave, and ends its life, if it
// lives.
func (k *dataKeys) eraseVersion(ev *event, part, doc uint32) error {
	raw, err := k.t.get(docKey(part, doc))
	if err != nil {
		return err
	}
	row, err := decodeDoc(raw)
	if err != nil {
		return err
	}
	v := &version{part: k.t.partitions.get(part), doc: doc, record: row.Record, number: row.Version, row: row}
	if err := k.t.eraseVersion(v); err != nil || !row.Living() {
		return err
	}
	if raw, err = k.t.get(headKey(ev.Namespace, v.record)); err != nil {
		return err
	}
	ending := &event{Envelope: ev.Envelope, at: ev.at, part: v.part, ended: v}
	if ending.head, err = decodeHead(raw); err != nil {
		return err
	}
	if err := k.t.partitions.fold(ending); err != nil {
		return err
	}
	k.t.home.homes.edit(ev.Namespace).records--
	return k.t.records.end(ending)
}

func (k *dataKeys) drop(ns events.ID, _ []uint32) { k.ended.remove(ns) }

func (k *dataKeys) publish(m *memory) { m.ended = k.ended.after() }

// dataKeyReads are the reads of data keys.
type dataKeyReads struct{ p *published }

// EndedKey is a data key that ended.
type EndedKey struct {
	Namespace  events.ID
	Key        [16]byte
	At         Ref      // its key.destroyed
	Partitions []uint32 // that had a version under it
}

// EndedKeys visits the keys that ended, in living namespaces.
func (v dataKeyReads) EndedKeys(visit func(k EndedKey)) error {
	return eachRow(v.p.snap, []byte{prefixEnded}, func(key, value []byte) error {
		if len(key) != 33 || len(value) < 12 || len(value)%4 != 0 {
			return fmt.Errorf("row of an ended data key: %w", events.ErrMalformed)
		}
		k := EndedKey{Namespace: events.ID(key[1:17]), Key: [16]byte(key[17:]), At: decodeRef(value)}
		for part := value[12:]; len(part) > 0; part = part[4:] {
			k.Partitions = append(k.Partitions, binary.BigEndian.Uint32(part))
		}
		visit(k)
		return nil
	})
}

// Told reports whether an event says that a key was made.
func (v dataKeyReads) Told(ns events.ID, key [16]byte) (bool, error) {
	row, err := v.p.get(toldKey(ns, key))
	return row != nil, err
}

// SealingKeys visits the keys that seal memories of living namespaces, each once.
func (v dataKeyReads) SealingKeys(visit func(ns events.ID, key [16]byte)) error {
	it, err := v.p.snap.NewIter(prefixOptions([]byte{prefixSealed}))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; {
		prefix := slices.Clone(it.Key()[:33])
		visit(events.ID(prefix[1:17]), [16]byte(prefix[17:]))
		ok = it.SeekGE(storage.PrefixEnd(prefix))
	}
	return it.Close()
}

// UnknownKeys visits the keys of living namespaces that have not ended and of which
// known knows nothing: those of subjects, of which an event tells, and those that
// seal something. It may visit one twice.
func (v dataKeyReads) UnknownKeys(known func(key [16]byte) bool, visit func(ns events.ID, key [16]byte)) error {
	err := eachRow(v.p.snap, []byte{prefixTold}, func(row, _ []byte) error {
		if len(row) != 33 {
			return fmt.Errorf("row of a data key that was made: %w", events.ErrMalformed)
		}
		ns, key := events.ID(row[1:17]), [16]byte(row[17:])
		if known(key) {
			return nil
		}
		ended, err := v.p.get(endedKey(ns, key))
		if ended == nil && err == nil {
			visit(ns, key)
		}
		return err
	})
	sealing := v.SealingKeys(func(ns events.ID, key [16]byte) {
		if !known(key) {
			visit(ns, key)
		}
	})
	return errors.Join(err, sealing)
}
