package text

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A search goes through a block in windows of 4,096 DocIDs, which share one array
// of scores that stays in the cache.
const (
	windowBits  = 12
	windowSize  = 1 << windowBits
	windowWords = windowSize / 64
)

// bitmap is one bit for each document of a window.
type bitmap [windowWords]uint64

func (b *bitmap) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// window is the working memory of one window.
type window struct {
	top     topK
	active  []active
	acc     [windowSize]float64 // zero between windows
	touched bitmap              // zero between windows
	filter  bitmap
	cand    bitmap
	other   bitmap
}

// active is a list with documents in the window.
type active struct {
	list     int // in scratch.lists
	from, to int // its chunks that reach into the window
	at       int // the chunk that probing has come to
	n        int // postings of those chunks
	ub       float64
	sum      float64 // of ub up to here, when sorted
}

// scoreGroup offers the best documents of one group to s.top.
func (s *scratch) scoreGroup(part *Partition, g group, q *Query) {
	lists := s.lists[g.from:g.to]
	for i := range lists {
		lists[i].at = lists[i].from
	}
	for at := uint32(0); at < blockSize; {
		start := at &^ (windowSize - 1)
		at = s.activate(g, start)
		if len(s.active) > 0 {
			s.scoreWindow(part, g, start, q)
		}
	}
}

// activate finds the lists with documents in the window at start. It returns a
// DocID behind the window that no later one comes before.
func (s *scratch) activate(g group, start uint32) (next uint32) {
	s.active = s.active[:0]
	end := start + windowSize
	next = blockSize
	for i := g.from; i < g.to; i++ {
		l := &s.lists[i]
		for l.at < l.to && uint32(s.chunks[l.at].last) < start {
			l.at++
		}
		if l.at == l.to {
			continue
		}
		a := active{list: i, from: l.at, to: l.at, at: l.at}
		for a.to < l.to && uint32(s.chunks[a.to].first) < end {
			c := &s.chunks[a.to]
			a.ub = max(a.ub, c.ub)
			a.n += int(c.n)
			a.to++
		}
		if a.to == a.from {
			next = min(next, uint32(s.chunks[l.at].first))
			continue
		}
		if a.to == a.from+1 {
			// A long chunk may have nothing here.
			c := &s.chunks[a.from]
			if uint32(c.first) < start {
				if doc := c.doc(s.data, c.seek(s.data, start)); doc >= end {
					next = min(next, doc)
					continue
				}
			}
		}
		switch {
		case uint32(s.chunks[a.to-1].last) >= end:
			next = min(next, end)
		case a.to < l.to:
			next = min(next, uint32(s.chunks[a.to].first))
		}
		s.active = append(s.active, a)
	}
	return max(next, end)
}

// scoreWindow offers the best documents of a window. Lists are ordered by the most
// they can add; those which together cannot lift a document over the heap's worst
// are not read, only asked about documents that others brought (MaxScore: Turtle
// and Flood, Query Evaluation: Strategies and Optimizations, 1995; with bounds of
// chunks: Ding and Suel, Faster Top-k Document Retrieval Using Block-Max Indexes,
// 2011).
func (s *scratch) scoreWindow(part *Partition, g group, start uint32, q *Query) {
	floor := s.top.floor()
	total, postings := 0.0, 0
	for i := range s.active {
		total += s.active[i].ub
		postings += s.active[i].n
	}
	if total <= floor {
		return
	}
	w := offers{part: part, first: g.block<<blockBits + start, start: start}
	if allow, ok := part.Allow.(WordSet); ok {
		allow.Words(w.first, s.filter[:])
		w.filtered = true
	} else {
		w.ask = part.Allow
	}
	if len(q.Must) > 0 {
		s.require(&w, q)
	}
	slices.SortFunc(s.active, func(a, b active) int { return cmp.Compare(a.ub, b.ub) })
	sum := 0.0
	for i := range s.active {
		sum += s.active[i].ub
		s.active[i].sum = sum
	}
	if w.filtered {
		n := s.filter.count()
		if n == 0 {
			return
		}
		if n*len(s.active)*probeCost < postings {
			s.scoreFew(&w)
			return
		}
	}
	few := 0 // so many lists are not read
	for few < len(s.active) && s.active[few].sum <= floor {
		few++
	}
	for i := few; i < len(s.active); i++ {
		a := &s.active[i]
		// A document that scores no more here cannot get into the heap with all
		// that the others can add.
		s.accumulate(a, start, floor-(total-a.ub))
	}
	s.collect(&w, few)
}

