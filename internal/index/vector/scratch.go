package vector

import (
	"math"
	"sync"
)

// A key is a candidate in one number: its score turned so that smaller is
// better, then its slot, then a bit for "its links were followed". Ascending
// keys are descending scores with ties by smaller slot, hence by smaller ID.
type key = uint64

const followed key = 1

func makeKey(score float32, slot uint32) key {
	b := math.Float32bits(score)
	if b == 1<<31 { // -0 ties with 0
		b = 0
	}
	b ^= uint32(int32(b)>>31) | 1<<31 // ascending floats, ascending numbers
	return key(^b)<<32 | key(slot)<<1
}

func keySlot(k key) uint32 { return uint32(k) >> 1 }

func keyScore(k key) float32 {
	b := ^uint32(k >> 32)
	if b>>31 != 0 {
		return math.Float32frombits(b ^ 1<<31)
	}
	return math.Float32frombits(^b)
}

// ranked is a list of at most limit keys, best first.
type ranked struct {
	keys  []key
	limit int
}

func (r *ranked) reset(limit int) {
	if cap(r.keys) < limit {
		// Not all at once for a huge k over a small set.
		r.keys = make([]key, 0, min(limit, 4096))
	}
	r.keys, r.limit = r.keys[:0], limit
}

// admits reports whether add would keep k.
func (r *ranked) admits(k key) bool {
	return len(r.keys) < r.limit || k < r.keys[len(r.keys)-1]
}

// add inserts k, dropping the worst where the list is full, and returns its
// place. The caller has asked admits.
func (r *ranked) add(k key) int {
	n := len(r.keys)
	if n < r.limit {
		r.keys = append(r.keys, k)
	} else {
		n--
	}
	keys := r.keys
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if keys[mid] < k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	copy(keys[lo+1:n+1], keys[lo:n])
	keys[lo] = k
	return lo
}

// keyHeap is a binary heap with the best key on top.
type keyHeap []key

func (h *keyHeap) push(k key) {
	s := append(*h, k)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if s[parent] <= k {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = k
	*h = s
}

func (h *keyHeap) pop() key {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if last <= s[child] {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
	return top
}

// scratch is what one search or one builder needs besides its result. It is
// pooled; nothing in it survives a search but its capacity.
type scratch struct {
	view     storeView // what this search sees
	query    []uint8   // a row
	fine     []uint8   // what query leaves out, see fineQuery
	finer    []uint8
	hasFine  bool
	scale    float32   // of query
	floats   []float32 // the caller's query
	ids      []uint32  // a batch for the kernel
	dots     []int32
	pool     ranked  // candidates of a walk
	results  ranked  // allowed ones, where not every candidate is
	frontier keyHeap // candidates whose links are to follow, likewise
	best     ranked  // the answer
	scan     exactScan
	marks    []uint8 // marks[slot] == epoch: seen in this walk
	epoch    uint8
	picked   []key // neighbours chosen while inserting
	left     []key // candidates not chosen
	slots    []uint32
	pruned   []key
	exactIDs []ID
	rows     []float32 // full-precision vectors of exactIDs
}

// batchLen is the number of rows given to the kernel at once; it covers the
// links of a node for every M allowed.
const batchLen = 2 * maxM

func newScratch(stride int) *scratch {
	sc := &scratch{
		query: alignedSlice[uint8](stride),
		fine:  alignedSlice[uint8](stride),
		finer: alignedSlice[uint8](stride),
		ids:   make([]uint32, batchLen),
		dots:  make([]int32, batchLen),
	}
	quantise(sc.fine, nil)
	quantise(sc.finer, nil)
	sc.scan.yield = sc.scan.visit
	return sc
}

// setQuery takes q over; it is referred to until release. fine says that bytes
// are to be multiplied with all of it in the end.
func (sc *scratch) setQuery(q []float32, fine bool) {
	sc.floats = q
	sc.scale = quantise(sc.query, q)
	sc.hasFine = fine && fineQuery(sc.fine, sc.finer, sc.query, sc.scale, q)
}

// scratches are those that no search uses, of all sets: there may be many sets, and
// as a rule all have one dimension.
var scratches sync.Pool

// takeScratch returns a scratch for rows of stride bytes. Give it back.
func takeScratch(stride int) *scratch {
	if sc, ok := scratches.Get().(*scratch); ok && len(sc.query) == stride {
		return sc
	}
	return newScratch(stride)
}

// giveBack drops references, so that a pooled scratch keeps nothing alive.
func (sc *scratch) giveBack() {
	sc.view, sc.floats = storeView{}, nil
	sc.scan.release()
	scratches.Put(sc)
}

// nextEpoch forgets all marks and makes room for n slots.
func (sc *scratch) nextEpoch(n uint32) {
	if uint32(len(sc.marks)) < n {
		sc.marks = make([]uint8, int(n)+int(n)/4+64)
		sc.epoch = 0
	}
	sc.epoch++
	if sc.epoch == 0 {
		clear(sc.marks)
		sc.epoch = 1
	}
}
