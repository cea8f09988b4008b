package projections

import (
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"mneme/internal/events"
	"mneme/internal/storage"
)

// partitionState is a partition with its dead documents.
type partitionState struct {
	Partition
	dead *roaring.Bitmap
}

// partitions is the projection that numbers partitions and their documents, and
// says which of these live.
type partitions struct {
	defaults
	t     *tx
	named changes[string, uint32] // by partitionKey
	list  changes[uint32, partitionState]
}

var partitionRows = declaration{
	name: "partitions",
	rows: []rows{
		{prefix: prefixPartition, scope: ofNamespace, fact: true, key: "namespace16 scope1 agent", holds: "partition4"},
		{prefix: prefixPartRow, scope: ofPartition, key: "partition4", holds: "namespace16 scope1 nextdoc4 agent"},
		{prefix: prefixDeath, scope: ofPartition, key: "partition4 seq8 index4 doc4", holds: "(a death)"},
	},
	load: func(db *storage.DB, m *memory) error {
		named, list := map[string]*uint32{}, map[uint32]*partitionState{}
		err := eachRow(db, []byte{prefixPartRow}, func(key, value []byte) error {
			if len(key) != 5 {
				return fmt.Errorf("partition key: %w", events.ErrMalformed)
			}
			p, err := decodePartition(binary.BigEndian.Uint32(key[1:]), value)
			list[p.ID] = &partitionState{p, roaring.New()}
			named[string(partitionKey(p.Namespace, p.Scope, p.Agent))] = &p.ID
			return err
		})
		if err != nil {
			return err
		}
		err = eachRow(db, []byte{prefixDeath}, func(key, _ []byte) error {
			if len(key) != 21 {
				return fmt.Errorf("death key: %w", events.ErrMalformed)
			}
			if p := list[binary.BigEndian.Uint32(key[1:])]; p != nil {
				p.dead.Add(binary.BigEndian.Uint32(key[17:]))
			}
			return nil
		})
		m.named, m.partitions = m.named.with(named), m.partitions.with(list)
		return err
	},
}

func (x *partitions) declared() *declaration { return &partitionRows }

// get returns a partition, or nil.
func (x *partitions) get(part uint32) *Partition {
	if p := x.list.get(part); p != nil {
		return &p.Partition
	}
	return nil
}

// make returns the partition of (namespace, scope, agent), making it at its first
// use.
func (x *partitions) make(ns events.ID, scope events.Scope, agent string) (*Partition, error) {
	if scope != events.ScopeAgent {
		agent = ""
	}
	name := string(partitionKey(ns, scope, agent))
	if id := x.named.get(name); id != nil {
		return x.get(*id), nil
	}
	p := x.edit(x.t.cursor.Partitions)
	p.Partition = Partition{ID: x.t.cursor.Partitions, Namespace: ns, Scope: scope, Agent: agent}
	*x.named.edit(name) = p.ID
	x.t.cursor.Partitions++
	return &p.Partition, x.t.addFact(ns, []byte(name), be32(nil, p.ID))
}

// edit returns a partition to be changed, with a set of the dead of its own.
func (x *partitions) edit(part uint32) *partitionState {
	own := x.list.now[part] != nil
	p := x.list.edit(part)
	switch {
	case p.dead == nil:
		p.dead = roaring.New()
	case !own:
		p.dead = p.dead.Clone()
	}
	return p
}

// of lists the numbers of a namespace's partitions.
func (x *partitions) of(ns events.ID) (parts []uint32, err error) {
	err = eachRow(x.t.b, append([]byte{prefixPartition}, ns[:]...), func(_, value []byte) error {
		parts = append(parts, binary.BigEndian.Uint32(value))
		return nil
	})
	return parts, err
}

func (x *partitions) fold(ev *event) error {
	if v := ev.ended; v != nil {
		x.edit(v.part.ID).dead.Add(v.doc)
		if err := x.t.b.Set(deathKey(v.part.ID, ev.at, v.doc), nil, nil); err != nil {
			return err
		}
	}
	if v := ev.began; v != nil {
		x.edit(v.part.ID).NextDoc = v.doc + 1
	}
	return nil
}