// probeCost is about how many postings can be read in the time that one takes to
// be looked for.
const probeCost = 12

// accumulate adds what a list's documents in the window score to s.acc, at least
// where that is more than need.
func (s *scratch) accumulate(a *active, start uint32, need float64) {
	sl := &s.slots[s.lists[a.list].slot]
	if sl.boost <= 0 {
		need = math.Inf(-1) // leaving it out would lift the document
	}
	for k := a.from; k < a.to; k++ {
		c := &s.chunks[k]
		if c.ub <= need {
			continue
		}
		from, to := s.inWindow(c, start)
		if sl.memo != nil && c.bt <= 1 && c.bl == 1 && c.minLen < memoLengths/2 {
			s.accumulateKnown(sl, c, from, to, start, need)
			continue
		}
		for i := from; i < to; i++ {
			s.add(c.doc(s.data, i)-start, sl.known(c.tf(s.data, i), c.length(s.data, i)))
		}
	}
}

// add adds to the score of a document of the window.
func (s *scratch) add(local uint32, x float64) {
	s.acc[local&(windowSize-1)] += x
	s.touched[local>>6&(windowWords-1)] |= 1 << (local & 63)
}

// accumulateKnown is the inner loop of a search: columns of one byte, and scores
// that are remembered.
func (s *scratch) accumulateKnown(sl *slot, c *chunk, from, to int, start uint32, need float64) {
	m := sl.memo
	docs := s.data[int(c.docs)+2*from : int(c.docs)+2*to]
	lens := s.data[int(c.lens)+from : int(c.lens)+to]
	var tfs []byte
	if c.bt == 1 {
		tfs = s.data[int(c.tfs)+from : int(c.tfs)+to]
	}
	for i, l := range lens {
		length, tf := c.minLen+uint32(l), uint32(0)
		if i < len(tfs) {
			tf = uint32(tfs[i])
		}
		var x float64
		if at := tf*memoLengths + length; length < memoLengths && at < uint32(len(m)) {
			x = m[at]
		}
		if x == 0 {
			x = sl.known(tf+1, length)
		}
		if x <= need || 2*i+1 >= len(docs) {
			continue
		}
		local := uint32(docs[2*i]) | uint32(docs[2*i+1])<<8
		s.add(local-start, x)
	}
}

// inWindow gives the postings of a chunk that lie in the window.
func (s *scratch) inWindow(c *chunk, start uint32) (from, to int) {
	to = int(c.n)
	if uint32(c.first) < start {
		from = c.seek(s.data, start)
	}
	if uint32(c.last) >= start+windowSize {
		to = c.seek(s.data, start+windowSize)
	}
	return from, to
}

// offers says what documents of a window may be hits.
type offers struct {
	part     *Partition
	first    uint32 // DocID of the window's first document
	start    uint32 // the same within the block
	filtered bool   // s.filter holds the documents that may be hits
	ask      Set    // so does this; may be nil
}

// collect offers the documents in s.acc, after it has added what the lists score
// that were not read, s.active[:few], to those that can still get into the heap.
func (s *scratch) collect(w *offers, few int) {
	s.cand = s.touched
	if w.filtered {
		for j := range s.cand {
			s.cand[j] &= s.filter[j]
		}
	}
	n, unread := 0, 0 // documents of s.cand, at most; postings of the other lists
	if few > 0 {
		n = s.cand.count()
	}
	for k := range few {
		unread += s.active[k].n
	}
	for k := few - 1; k >= 0 && n > 0; k-- {
		a := &s.active[k]
		if n < unread { // else looking at the documents is dearer than reading
			n = s.prune(s.top.floor() - a.sum)
		}
		if n*probeCost < a.n {
			s.probeAll(a, w.start)
		} else {
			s.readFor(a, w.start)
		}
		unread -= a.n
	}
	floor := s.top.floor()
	for j, t := range &s.cand {
		for ; t != 0; t &= t - 1 {
			i := j<<6 | bits.TrailingZeros64(t)
			if s.acc[i] > floor && s.offer(w, i, s.acc[i]) {
				floor = s.top.floor()
			}
		}
	}
	for j, t := range &s.touched {
		if t != 0 {
			clear(s.acc[j<<6:][:64])
		}
	}
	clear(s.touched[:])
}

