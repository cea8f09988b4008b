package text

import (
	"cmp"
	"math"
	"slices"
)

// topK keeps the k best hits: higher scores first, ties by partition and document
// ascending. Hits are offered in ascending (partition, document), so that of two
// equal ones the later is the worse.
type topK struct {
	k     int
	after *Hit     // hits are worse than it; nil: any
	heap  []scored // the worst at 0
}

// scored is a document with its score. A search moves thousands of them.
type scored struct {
	score float64
	doc   uint64 // its partition, then its number there
}

func makeScored(h *Hit) scored {
	return scored{h.Score, uint64(h.Partition)<<32 | uint64(h.Doc)}
}

func (a scored) worse(b scored) bool {
	return a.score < b.score || a.score == b.score && a.doc > b.doc
}

// floor is what the score of the next hit must exceed for it to be kept; -Inf: any is.
func (t *topK) floor() float64 {
	if len(t.heap) < t.k {
		return math.Inf(-1)
	}
	return t.heap[0].score
}

// past reports whether a hit comes after t.after.
func (t *topK) past(h scored) bool { return t.after == nil || h.worse(makeScored(t.after)) }

func (t *topK) offer(h scored) {
	if len(t.heap) < t.k {
		t.heap = append(t.heap, h)
		t.up(len(t.heap) - 1)
		return
	}
	t.heap[0] = h
	t.down()
}

func (t *topK) up(i int) {
	h := t.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !h.worse(t.heap[parent]) {
			break
		}
		t.heap[i] = t.heap[parent]
		i = parent
	}
	t.heap[i] = h
}

func (t *topK) down() {
	h, i := t.heap[0], 0
	for {
		c := 2*i + 1
		if c >= len(t.heap) {
			break
		}
		if c+1 < len(t.heap) && t.heap[c+1].worse(t.heap[c]) {
			c++
		}
		if !t.heap[c].worse(h) {
			break
		}
		t.heap[i] = t.heap[c]
		i = c
	}
	t.heap[i] = h
}

// sorted returns the hits, the best first, in a slice of the caller.
func (t *topK) sorted() []Hit {
	slices.SortFunc(t.heap, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc)) })
	hits := make([]Hit, len(t.heap))
	for i, h := range t.heap {
		hits[i] = Hit{Partition: uint32(h.doc >> 32), Doc: uint32(h.doc), Score: h.score}
	}
	return hits
}
