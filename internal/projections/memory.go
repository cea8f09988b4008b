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
	names      table[string, events.ID]      // directory: living namespaces by name
	entries    table[events.ID, Entry]       // directory
	hashes     table[events.ID, StateHash]   // facts
	homes      table[events.ID, homeState]   // home
	named      table[string, uint32]         // partitions, by partitionKey
	partitions table[uint32, partitionState] // partitions
	spaces     table[spaceID, spaceTotals]   // vectors
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
		homes: newTable[events.ID, homeState](ofID), named: newTable[string, uint32](ofString),
		partitions: newTable[uint32, partitionState](func(part uint32) uint8 { return uint8(part) }),
		spaces:     newTable[spaceID, spaceTotals](func(s spaceID) uint8 { return ofID(s.ns) }),
	}
}

// published is the state at one position: the rows, and what is kept of them in
// memory. All views that are opened between two commits share it.
type published struct {
	memory
	cursor Cursor
	snap   *pebble.Snapshot
	refs   int // views, and 1 while it is the present one; guarded by State.mu
}

// release gives a reference back. The caller holds State.mu.
func (p *published) release() error {
	if p.refs--; p.refs != 0 {
		return nil
	}
	return p.snap.Close()
}
