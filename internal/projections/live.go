package projections

import "github.com/RoaringBitmap/roaring/v2"

// liveSet says which documents of a partition are alive: all below next but the
// dead ones. It never changes once it is published.
type liveSet struct {
	next uint32
	dead *roaring.Bitmap
}

// Contains reports whether the document is alive.
func (l *liveSet) Contains(doc uint32) bool { return doc < l.next && !l.dead.Contains(doc) }

// Words implements text.WordSet: the living among the documents from first on.
func (l *liveSet) Words(first uint32, words []uint64) {
	clear(words)
	for i := range words {
		base := uint64(first) + uint64(i)*64
		switch {
		case base+64 <= uint64(l.next):
			words[i] = ^uint64(0)
		case base < uint64(l.next):
			words[i] = 1<<(uint64(l.next)-base) - 1
		}
	}
	it := l.dead.Iterator()
	it.AdvanceIfNeeded(first)
	end := uint64(first) + uint64(len(words))*64
	for it.HasNext() {
		d := it.Next()
		if uint64(d) >= end {
			return
		}
		words[(d-first)/64] &^= 1 << ((d - first) % 64)
	}
}

// livePage is how many neighbouring partitions share one page of a liveTable.
const livePage = 256

// liveTable has the live set of each partition, by the partition's number. A
// table never changes: with gives another one that shares all pages but those
// that it touches, so that a view keeps the table of its position at no cost.
type liveTable struct{ pages []*[livePage]*liveSet }

// get returns a partition's set, or nil.
func (t liveTable) get(part uint32) *liveSet {
	if p := int(part / livePage); p < len(t.pages) && t.pages[p] != nil {
		return t.pages[p][part%livePage]
	}
	return nil
}

// with returns a table with other sets for some partitions; nil takes one out.
func (t liveTable) with(sets map[uint32]*liveSet) liveTable {
	if len(sets) == 0 {
		return t
	}
	pages := append([]*[livePage]*liveSet(nil), t.pages...)
	own := map[int]bool{}
	for part, set := range sets {
		p := int(part / livePage)
		for p >= len(pages) {
			pages = append(pages, nil)
		}
		if !own[p] {
			own[p] = true
			page := [livePage]*liveSet{}
			if pages[p] != nil {
				page = *pages[p]
			}
			pages[p] = &page
		}
		pages[p][part%livePage] = set
	}
	return liveTable{pages}
}
