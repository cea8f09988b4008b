package projections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
)

// View is a consistent read of the state at one position. It owns what it reads:
// the rows, and the live sets that belong to them. It is safe for concurrent use
// and must be closed.
type View struct {
	state     *State
	gen       *generation
	snap      *pebble.Snapshot
	cursor    Cursor
	live      liveTable // of the position published
	published uint64
}

// View opens a view of the present state. Its cost does not grow with the
// number of records.
func (s *State) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gen
	g.refs++
	v := &View{state: s, gen: g, snap: g.db.NewSnapshot(), cursor: g.cursor, live: g.live, published: g.cursor.Seq}
	s.opened++
	s.views[v] = s.opened
	// A commit may be visible before it is published: the row is the truth.
	if raw, err := v.get(metaCursorKey); err == nil && raw != nil {
		if c, err := decodeCursor(raw); err == nil {
			v.cursor = c
		}
	}
	return v
}

// Close releases the view.
func (v *View) Close() error {
	err := v.snap.Close()
	v.state.mu.Lock()
	v.gen.refs--
	delete(v.state.views, v)
	closed := v.state.viewClosed
	v.state.viewClosed = make(chan struct{})
	retire := v.gen.stale && v.gen.refs == 0
	v.state.mu.Unlock()
	close(closed)
	if retire {
		v.state.retire(v.gen)
	}
	return err
}

// Cursor is where the view stands.
func (v *View) Cursor() Cursor { return v.cursor }

// Position is the view's position.
func (v *View) Position() events.Position { return v.cursor.Position() }

// Reader gives index packages the snapshot.
func (v *View) Reader() pebble.Reader { return v.snap }

func (v *View) get(key []byte) ([]byte, error) {
	val, closer, err := v.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read row %#x: %w", key[0], err)
	}
	out := append(make([]byte, 0, len(val)), val...)
	return out, closer.Close()
}

// NamespaceInfo is a namespace with its totals.
type NamespaceInfo struct {
	NamespaceRow
	Hash             StateHash
	Records, Pending uint64
}

// Namespace finds a living namespace by name.
func (v *View) Namespace(name string) (NamespaceInfo, bool, error) {
	id, err := v.get(nameKey(name))
	if err != nil || len(id) != 16 {
		return NamespaceInfo{}, false, err
	}
	return v.NamespaceByID(events.ID(id))
}

// NamespaceByID finds a namespace, also a deleted one.
func (v *View) NamespaceByID(id events.ID) (NamespaceInfo, bool, error) {
	raw, err := v.get(namespaceKey(id))
	if err != nil || raw == nil {
		return NamespaceInfo{}, false, err
	}
	row, err := decodeNamespaceRow(raw)
	if err != nil {
		return NamespaceInfo{}, false, err
	}
	info := NamespaceInfo{NamespaceRow: row}
	hash, err := v.get(hashKey(id))
	if err != nil {
		return info, false, err
	}
	info.Hash = decodeStateHash(hash)
	counters, err := v.get(countersKey(id))
	if err != nil {
		return info, false, err
	}
	if len(counters) == 16 {
		info.Records, info.Pending = binary.BigEndian.Uint64(counters), binary.BigEndian.Uint64(counters[8:])
	}
	return info, true, nil
}