func (x *partitions) drop(_ events.ID, parts []uint32) {
	for _, part := range parts {
		if p := x.get(part); p != nil {
			x.named.remove(string(partitionKey(p.Namespace, p.Scope, p.Agent)))
			x.list.remove(part)
		}
	}
}

func (x *partitions) finish() error {
	for part, p := range x.list.now {
		if p == nil {
			continue
		}
		if err := x.t.b.Set(partRowKey(part), p.encode(), nil); err != nil {
			return err
		}
	}
	return nil
}

func (x *partitions) publish(m *memory) { m.named, m.partitions = x.named.after(), x.list.after() }

// liveSet says which documents of a partition are alive: all below next but the
// dead ones. It never changes once it is published.
type liveSet struct {
	next uint32
	dead *roaring.Bitmap
}

// Contains reports whether the document is alive.
func (l *liveSet) Contains(doc uint32) bool { return doc < l.next && !l.dead.Contains(doc) }

func (l *liveSet) Before(doc uint32) uint32 {
	if doc = min(doc, l.next); doc == 0 {
		return 0
	}
	return doc - uint32(l.dead.Rank(doc-1))
}

// Words implements text.WordSet: the living among the documents from first on.
func (l *liveSet) Words(first uint32, words []uint64) {
	clear(words)
	for i := range words {
		base := uint64(first) + uint64(i)*64
		switch {
		case base+64 <= uint64(l.next):
			words[i] = ^uint64(0)
		case base < uint64(l.next):
			words[i] = 1<<(uint64(l.next)-base) - 1
		}
	}
	it := l.dead.Iterator()
	it.AdvanceIfNeeded(first)
	end := uint64(first) + uint64(len(words))*64
	for it.HasNext() {
		d := it.Next()
		if uint64(d) >= end {
			return
		}
		words[(d-first)/64] &^= 1 << ((d - first) % 64)
	}
}

// partitionReads are the reads of partitions.
type partitionReads struct{ p *published }

// Partition finds the partition of (namespace, scope, agent); false if nothing
// was ever written to it.
func (v partitionReads) Partition(ns events.ID, scope events.Scope, agent string) (Partition, bool) {
	if scope != events.ScopeAgent {
		agent = ""
	}
	id := v.p.named.get(string(partitionKey(ns, scope, agent)))
	if id == nil {
		return Partition{}, false
	}
	return v.PartitionByID(*id)
}

// PartitionByID finds a partition by its number.
func (v partitionReads) PartitionByID(id uint32) (Partition, bool) {
	p := v.p.partitions.get(id)
	if p == nil {
		return Partition{}, false
	}
	return p.Partition, true
}

// Partitions lists a namespace's partitions.
func (v partitionReads) Partitions(ns events.ID) ([]Partition, error) {
	var out []Partition
	err := eachRow(v.p.snap, append([]byte{prefixPartition}, ns[:]...), func(_, value []byte) error {
		if p, ok := v.PartitionByID(binary.BigEndian.Uint32(value)); ok {
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// Live is the set of a partition's living documents at this view.
type Live interface {
	Contains(doc uint32) bool
	// Before counts those whose DocIDs are below doc.
	Before(doc uint32) uint32
}

// Live returns the living documents of a partition at this view's position.
func (v partitionReads) Live(part Partition) Live { return v.live(part.ID) }

func (v partitionReads) live(part uint32) *liveSet {
	if p := v.p.partitions.get(part); p != nil {
		return &liveSet{next: p.NextDoc, dead: p.dead}
	}
	return &liveSet{dead: roaring.New()}
}

// LiveCount is the number of living documents of a partition.
func (v partitionReads) LiveCount(part Partition) uint64 {
	l := v.live(part.ID)
	return uint64(l.next) - l.dead.GetCardinality()
}
