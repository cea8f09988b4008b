package text

import "math/bits"

// require takes out of s.filter the documents that lack a group of required terms.
func (s *scratch) require(w *offers, q *Query) {
	for g := range q.Must {
		n := windowSize
		if w.filtered {
			n = s.filter.count()
		}
		if n == 0 {
			return
		}
		postings, lists := 0, 0
		for i := range s.active {
			if s.requires(&s.active[i], g) {
				postings += s.active[i].n
				lists++
			}
		}
		clear(s.other[:])
		if w.filtered && n*lists*probeCost < postings {
			s.probeGroup(w, g)
		} else {
			for i := range s.active {
				if a := &s.active[i]; s.requires(a, g) {
					s.mark(a, w.start)
				}
			}
		}
		if !w.filtered {
			s.filter, w.filtered = s.other, true
			continue
		}
		for j := range s.filter {
			s.filter[j] &= s.other[j]
		}
	}
}

func (s *scratch) requires(a *active, group int) bool {
	return s.slots[s.lists[a.list].slot].must>>group&1 != 0
}

// mark puts a list's documents in the window into s.other.
func (s *scratch) mark(a *active, start uint32) {
	for k := a.from; k < a.to; k++ {
		c := &s.chunks[k]
		from, to := s.inWindow(c, start)
		for i := from; i < to; i++ {
			local := c.doc(s.data, i) - start
			s.other[local>>6&(windowWords-1)] |= 1 << (local & 63)
		}
	}
}

// probeGroup puts the documents of s.filter that a group's lists hold into s.other.
func (s *scratch) probeGroup(w *offers, group int) {
	for i := range s.active {
		a := s.active[i] // a copy: scoring probes again from the front
		if !s.requires(&a, group) {
			continue
		}
		for j, t := range s.filter {
			for ; t != 0; t &= t - 1 {
				b := bits.TrailingZeros64(t)
				if _, ok := s.probe(&a, w.start+uint32(j<<6|b)); ok {
					s.other[j] |= 1 << b
				}
			}
		}
	}
}
