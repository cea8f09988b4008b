package projections

import (
	"encoding/binary"

	"mneme/internal/storage"
)

// The directory: namespaces by id and by name. A namespace's identity is its
// ULID; the name is an alias that is free again once it is deleted.

func (t *tx) namespaceCreated(ev *eventContext) (EventResult, error) {
	taken, err := t.get(nameKey(ev.Name))
	if err != nil {
		return EventResult{}, err
	}
	n := t.namespace(ev.Namespace)
	if taken != nil || n.known {
		return EventResult{Outcome: OutcomeConflict}, nil
	}
	n.known = true
	n.row = NamespaceRow{ID: ev.Namespace, Name: ev.Name, Created: ev.SealedAt, Settings: []Ref{ev.at}}
	if ev.contribution != nil {
		n.row.Space = ev.contribution.Space
	}
	if err := t.addFact(ev.Namespace, namespaceKey(ev.Namespace), n.row.encode()); err != nil {
		return EventResult{}, err
	}
	return EventResult{Outcome: OutcomeApplied}, t.b.Set(nameKey(ev.Name), ev.Namespace[:], nil)
}

func (t *tx) namespaceChanged(ev *eventContext) (EventResult, error) {
	n := t.namespace(ev.Namespace)
	if !n.living() {
		return EventResult{Outcome: OutcomeRejected}, nil
	}
	old := n.row.encode()
	n.row.Settings = append(n.row.Settings[:len(n.row.Settings):len(n.row.Settings)], ev.at)
	return EventResult{Outcome: OutcomeApplied}, t.replaceFact(ev.Namespace, namespaceKey(ev.Namespace), old, n.row.encode())
}

// namespaceDeleted removes every row below the namespace but its audit rows.
// What remains as a fact is the tombstone: its keys die with it, so a replay
// that can no longer open its events must come to the same state.
func (t *tx) namespaceDeleted(ev *eventContext) (EventResult, error) {
	n := t.namespace(ev.Namespace)
	if !n.living() {
		return EventResult{Outcome: OutcomeRejected}, nil
	}
	if err := t.b.Delete(nameKey(n.row.Name), nil); err != nil {
		return EventResult{}, err
	}
	for _, p := range t.g.parts {
		if p.Namespace == ev.Namespace {
			if err := t.dropPartition(p); err != nil {
				return EventResult{}, err
			}
		}
	}
	for _, prefix := range []byte{prefixPartition, prefixIdem, prefixPending, prefixSpace} {
		if err := t.dropRange(append([]byte{prefix}, ev.Namespace[:]...)); err != nil {
			return EventResult{}, err
		}
	}
	n.records, n.hash, n.spaces = 0, StateHash{}, map[SpaceKey]*spaceTotals{}
	n.row = NamespaceRow{ID: ev.Namespace, Name: n.row.Name, Created: n.row.Created, Deleted: true}
	t.out.Dropped = append(t.out.Dropped, ev.Namespace)
	if err := t.noteErased(ev.at.Seq); err != nil {
		return EventResult{}, err
	}
	return EventResult{Outcome: OutcomeApplied}, t.addFact(ev.Namespace, namespaceKey(ev.Namespace), n.row.encode())
}

// dropPartition deletes all rows of one partition.
func (t *tx) dropPartition(p *Partition) error {
	delete(t.docs, p.ID)
	for ref := range t.bitmaps {
		if ref.part == p.ID {
			delete(t.bitmaps, ref)
		}
	}
	if err := t.dropRecords(p.ID); err != nil {
		return err
	}
	for prefix := 0x20; prefix < 0x60; prefix++ {
		switch prefix {
		case prefixHead, prefixHistory, prefixIdem, prefixPending: // not keyed by partition
		default:
			if err := t.dropRange(be32([]byte{byte(prefix)}, p.ID)); err != nil {
				return err
			}
		}
	}
	for key := range t.nextVec {
		if binary.BigEndian.Uint32([]byte(key)[1:]) == p.ID {
			delete(t.nextVec, key)
		}
	}
	if err := t.b.Delete(partRowKey(p.ID), nil); err != nil {
		return err
	}
	delete(t.touched, p.ID)
	delete(t.g.parts, p.ID)
	delete(t.g.byName, string(partitionKey(p.Namespace, p.Scope, p.Agent)))
	t.dropped[p.ID] = true
	delete(t.dead, p.ID)
	return nil
}

// dropRecords deletes the heads and histories of a partition's records.
func (t *tx) dropRecords(part uint32) error {
	prefix := be32([]byte{prefixDoc}, part)
	it, err := t.b.NewIter(prefixOptions(prefix))
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		d, err := decodeDoc(it.Value())
		if err != nil {
			return err
		}
		if err := t.b.Delete(headKey(d.Record), nil); err != nil {
			return err
		}
		if err := t.dropRange(historyPrefix(d.Record)); err != nil {
			return err
		}
	}
	return it.Error()
}

func (t *tx) dropRange(prefix []byte) error {
	return t.b.DeleteRange(prefix, storage.PrefixEnd(prefix), nil)
}
