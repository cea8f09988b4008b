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
	after *Hit  // hits are worse than it; nil: any
	heap  []Hit // the worst at 0
}

func worse(a, b *Hit) bool {
	if a.Score != b.Score {
		return a.Score < b.Score
	}
	if a.Partition != b.Partition {
		return a.Partition > b.Partition
	}
	return a.Doc > b.Doc
}

// floor is what the score of the next hit must exceed for it to be kept; -Inf: any is.
func (t *topK) floor() float64 {
	if len(t.heap) < t.k {
		return math.Inf(-1)
	}
	return t.heap[0].Score
}

// past reports whether a hit comes after t.after.
func (t *topK) past(h *Hit) bool { return t.after == nil || worse(h, t.after) }

func (t *topK) offer(h Hit) {
	if len(t.heap) < t.k {
		t.heap = append(t.heap, h)
		t.up(len(t.heap) - 1)
		return
	}
	t.heap[0] = h
	t.down()
}

func (t *topK) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !worse(&t.heap[i], &t.heap[parent]) {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

func (t *topK) down() {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(t.heap) {
			return
		}
		if c+1 < len(t.heap) && worse(&t.heap[c+1], &t.heap[c]) {
			c++
		}
		if !worse(&t.heap[c], &t.heap[i]) {
			return
		}
		t.heap[i], t.heap[c] = t.heap[c], t.heap[i]
		i = c
	}
}

// sorted returns the hits, the best first, in a slice of the caller.
func (t *topK) sorted() []Hit {
	hits := slices.Clone(t.heap)
	slices.SortFunc(hits, func(a, b Hit) int {
		switch {
		case worse(&b, &a):
			return -1
		case worse(&a, &b):
			return 1
		}
		return cmp.Compare(a.Doc, b.Doc)
	})
	return hits
}
