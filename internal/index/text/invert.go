package text

import (
	"cmp"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// inverted is one document on its way into the postings.
type inverted struct {
	id      uint32
	tail    uint32 // how many tails of the call are before its own
	lengths [NumFields]uint32
	removed bool
	end     int // of its pairs
}

// occurrence says that a document has a term so many times.
type occurrence struct {
	term int32 // in inversion.terms
	doc  int32 // in inversion.docs
	tf   uint32
}

// inversion gathers documents, in their order, and turns them into postings.
type inversion struct {
	call   uint64
	vocab  *vocabulary
	tail   uint32 // of the next document
	docs   []inverted
	pairs  []occurrence // by document
	terms  []*entry     // the distinct ones
	counts []int        // pairs of each term
	ends   []int        // where those of each term end in byTerm
	order  []place      // terms by field and text
	byTerm []occurrence
	born   []int32
	packed []uint64
	ids    []numbered
}

// place is a term's place in inversion.terms, behind what mostly decides its order:
// its field and the first bytes of its text.
type place struct {
	head uint64
	term int32
}

func placeOf(e *entry, term int) place {
	head := uint64(e.field)
	for i := range 7 {
		head <<= 8
		if i < len(e.text) {
			head |= uint64(e.text[i])
		}
	}
	return place{head, int32(term)}
}

const maxDocsPerCall = 1 << 24

func (v *inversion) begin(vocab *vocabulary) {
	v.call++
	v.vocab, v.tail = vocab, 0
	v.docs, v.pairs, v.terms, v.counts = v.docs[:0], v.pairs[:0], v.terms[:0], v.counts[:0]
}

// add notes a term of the document that endDoc will name.
func (v *inversion) add(e *entry, tf uint32) {
	if e.call != v.call {
		e.call, e.place = v.call, len(v.terms)
		v.terms = append(v.terms, e)
		v.counts = append(v.counts, 0)
	}
	v.counts[e.place]++
	v.pairs = append(v.pairs, occurrence{int32(e.place), int32(len(v.docs)), tf})
}

func (v *inversion) endDoc(id uint32, lengths [NumFields]uint32, removed bool) {
	v.docs = append(v.docs, inverted{id, v.tail, lengths, removed, len(v.pairs)})
}

// shrink lets go of what is longer than ordinary tails need, and of the entries that
// the dictionary may forget.
func (v *inversion) shrink() {
	if cap(v.pairs) > keptPairs || cap(v.terms) > keptPairs {
		*v = inversion{call: v.call}
	}
}

// sort puts the terms in order, and the pairs of each together, by document.
func (v *inversion) sort() {
	v.order = v.order[:0]
	for i, e := range v.terms {
		v.order = append(v.order, placeOf(e, i))
	}
	slices.SortFunc(v.order, func(a, b place) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Compare(v.terms[a.term].text, v.terms[b.term].text)
	})
	v.ends = slices.Grow(v.ends[:0], len(v.terms))[:len(v.terms)]
	at := 0
	for _, p := range v.order {
		v.ends[p.term] = at // where they begin, until the pairs are there
		at += v.counts[p.term]
	}
	v.byTerm = slices.Grow(v.byTerm[:0], len(v.pairs))[:len(v.pairs)]
	for _, p := range v.pairs {
		v.byTerm[v.ends[p.term]] = p
		v.ends[p.term]++
	}
}

// inOrder visits the terms by field and text.
func (v *inversion) inOrder(yield func(*entry) bool) {
	for _, p := range v.order {
		if !yield(v.terms[p.term]) {
			return
		}
	}
}

// pairsOf gives the pairs of a term, by document.
func (v *inversion) pairsOf(term int32) []occurrence {
	return v.byTerm[v.ends[term]-v.counts[term] : v.ends[term]]
}

// number gives ids to the new terms, in the order of the tails that they first
// appear in.
func (w *Writer) number(b *pebble.Batch, partition uint32, t *tail) error {
	v := &w.inv
	if err := w.dict.find(v.vocab, partition, v.inOrder); err != nil {
		return err
	}
	v.born = v.born[:0]
	for _, p := range v.order {
		if !v.terms[p.term].named {
			v.born = append(v.born, p.term)
		}
	}
	tailOf := func(term int32) uint32 { return v.docs[v.pairsOf(term)[0].doc].tail }
	// They stand in order of field and text.
	slices.SortStableFunc(v.born, func(a, b int32) int { return cmp.Compare(tailOf(a), tailOf(b)) })
	born := make([]*entry, len(v.born))
	for i, term := range v.born {
		born[i] = v.terms[term]
	}
	return w.dict.admit(b, partition, t, born, func(i int) bool { return i > 0 && tailOf(v.born[i]) != tailOf(v.born[i-1]) })
}

// invert writes the postings of the documents in [t.start, end), the last of which
// are docs, and their rows by ids.
func (w *Writer) invert(b *pebble.Batch, partition uint32, t *tail, end uint32, docs []Doc) error {
	v := &w.inv
	v.begin(w.dict.part(partition, t.nextID))
	if err := w.gatherTail(partition, t, end); err != nil {
		return err
	}
	cuts := w.cuts
	for i := range docs {
		d := &docs[i]
		if i == cuts[0] {
			v.tail, cuts = v.tail+1, cuts[1:]
		}
		for k := range d.Terms {
			v.add(w.dict.entry(v.vocab, d.Terms[k].Field, d.Terms[k].Text), d.Terms[k].TF)
		}
		v.endDoc(d.ID, d.Lengths, false)
	}
	v.sort()
	if err := w.number(b, partition, t); err != nil {
		return err
	}
	if err := w.writePostings(b, partition); err != nil {
		return err
	}
	return w.writeInverted(b, partition)
}

// writePostings merges one row per term and block of what was gathered. Keys go out
// ascending, which the memtable inserts fastest.
func (w *Writer) writePostings(b *pebble.Batch, partition uint32) error {
	v := &w.inv
	for _, p := range v.order {
		ps, e := v.pairsOf(p.term), v.terms[p.term]
		for i := 0; i < len(ps); {
			block := v.docs[ps[i].doc].id >> blockBits
			w.run = w.run[:0]
			removed := uint32(0)
			for ; i < len(ps); i++ {
				d := &v.docs[ps[i].doc]
				if d.id>>blockBits != block {
					break
				}
				w.run = append(w.run, makePosting(d.id&(blockSize-1), ps[i].tf, d.lengths[e.field]))
				if d.removed {
					removed++
				}
			}
			w.key = appendPostingKey(w.key[:0], partition, e.field, e.text, block)
			w.val = appendRow(w.val[:0], removed, w.run)
			if err := b.Merge(w.key, w.val, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeInverted writes the rows of the documents by ids.
func (w *Writer) writeInverted(b *pebble.Batch, partition uint32) error {
	v := &w.inv
	from := 0
	for i := range v.docs {
		d := &v.docs[i]
		v.packed, v.ids = v.packed[:0], v.ids[:0]
		for _, p := range v.pairs[from:d.end] {
			v.packed = append(v.packed, uint64(v.terms[p.term].id)<<32|uint64(p.tf))
		}
		from = d.end
		slices.Sort(v.packed)
		for _, x := range v.packed {
			v.ids = append(v.ids, numbered{uint32(x >> 32), uint32(x)})
		}
		w.key = appendForwardKey(w.key[:0], partition, d.id)
		w.val = appendInverted(w.val[:0], d.lengths, v.ids)
		if err := b.Set(w.key, w.val, nil); err != nil {
			return err
		}
	}
	return nil
}
