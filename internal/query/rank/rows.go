package rank

import "math/bits"

// docKey is a document of one of the plan's partitions.
type docKey struct {
	partition int
	doc       uint32
}

// rows numbers the documents that a search looks at, from 0 on, in the order in which they
// are first named: what ranking knows of each lies in lists by that number. A search names
// each some ten times, so this is a table of its own. It is empty after reset only.
type rows struct {
	docs  []docKey // by number
	table []int32  // 1 + number, at the place of the document's hash or behind it; 0 = free
	shift int      // of a hash, to a place in table, whose length is a power of two
}

// minTable is the shortest table, enough for a search without neighbours.
const minTable = 1 << 10

func (r *rows) reset() {
	if len(r.table) == 0 {
		r.setTable(minTable)
	}
	clear(r.table)
	r.docs = r.docs[:0]
}

func (r *rows) setTable(n int) {
	r.table, r.shift = make([]int32, n), 64-bits.TrailingZeros(uint(n))
}

// place is where the number of a document stands, or where it is to be put.
func (r *rows) place(k docKey) *int32 {
	const golden = 0x9E3779B97F4A7C15 // Knuth's multiplicative hashing: documents beside each other lie apart
	at := int((uint64(k.partition)<<32 | uint64(k.doc)) * golden >> r.shift)
	for {
		p := &r.table[at]
		if *p == 0 || r.docs[*p-1] == k {
			return p
		}
		at = (at + 1) & (len(r.table) - 1)
	}
}

// add returns the number of a document, which may be a new one.
func (r *rows) add(k docKey) (row int32, isNew bool) {
	p := r.place(k)
	if *p > 0 {
		return *p - 1, false
	}
	if 2*len(r.docs) >= len(r.table) {
		r.setTable(2 * len(r.table))
		for i, k := range r.docs {
			*r.place(k) = int32(i) + 1
		}
		p = r.place(k)
	}
	r.docs = append(r.docs, k)
	*p = int32(len(r.docs))
	return int32(len(r.docs)) - 1, true
}

// find returns the number of a document that has one.
func (r *rows) find(k docKey) (row int32, ok bool) {
	p := r.place(k)
	return *p - 1, *p > 0
}
