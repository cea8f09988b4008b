package projections

import (
	"hash/fnv"

	"github.com/cockroachdb/pebble/v2"

	"mneme/internal/events"
)

// memory is what of the rows is kept in memory: few bytes for each namespace and
// partition that every read and every fold needs. It never changes; each commit
// publishes the next one.
type memory struct {
	epochs     Epochs                        // log
	names      table[string, events.ID]      // directory: living namespaces by name
	entries    table[events.ID, Entry]       // directory
	hashes     table[events.ID, StateHash]   // facts
	homes      table[events.ID, homeState]   // home
	named      table[string, uint32]         // partitions, by partitionKey
	partitions table[uint32, partitionState] // partitions
	spaces     table[spaceID, spaceTotals]   // vectors
	ended      table[events.ID, uint32]      // dataKeys
}

func newMemory() memory {
	ofString := func(s string) uint8 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(s)) // never fails
		return uint8(h.Sum32())
	}
	ofID := func(id events.ID) uint8 { return id[len(id)-1] }
	return memory{
		names: newTable[string, events.ID](ofString), entries: newTable[events.ID, Entry](ofID), hashes: newTable[events.ID, StateHash](ofID),
		homes: newTable[events.ID, homeState](ofID), ended: newTable[events.ID, uint32](ofID), named: newTable[string, uint32](ofString),
		partitions: newTable[uint32, partitionState](func(part uint32) uint8 { return uint8(part) }),
		spaces:     newTable[spaceID, spaceTotals](func(s spaceID) uint8 { return ofID(s.ns) }),
	}
}

// published is the state at one position: what is kept of the rows in memory, and,
// while somebody reads, a snapshot of the rows. All views that are opened between
// two commits share it.
type published struct {
	memory
	cursor Cursor
	snap   pebble.Reader // guarded by State.mu; it does not change while it is held
	holds  int           // by views, and by a commit until it is published
}

// hold keeps the rows of the present position. A commit under way holds them, so
// that a view which is opened meanwhile does not see its rows. The caller holds
// State.mu.
func (g *generation) hold() *published {
	p := g.now
	if p.holds == 0 {
		p.snap = g.db.NewSnapshot()
		if g.onRead != nil {
			p.snap = heardRows{p.snap, g.onRead, g.onRow}
		}
	}
	p.holds++
	return p
}

// release gives a hold back. Without one the rows are let go: what an open snapshot
// sees cannot be purged. The caller holds State.mu.
func (p *published) release() error {
	if p.holds--; p.holds > 0 {
		return nil
	}
	snap := p.snap
	p.snap = nil
	return snap.Close()
}
