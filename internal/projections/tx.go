package projections

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// nsState is a namespace's row and running totals in memory.
type nsState struct {
	row     NamespaceRow
	known   bool // it has a directory row
	hash    StateHash
	records uint64
	spaces  map[SpaceKey]*spaceTotals
	dirty   bool // totals differ from their rows
}

// tx is one Apply: every row it writes commits together with the cursor. Reads
// through it see its own writes.
type tx struct {
	g       *generation
	b       *pebble.Batch // indexed
	cursor  Cursor
	scratch []byte
	out     *Applied

	docs    map[uint32][]text.Doc         // new documents by partition, in DocID order
	bitmaps map[bitmapRef]*roaring.Bitmap // new bits by bitmap row
	touched map[uint32]*Partition         // partitions whose row changed
	nextVec map[string]uint32             // next VectorID by its key
	dead    map[uint32]*roaring.Bitmap    // deaths by partition
	dropped map[uint32]bool               // partitions deleted in this tx
}

type bitmapRef struct {
	part  uint32
	attr  AttrKey
	block uint16
}

func newTx(g *generation) *tx {
	return &tx{g: g, b: g.db.NewIndexedBatch(), cursor: g.cursor, out: &Applied{},
		docs: map[uint32][]text.Doc{}, bitmaps: map[bitmapRef]*roaring.Bitmap{}, touched: map[uint32]*Partition{},
		nextVec: map[string]uint32{}, dead: map[uint32]*roaring.Bitmap{}, dropped: map[uint32]bool{}}
}

// get reads a row as this transaction sees it; nil when it is not there. The
// value is a copy.
func (t *tx) get(key []byte) ([]byte, error) {
	v, closer, err := t.b.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read row %#x: %w", key[0], err)
	}
	defer closer.Close()
	return append(make([]byte, 0, len(v)), v...), nil
}

// namespace returns the namespace's state; one without a row is not known.
func (t *tx) namespace(id events.ID) *nsState {
	n := t.g.namespaces[id]
	if n == nil {
		n = newNSState(NamespaceRow{ID: id}, false)
		t.g.namespaces[id] = n
	}
	n.dirty = true
	return n
}

func newNSState(row NamespaceRow, known bool) *nsState {
	return &nsState{row: row, known: known, spaces: map[SpaceKey]*spaceTotals{}}
}

// living reports whether the namespace is there to be written to.
func (n *nsState) living() bool { return n.known && !n.row.Deleted }

// partition returns the partition, making it at its first use.
func (t *tx) partition(ns events.ID, scope events.Scope, agent string) (*Partition, error) {
	if scope != events.ScopeAgent {
		agent = ""
	}
	name := string(partitionKey(ns, scope, agent))
	if p := t.g.byName[name]; p != nil {
		t.touched[p.ID] = p
		return p, nil
	}
	p := &Partition{ID: t.cursor.Partitions, Namespace: ns, Scope: scope, Agent: agent}
	t.cursor.Partitions++
	t.g.byName[name], t.g.parts[p.ID] = p, p
	t.touched[p.ID] = p
	return p, t.addFact(ns, []byte(name), be32(nil, p.ID))
}

// finish writes what was gathered, in a fixed order, and the cursor.
func (t *tx) finish() error {
	for _, part := range slices.Sorted(maps.Keys(t.docs)) {
		if err := t.g.terms.Add(t.b, part, t.docs[part]); err != nil {
			return fmt.Errorf("add terms: %w", err)
		}
	}
	if err := t.flushBitmaps(); err != nil {
		return err
	}
	for _, p := range t.touched {
		if err := t.b.Set(partRowKey(p.ID), p.encode(), nil); err != nil {
			return err
		}
	}
	for key, next := range t.nextVec {
		if err := t.b.Set([]byte(key), be32(nil, next), nil); err != nil {
			return err
		}
	}
	for id, n := range t.g.namespaces {
		if !n.dirty {
			continue
		}
		n.dirty = false
		if err := t.b.Set(hashKey(id), n.hash.encode(), nil); err != nil {
			return err
		}
		if err := t.b.Set(countersKey(id), be64(be64(nil, n.records), n.pending()), nil); err != nil {
			return err
		}
		for space, s := range n.spaces {
			if err := t.b.Set(spaceTotalsKey(id, space), s.encode(), nil); err != nil {
				return err
			}
		}
	}
	return t.b.Set(metaCursorKey, t.cursor.encode(), nil)
}

// flushDocs writes the terms gathered for one partition now, so that a removal
// in the same transaction finds them.
func (t *tx) flushDocs(part uint32) error {
	docs := t.docs[part]
	if len(docs) == 0 {
		return nil
	}
	delete(t.docs, part)
	return t.g.terms.Add(t.b, part, docs)
}