// prune leaves in s.cand the n documents that scored more than floor so far. Which
// those are is hard to predict, so there is no branch on it.
func (s *scratch) prune(floor float64) (n int) {
	for j, t := range &s.cand {
		if t == 0 {
			continue
		}
		keep, acc := uint64(0), s.acc[j<<6:][:64]
		for ; t != 0; t &= t - 1 {
			b := bits.TrailingZeros64(t) & 63
			more := uint64(0)
			if acc[b] > floor {
				more = 1
			}
			keep |= more << b
		}
		s.cand[j] = keep
		n += bits.OnesCount64(keep)
	}
	return n
}

// probeAll looks for each document of s.cand in a list.
func (s *scratch) probeAll(a *active, start uint32) {
	for j, t := range &s.cand {
		for ; t != 0; t &= t - 1 {
			i := j<<6 | bits.TrailingZeros64(t)
			x, _ := s.probe(a, start+uint32(i))
			s.acc[i] += x
		}
	}
}

// readFor reads a list for the documents of s.cand.
func (s *scratch) readFor(a *active, start uint32) {
	sl := &s.slots[s.lists[a.list].slot]
	for k := a.from; k < a.to; k++ {
		c := &s.chunks[k]
		from, to := s.inWindow(c, start)
		docs := s.data[c.docs:c.tfs]
		for i := from; i < to; i++ {
			local := uint32(binary.LittleEndian.Uint16(docs[2*i:])) - start
			if s.cand[local>>6&(windowWords-1)]>>(local&63)&1 != 0 {
				s.acc[local&(windowSize-1)] += sl.known(c.tf(s.data, i), c.length(s.data, i))
			}
		}
	}
}

// scoreFew scores the documents of s.filter one by one, all lists asked.
func (s *scratch) scoreFew(w *offers) {
	floor := s.top.floor()
	for j, t := range &s.filter {
		for ; t != 0; t &= t - 1 {
			i := j<<6 | bits.TrailingZeros64(t)
			score, found := 0.0, false
			k := len(s.active) - 1
			for ; k >= 0 && score+s.active[k].sum > floor; k-- {
				x, ok := s.probe(&s.active[k], w.start+uint32(i))
				score += x
				found = found || ok
			}
			if found && score > floor && s.offer(w, i, score) {
				floor = s.top.floor()
			}
		}
	}
}

// probe scores one document in one list. Documents ascend from call to call.
func (s *scratch) probe(a *active, local uint32) (score float64, ok bool) {
	for a.at < a.to && uint32(s.chunks[a.at].last) < local {
		a.at++
	}
	if a.at == a.to || uint32(s.chunks[a.at].first) > local {
		return 0, false
	}
	c := &s.chunks[a.at]
	i := c.seek(s.data, local)
	if c.doc(s.data, i) != local {
		return 0, false
	}
	return s.slots[s.lists[a.list].slot].known(c.tf(s.data, i), c.length(s.data, i)), true
}

// offer gives a wanted document to the heap if it may be a hit.
func (s *scratch) offer(w *offers, i int, score float64) bool {
	doc := w.first + uint32(i)
	h := scored{score, uint64(w.part.ID)<<32 | uint64(doc)}
	if w.part.Live != nil && !w.part.Live.Contains(doc) || w.ask != nil && !w.ask.Contains(doc) || !s.top.past(h) {
		return false
	}
	s.top.offer(h)
	return true
}
