package vector

import (
	"sync"
	"sync/atomic"
)

// recentMost is how many queries the recall guard remembers, and recentEach how many go by
// for each that it takes once it remembers so many.
const recentMost, recentEach = 64, 16

// recent are queries that were asked lately, which the graph answered, or would have if the guard
// had let it. Methods may be called concurrently.
type recent struct {
	asked atomic.Uint64 // that were noted or went by

	mu   sync.Mutex
	rows []uint8 // as in a store
	ring []recentQuery
	next int
}

type recentQuery struct {
	scale float32
	k     int // that the walk was asked for
}

// note remembers the query of sc, of which k were wanted. It reports whether there are so many
// more than when it last said so that the guard should look: the first recentMost, then four
// times as many each time.
func (r *recent) note(sc *scratch, k int) bool {
	n := r.asked.Add(1)
	if n > recentMost && n%recentEach != 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	stride := len(sc.query)
	if r.rows == nil {
		r.rows = make([]uint8, recentMost*stride)
	}
	if len(r.ring) < recentMost {
		r.ring = append(r.ring, recentQuery{})
	}
	copy(r.rows[r.next*stride:(r.next+1)*stride], sc.query)
	r.ring[r.next] = recentQuery{sc.scale, k}
	r.next = (r.next + 1) % recentMost
	return looksAt(n)
}

// looksAt reports whether n is recentMost times a power of four.
func looksAt(n uint64) bool {
	for n > recentMost && n%4 == 0 {
		n /= 4
	}
	return n == recentMost
}

// take makes the i-th query that is remembered the query of sc, and returns the k that was
// wanted; 0 = there is none.
func (r *recent) take(sc *scratch, i int) (k int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.ring) {
		return 0
	}
	stride := len(sc.query)
	copy(sc.query, r.rows[i*stride:(i+1)*stride])
	sc.scale, sc.hasFine = r.ring[i].scale, false
	return r.ring[i].k
}
