package text

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// docTerm is one (term, document) pair in two words that sort by term key, field
// and document: the key's first 8 bytes; its last 4, field (8 bits), place of the
// document in the call (24 bits).
type docTerm struct {
	hi, lo uint64
	tf     uint32
}

const maxDocsPerCall = 1 << 24

func (t docTerm) doc() int      { return int(t.lo & (maxDocsPerCall - 1)) }
func (t docTerm) group() uint64 { return t.lo >> 24 } // of one hi: same term and field
func (t docTerm) field() Field  { return Field(t.lo >> 24) }
func (t docTerm) termKey() (k TermKey) {
	binary.BigEndian.PutUint64(k[:], t.hi)
	binary.BigEndian.PutUint32(k[8:], uint32(t.lo>>32))
	return k
}

func makeDocTerm(t Term, doc int) docTerm {
	return docTerm{
		hi: binary.BigEndian.Uint64(t.Key[:]),
		lo: uint64(binary.BigEndian.Uint32(t.Key[8:]))<<32 | uint64(t.Field)<<24 | uint64(doc),
		tf: t.TF,
	}
}

func compareDocTerms(a, b docTerm) int {
	if a.hi != b.hi {
		return cmp.Compare(a.hi, b.hi)
	}
	return cmp.Compare(a.lo, b.lo)
}

// sorter sorts docTerms. Term keys are HMACs, so that a distribution by their
// first bits leaves buckets of a few, and stable distribution leaves the postings
// of one term in order. Other keys are only slower.
type sorter struct {
	in, sorted []docTerm
	starts     [1<<bucketBits + 1]uint32
}

const bucketBits = 11

func (s *sorter) reset()        { s.in, s.sorted = s.in[:0], s.sorted[:0] }
func (s *sorter) add(t docTerm) { s.in = append(s.in, t) }
func (s *sorter) len() int      { return len(s.in) }

// sort returns what was added since reset, in order; it is also s.sorted.
func (s *sorter) sort() []docTerm {
	clear(s.starts[:])
	for _, t := range s.in {
		s.starts[t.hi>>(64-bucketBits)+1]++
	}
	for i := 1; i < len(s.starts); i++ {
		s.starts[i] += s.starts[i-1]
	}
	s.sorted = slices.Grow(s.sorted[:0], len(s.in))[:len(s.in)]
	for _, t := range s.in {
		at := &s.starts[t.hi>>(64-bucketBits)]
		s.sorted[*at] = t
		*at++
	}
	// Each start is now its bucket's end.
	from := uint32(0)
	for _, to := range s.starts[:1<<bucketBits] {
		if b := s.sorted[from:to]; len(b) > 1 && !slices.IsSortedFunc(b, compareDocTerms) {
			slices.SortFunc(b, compareDocTerms)
		}
		from = to
	}
	return s.sorted
}
