package vector

import (
	"sync"
	"sync/atomic"
)

const (
	// recentMost is how many queries the recall guard remembers, and recentEach how many go by
	// for each that it takes once it remembers so many.
	recentMost, recentEach = 256, 16
	// recentFirst is how many have to be asked before it looks at them.
	recentFirst = 64
)

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

// note remembers the query of sc, of which k were wanted. It reports whether the guard should
// look.
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
	return looks(n) > looks(n-1)
}

// looks is how many times the guard has looked when n queries were asked: at the first
// recentFirst, then at four times as many each time.
func looks(n uint64) (times int) {
	for ; n >= recentFirst; n /= 4 {
		times++
	}
	return times
}

// kept is how many queries are remembered.
func (r *recent) kept() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ring)
}

// take makes the i-th last query that is remembered the query of sc, and returns the k that was
// wanted; 0 = there is none.
func (r *recent) take(sc *scratch, i int) (k int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.ring) {
		return 0
	}
	at := (r.next + len(r.ring) - 1 - i) % len(r.ring)
	stride := len(sc.query)
	copy(sc.query, r.rows[at*stride:(at+1)*stride])
	sc.scale, sc.hasFine = r.ring[at].scale, false
	return r.ring[at].k
}
