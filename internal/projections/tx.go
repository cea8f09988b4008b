package projections

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
	"mneme/internal/index/text"
)

// tx is one Apply: every row it writes commits together with the cursor, and
// what it changes in memory is published after that. Reads through it see its own
// writes. An Apply that fails leaves nothing behind.
type tx struct {
	b      *pebble.Batch // indexed
	before finder        // the rows before it
	made   map[string]struct{}
	cursor Cursor
	out    *Applied
	marked map[Ref]Quarantine // events that an operator put in quarantine

	last    Ref // the event that was folded last
	lastRaw []byte
	stopAt  uint64 // a trial ends when so many events were folded; 0 = it folds all

	all []projection // in the order in which they fold an event
	// Those that are asked by others.
	log        *eventLog
	directory  *directory
	facts      *facts
	home       *home
	partitions *partitions
	records    *records
	vectors    *vectors
	audit      *audit
	dataKeys   *dataKeys
	graph      *graph
}

// newTx lists the projections. The order is that in which they fold an event.
func newTx(g *generation) *tx {
	was := &g.now.memory
	t := &tx{cursor: g.now.cursor, out: &Applied{}, made: map[string]struct{}{}, before: finder{rows: g.db}}
	t.log = &eventLog{t: t, epochs: was.epochs}
	t.facts = &facts{t: t, sums: changesOf(was.hashes)}
	t.directory = &directory{t: t, names: changesOf(was.names), entries: changesOf(was.entries)}
	t.home = &home{t: t, homes: changesOf(was.homes)}
	t.partitions = &partitions{t: t, named: changesOf(was.named), list: changesOf(was.partitions)}
	t.records = &records{t: t}
	t.vectors = &vectors{t: t, spaces: changesOf(was.spaces), next: map[string]uint32{}}
	t.audit = &audit{t: t}
	t.dataKeys = &dataKeys{t: t, ended: changesOf(was.ended)}
	t.graph = &graph{t: t, totals: map[uint32]*GraphTotals{}}
	t.all = []projection{
		t.log, t.facts, t.directory, t.home, t.partitions, t.records,
		&terms{t: t, w: g.terms, docs: map[uint32][]text.Doc{}, gone: map[uint32][]uint32{}},
		&attributes{t: t, bits: map[bitmapRef]*roaring.Bitmap{}},
		t.vectors, t.graph, t.audit, &readLog{t: t}, t.dataKeys,
	}
	return t
}

// get reads a row as this transaction sees it; nil when it is not there. The
// value is a copy.
func (t *tx) get(key []byte) ([]byte, error) { return getRow(t.b, key) }

// seldom is get for a row that mostly is not there: a head or a used client id.
func (t *tx) seldom(key []byte) ([]byte, error) {
	if _, made := t.made[string(key)]; !made {
		if v, err := t.before.find(key); err != nil || v == nil {
			return nil, err
		}
	}
	return t.get(key)
}

// close lets go of what was not committed, and of what was read.
func (t *tx) close() error { return errors.Join(t.before.close(), t.b.Close()) }

// getRow reads a row; nil when it is not there. The value is a copy.
func getRow(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: row %#x: %w", errRead, key[0], err)
	}
	out := append(make([]byte, 0, len(v)), v...)
	return out, closer.Close()
}

// finish writes what was gathered.
func (t *tx) finish() error {
	for _, p := range t.all {
		if err := p.finish(); err != nil {
			return err
		}
	}
	return nil
}

// publish gives what is in memory behind this transaction.
func (t *tx) publish(was *memory) memory {
	next := *was
	for _, p := range t.all {
		p.publish(&next)
	}
	return next
}

// addFact writes a new row that is a fact of the namespace.
func (t *tx) addFact(ns events.ID, key, value []byte) error {
	if key[0] == prefixHead || key[0] == prefixIdem {
		t.made[string(key)] = struct{}{}
	}
	t.facts.add(ns, key, value)
	return t.b.Set(key, value, nil)
}

// replaceFact overwrites a fact.
func (t *tx) replaceFact(ns events.ID, key, old, value []byte) error {
	t.facts.remove(ns, key, old)
	return t.addFact(ns, key, value)
}

// deleteFact removes a fact.
func (t *tx) deleteFact(ns events.ID, key, old []byte) error {
	t.facts.remove(ns, key, old)
	return t.b.Delete(key, nil)
}