// Namespaces lists the living namespaces by name.
func (v *View) Namespaces() ([]NamespaceInfo, error) {
	var out []NamespaceInfo
	err := eachRow(v.snap, []byte{prefixName}, func(_, id []byte) error {
		info, ok, err := v.NamespaceByID(events.ID(id))
		if ok {
			out = append(out, info)
		}
		return err
	})
	slices.SortFunc(out, func(a, b NamespaceInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// Hash is the state hash over all namespaces.
func (v *View) Hash() (StateHash, error) {
	var sum StateHash
	err := eachRow(v.snap, []byte{prefixHash}, func(_, value []byte) error {
		sum = sum.Add(decodeStateHash(value))
		return nil
	})
	return sum, err
}

// Totals are the living records and pending vectors over all namespaces.
func (v *View) Totals() (records, pending uint64, err error) {
	err = eachRow(v.snap, []byte{prefixCounters}, func(_, value []byte) error {
		if len(value) == 16 {
			records += binary.BigEndian.Uint64(value)
			pending += binary.BigEndian.Uint64(value[8:])
		}
		return nil
	})
	return records, pending, err
}

// Partition finds the partition of (namespace, scope, agent); false if nothing
// was ever written to it.
func (v *View) Partition(ns events.ID, scope events.Scope, agent string) (Partition, bool, error) {
	if scope != events.ScopeAgent {
		agent = ""
	}
	raw, err := v.get(partitionKey(ns, scope, agent))
	if err != nil || len(raw) != 4 {
		return Partition{}, false, err
	}
	return v.PartitionByID(binary.BigEndian.Uint32(raw))
}

// PartitionByID finds a partition by its number.
func (v *View) PartitionByID(id uint32) (Partition, bool, error) {
	raw, err := v.get(partRowKey(id))
	if err != nil || raw == nil {
		return Partition{}, false, err
	}
	p, err := decodePartition(id, raw)
	return p, err == nil, err
}

// Partitions lists a namespace's partitions.
func (v *View) Partitions(ns events.ID) ([]Partition, error) {
	var out []Partition
	err := eachRow(v.snap, append([]byte{prefixPartition}, ns[:]...), func(_, value []byte) error {
		p, ok, err := v.PartitionByID(binary.BigEndian.Uint32(value))
		if ok {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// Live is the set of a partition's living documents at this view.
type Live interface{ Contains(doc uint32) bool }

// Live returns the living documents of a partition at this view's position.
func (v *View) Live(part Partition) Live {
	l := v.live.get(part.ID)
	switch {
	case v.published < v.cursor.Seq:
		return v.liveUnpublished(l, part)
	case l == nil:
		return &liveSet{dead: roaring.New()}
	}
	return l
}

// liveUnpublished is for a view of a commit whose memory views are not out yet:
// it adds the deaths that only the rows know. If they cannot be read, nothing
// lives; the view's other reads tell why.
func (v *View) liveUnpublished(l *liveSet, part Partition) Live {
	dead := roaring.New()
	if l != nil {
		dead = l.dead.Clone()
	}
	opt := prefixOptions(be32([]byte{prefixDeath}, part.ID))
	opt.LowerBound = deathKey(part.ID, Ref{Seq: v.published + 1}, 0)
	it, err := v.snap.NewIter(opt)
	if err != nil {
		return &liveSet{dead: roaring.New()}
	}
	for ok := it.First(); ok; ok = it.Next() {
		dead.Add(binary.BigEndian.Uint32(it.Key()[17:]))
	}
	if err := it.Close(); err != nil {
		return &liveSet{dead: roaring.New()}
	}
	return &liveSet{next: part.NextDoc, dead: dead}
}

// LiveCount is the number of living documents of a partition.
func (v *View) LiveCount(part Partition) uint64 {
	l := v.Live(part).(*liveSet)
	return uint64(l.next) - l.dead.GetCardinality()
}

// Head returns where a record stands.
func (v *View) Head(record events.ID) (Head, bool, error) {
	raw, err := v.get(headKey(record))
	if err != nil || raw == nil {
		return Head{}, false, err
	}
	h, err := decodeHead(raw)
	return h, err == nil, err
}

// Doc returns one record version.
func (v *View) Doc(part, doc uint32) (Doc, bool, error) {
	raw, err := v.get(docKey(part, doc))
	if err != nil || raw == nil {
		return Doc{}, false, err
	}
	d, err := decodeDoc(raw)
	return d, err == nil, err
}

// Docs visits a partition's versions backwards from DocID below (exclusive).
func (v *View) Docs(part, below uint32, visit func(doc uint32, d Doc) (bool, error)) error {
	it, err := v.snap.NewIter(&pebble.IterOptions{LowerBound: docKey(part, 0), UpperBound: docKey(part, below)})
	if err != nil {
		return err
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		d, err := decodeDoc(it.Value())
		more := false
		if err == nil {
			more, err = visit(binary.BigEndian.Uint32(it.Key()[5:]), d)
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

// Envelope returns the sealed event at a reference.
func (v *View) Envelope(at Ref) (events.Envelope, []byte, error) {
	raw, err := v.get(envelopeKey(at.Seq, at.Index))
	if err != nil {
		return events.Envelope{}, nil, err
	}
	if raw == nil {
		return events.Envelope{}, nil, fmt.Errorf("event %d.%d is not in state: %w", at.Seq, at.Index, events.ErrMalformed)
	}
	e, err := events.DecodeEnvelope(raw)
	return e, raw, err
}

// Frame gives back the message at a sequence byte for byte; nil if the state
// does not hold it.
func (v *View) Frame(seq uint64) ([]byte, error) { return frameOf(v.snap, v.get, seq) }

// frameOf puts the message of a sequence together from its rows; nil if there
// is none.
func frameOf(rows pebble.Reader, get func(key []byte) ([]byte, error), seq uint64) ([]byte, error) {
	row, err := get(frameKey(seq))
	if err != nil || len(row) == 0 {
		return nil, err
	}
	if row[0] == frameVoid {
		return row[1:], nil
	}
	var evs [][]byte
	err = eachRow(rows, be64([]byte{prefixEnvelope}, seq), func(_, value []byte) error {
		evs = append(evs, append([]byte(nil), value...))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return events.JoinFrame(row[1:], evs)
}

// EpochStart is the first sequence of an epoch; epoch 0 starts at 1.
func (v *View) EpochStart(epoch uint32) (uint64, bool, error) {
	if epoch == 0 {
		return 1, true, nil
	}
	raw, err := v.get(epochKey(epoch))
	if err != nil || len(raw) != 8 {
		return 0, false, err
	}
	return binary.BigEndian.Uint64(raw), true, nil
}

// PositionOf is the public position of an event, in the epoch in which it was
// written.
func (v *View) PositionOf(at Ref) (events.Position, error) {
	epoch, err := epochOf(v.get, v.cursor.Epoch, at.Seq)
	return events.Position{Shard: v.cursor.Shard, Epoch: epoch, Seq: at.Seq, Index: at.Index}, err
}

// DeletedNamespaces lists the namespaces of which only a tombstone is left.
func (v *View) DeletedNamespaces() ([]events.ID, error) {
	var out []events.ID
	err := eachRow(v.snap, []byte{prefixNamespace}, func(_, value []byte) error {
		row, err := decodeNamespaceRow(value)
		if row.Deleted {
			out = append(out, row.ID)
		}
		return err
	})
	return out, err
}
